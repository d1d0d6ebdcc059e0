"""The Slack transport against the emulated Web API, Socket Mode and Events API, with a host that remembers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr, ValidationError

from clew.plugins import Fault
from clew.transport import Cursor, Inbound, Receipt, Retry
from clew_transports.slack import sockets
from clew_transports.slack import transport as slack_transport
from clew_transports.slack.doctor import BAD_APP, BAD_BOT, DISABLED
from clew_transports.slack.settings import REQUIRED, Settings
from clew_transports.slack.transport import SlackTransport, plugin
from tests.emulators import listening, slack_wire, telegram
from tests.emulators.slack import BOT, BOT_TOKEN, MENTION, TEAM, SlackEmulator
from tests.emulators.slack_wire import SECRET
from tests.integration.mqtt_harness import Inbox
from tests.integration.slack_harness import CLUB, HER, connected, delivery, running, sent, settings, workspace

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[SlackEmulator]:
    async with workspace() as emulator:
        yield emulator


# Socket Mode -----------------------------------------------------------------------------------------------------


async def test_a_message_is_stored_and_then_acknowledged(platform: SlackEmulator) -> None:  # P42
    async with connected(platform) as (_, inbox):
        ts = platform.say("Tom &amp; <https://e.org|Jerry> &lt;3")
        await platform.until(lambda: len(platform.acknowledged) == 1)
        (row,) = inbox.rows.values()
        assert (row.external_id, row.client_id, row.text) == (f"slack/{TEAM}/{HER}/{ts}", ts, "Tom & Jerry (https://e.org) <3")
        assert (str(row.address), row.identity, row.sender_name, row.direct) == (f"slack:{HER}", "slack:U0ADA", "Ada", True)


async def test_nothing_is_acknowledged_before_it_is_stored(platform: SlackEmulator) -> None:  # P42
    async with connected(platform) as (transport, inbox):
        inbox.stuck = True
        platform.say("hello")
        seen = len(inbox.batches)
        await inbox.until(lambda: len(inbox.batches) > seen)
        for number in range(3):  # time enough for an acknowledgement
            await sent(transport, delivery(transport, f"meanwhile {number}", "D0BOB"))
        assert platform.acknowledged == []
    inbox.stuck = False
    async with connected(platform, inbox):  # it comes again, and is in the history too
        await platform.until(lambda: len(platform.acknowledged) == 1)
        assert inbox.texts == ["hello"]


async def test_a_message_under_any_number_of_event_ids_is_one(platform: SlackEmulator) -> None:  # BO-048, P42
    async with connected(platform) as (_, inbox):
        ts = platform.say(f"{MENTION} hello", channel=CLUB)  # as app_mention and as message
        for _ in range(3):
            platform.again(CLUB, ts)
        await platform.until(lambda: len(platform.acknowledged) == 8)
        assert inbox.texts == ["hello"]


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_a_socket_that_is_to_go_is_replaced_before_it_does(
    platform: SlackEmulator, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "STEADY_S", 0.0)
    async with connected(platform, first_pause=3600.0) as (_, inbox):  # at once, not after a pause
        await platform.until(lambda: len(platform.sockets) == 1)
        await platform.warn(reason)
        await platform.until(lambda: len(platform.sockets) == 2)
        for number in range(6):  # over both of them
            platform.say(f"message {number}")
        await platform.until(lambda: len(platform.acknowledged) == 6)
        await platform.cut(1)
        platform.say("over the new one")
        await inbox.until(lambda: "over the new one" in inbox.texts)
        assert platform.opened == 2
        assert [up for up, _ in inbox.reports] == [True, True]
        assert "conversations.history" not in [method for method, _ in platform.calls]  # there was no gap


async def test_a_socket_that_breaks_is_told_and_the_gap_is_filled(platform: SlackEmulator) -> None:  # P42, P48
    async with connected(platform) as (_, inbox):
        await platform.until(lambda: len(platform.sockets) == 1)
        platform.next["apps.connections.open"].append(slack_wire.refuses("internal_error"))
        await platform.cut()
        await inbox.until(lambda: not inbox.up)
        platform.say("said meanwhile", told=False)
        await inbox.until(lambda: inbox.up and inbox.texts == ["said meanwhile"])


async def test_socket_mode_that_is_off_is_told(platform: SlackEmulator) -> None:
    async with connected(platform) as (_, inbox):
        await platform.until(lambda: len(platform.sockets) == 1)
        platform.next["apps.connections.open"].extend([slack_wire.refuses("socket_mode_not_enabled")] * 2)
        await platform.warn("link_disabled")
        await inbox.until(lambda: (False, DISABLED) in inbox.reports)
        await inbox.until(lambda: inbox.up)


async def test_a_socket_that_is_not_greeted_is_no_connection(platform: SlackEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "HELLO_S", 0.2)
    platform.greets = False
    inbox = Inbox()
    async with running(platform, inbox):
        await inbox.until(lambda: any("greet" in detail for _, detail in inbox.reports))
        assert not any(up for up, _ in inbox.reports)
        platform.greets = True
        await inbox.until(lambda: inbox.up)


async def test_what_the_store_cannot_take_is_not_acknowledged(platform: SlackEmulator) -> None:  # P42
    class Broken(Inbox):
        async def accept(self, batch: Sequence[Inbound], cursor: Cursor | None = None) -> list[Receipt]:
            if batch:
                raise RuntimeError("the disk is full")
            return await super().accept(batch, cursor)

    transport = SlackTransport("slack", settings(platform), first_pause=0.02)
    platform.say("hello")
    with pytest.raises(RuntimeError, match="the disk is full"):
        await asyncio.wait_for(transport.run(Broken()), 20)
    assert platform.acknowledged == []
    async with connected(platform) as (_, inbox):
        await inbox.until(lambda: inbox.texts == ["hello"])


async def test_a_token_that_is_revoked_is_told_and_taken_again(platform: SlackEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slack_transport, "CHECK_S", 0.05)
    async with connected(platform) as (transport, inbox):
        platform.bot_token = "xoxb-another"
        await inbox.until(lambda: not inbox.up)
        assert inbox.reports[-1][1].startswith(BAD_BOT)
        with pytest.raises(Retry):
            await transport.send(delivery(transport, "hello"))
        platform.bot_token = BOT_TOKEN
        platform.say("said meanwhile", told=False)
        await inbox.until(lambda: inbox.up and inbox.texts == ["said meanwhile"])


async def test_a_look_that_gets_no_answer_ends_nothing(platform: SlackEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slack_transport, "CHECK_S", 0.05)
    async with connected(platform) as (_, inbox):
        platform.next["auth.test"].extend([listening.drops, telegram.answers(503)])
        await platform.until(lambda: not platform.next["auth.test"])
        platform.say("hello")
        await inbox.until(lambda: inbox.texts == ["hello"])
        assert [up for up, _ in inbox.reports] == [True]
    async with connected(platform, app_token=None, signing_secret=SecretStr(SECRET)) as (_, inbox):
        platform.next["auth.test"].append(listening.drops)
        await inbox.until(lambda: not inbox.up)
        await inbox.until(lambda: inbox.up)


async def test_frames_of_other_kinds_disturb_nothing(platform: SlackEmulator) -> None:  # BO-076
    async with connected(platform) as (_, inbox):
        for frame in ({"type": "slash_commands", "payload": {"command": "/x"}}, {"type": "interactive", "payload": 7}, {"payload": None}):
            platform.give(frame)
        for event in ({}, 7, {"type": "message"}, {"type": "message", "channel": "no", "ts": "x", "text": "x"}, {"type": "team_join"}):
            platform.tell(event)  # type: ignore[arg-type]
        for socket in platform.sockets:
            await socket.send_str("[")
            await socket.send_bytes(b"\xff")
        platform.say("after them")
        await platform.until(lambda: len(platform.acknowledged) == 9)
        assert inbox.texts == ["after them"]


# What is meant for clew ------------------------------------------------------------------------------------------


async def test_no_message_is_handled_before_the_own_id_is_known(platform: SlackEmulator) -> None:  # BO-073
    platform.next["auth.test"].extend([slack_wire.refuses("internal_error"), listening.drops])
    platform.say("meanwhile")
    async with connected(platform) as (_, inbox):
        await inbox.until(lambda: inbox.texts == ["meanwhile"])
    assert [method for method, _ in platform.calls][:4] == ["auth.test"] * 3 + ["apps.connections.open"]


async def test_bots_and_the_own_words_are_ignored(platform: SlackEmulator) -> None:  # BO-072, BO-074
    platform.echoes = True
    async with connected(platform) as (transport, inbox):
        await sent(transport, delivery(transport, "my own words"))
        platform.say("I am a bot", bot_id="B0OTHER")
        platform.say("an old bot", subtype="bot_message")
        platform.say("a joiner", subtype="channel_join")
        platform.say("Slack itself", "USLACKBOT")
        platform.say("without an author", "")
        platform.say("a person")
        await inbox.until(lambda: inbox.texts == ["a person"])
        assert len(inbox.rows) == 1


async def test_of_a_channel_only_what_speaks_to_the_bot_is_taken(platform: SlackEmulator) -> None:  # BO-069, BO-070
    async with connected(platform, prefix="!") as (_, inbox):
        for text in ("lunch?", "<!channel> lunch", "<!here> <!everyone> lunch", "<@U0BOB> hello", "<!subteam^S1> hi", "clew: hello"):
            platform.say(text, channel=CLUB)
        first = platform.say(f"{MENTION}: what is 2+2?", channel=CLUB)
        platform.say(f"hey <@{BOT}|clew>", "U0BOB", CLUB)
        platform.say("!status", channel=CLUB)
        await inbox.until(lambda: len(inbox.rows) == 3)
        assert inbox.texts == ["what is 2+2?", "hey @clew", "status"]
        asked = [arguments["user"] for method, arguments in platform.calls if method == "users.info"]
        assert sorted(asked) == ["U0ADA", "U0BOB"]  # nobody's name of what is not for the bot
        row = next(iter(inbox.rows.values()))
        assert (row.direct, str(row.address), row.sender_name) == (False, f"slack:{CLUB}/{first}", "Ada")


async def test_a_mention_opens_a_thread_in_which_no_other_is_needed(platform: SlackEmulator) -> None:  # BO-069, BO-090
    async with connected(platform) as (transport, inbox):
        root = platform.say(f"{MENTION} hello", channel=CLUB)
        await inbox.until(lambda: len(inbox.rows) == 1)
        await sent(transport, delivery(transport, "hello", CLUB, root))
        assert platform.texts(CLUB, root) == ["hello"]
        for text in ("and now?", "<@U0BOB> what do you think?", "<!here> look", f"{MENTION} <@U0BOB> is busy"):
            platform.say(text, "U0BOB", CLUB, root)
        other = platform.say("not for the bot", channel=CLUB)
        platform.say("nor is this", "U0BOB", CLUB, other)
        platform.say(f"{MENTION} but this is", "U0BOB", CLUB, other)
        platform.say("and this is not", "U0BOB", CLUB, other)
        await inbox.until(lambda: len(inbox.rows) == 4)
        assert inbox.texts == ["hello", "and now?", "@Bob is busy", "but this is"]
        assert [row.address.thread for row in inbox.rows.values()] == [root, root, root, other]
    async with connected(platform, inbox):  # the thread is known after a restart too
        platform.say("still there?", channel=CLUB, thread=root)
        await inbox.until(lambda: inbox.texts[-1] == "still there?")


async def test_a_reply_to_what_clew_said_needs_no_mention(platform: SlackEmulator) -> None:  # BO-069
    async with connected(platform) as (transport, inbox):
        await sent(transport, delivery(transport, "Good morning", CLUB))
        (said,) = platform.messages
        platform.say("good morning", channel=CLUB, thread=said["ts"])
        await inbox.until(lambda: inbox.texts == ["good morning"])
        (row,) = inbox.rows.values()
        assert (row.reply_to, row.address.thread) == (said["ts"], said["ts"])


async def test_threads_in_private_are_chats_of_their_own(platform: SlackEmulator) -> None:
    async with connected(platform) as (_, inbox):
        root = platform.say("one")
        platform.say("two", thread=root)
        await inbox.until(lambda: len(inbox.rows) == 2)
        assert [str(row.address) for row in inbox.rows.values()] == [f"slack:{HER}", f"slack:{HER}/{root}"]


async def test_all_of_a_channel_is_taken_where_the_config_says_so(platform: SlackEmulator) -> None:
    async with connected(platform, groups="all") as (_, inbox):
        platform.say("lunch?", channel=CLUB)
        await inbox.until(lambda: inbox.texts == ["lunch?"])


async def test_what_is_not_for_clew_is_kept_in_its_threads_where_the_config_says_so(platform: SlackEmulator) -> None:  # BO-069
    async with connected(platform, groups="listen") as (_, inbox):
        platform.say("in nobody's thread", channel=CLUB)
        root = platform.say(f"{MENTION} hello", channel=CLUB)
        platform.say("<@U0BOB00000> what do you say?", channel=CLUB, thread=root)
        platform.say("and you?", channel=CLUB, thread=root)
        await inbox.until(lambda: len(inbox.rows) == 3)
        assert [row.kind for row in inbox.rows.values()] == ["message", "context", "message"]
        assert len({str(row.address) for row in inbox.rows.values()}) == 1


async def test_an_edit_names_what_it_changes_and_a_preview_is_none(platform: SlackEmulator) -> None:  # BO-075, BO-076
    async with connected(platform) as (_, inbox):
        ts = platform.say("see https://e.org")
        platform.edit(HER, ts, attachments=[{"title": "a preview"}])
        platform.edit(HER, ts, "see &lt;it&gt;")
        platform.edit(HER, ts, "see it")
        mine = platform.say("not for the bot", channel=CLUB)
        platform.edit(CLUB, mine, f"{MENTION} now for the bot")
        await platform.until(lambda: len(platform.acknowledged) == 6)
        first, *edits = inbox.rows.values()
        assert [(each.kind, each.text, each.edits) for each in edits] == [
            ("edit", "see <it>", first.external_id),
            ("edit", "see it", first.external_id),
        ]


async def test_a_deletion_names_what_is_gone(platform: SlackEmulator) -> None:
    async with connected(platform) as (_, inbox):
        root = platform.say(f"{MENTION} hello", channel=CLUB)
        reply = platform.say("forget it", channel=CLUB, thread=root)
        other = platform.say("not for the bot", channel=CLUB)
        await platform.until(lambda: len(platform.acknowledged) == 4)
        for ts in (reply, other):
            platform.delete(CLUB, ts)
        # A first message whose thread has replies is only marked, and of some deletions Slack tells nothing more than the ts.
        gone = {"type": "message", "subtype": "message_changed", "channel": CLUB, "ts": platform.ts()}
        before = {"user": "U0ADA", "text": f"{MENTION} hello", "ts": root, "thread_ts": root}
        platform.tell(gone | {"message": {"subtype": "tombstone", "user": "USLACKBOT", "ts": root}, "previous_message": before})
        platform.tell({"type": "message", "subtype": "message_deleted", "channel": HER, "ts": platform.ts(), "deleted_ts": "1.000100"})
        await platform.until(lambda: len(platform.acknowledged) == 8)
        deleted = [row for row in inbox.rows.values() if row.kind == "delete"]
        assert [row.edits.removeprefix(f"slack/{TEAM}/") for row in deleted] == [f"{CLUB}/{reply}", f"{CLUB}/{root}", f"{HER}/1.000100"]


async def test_an_emoji_comes_as_a_reaction(platform: SlackEmulator) -> None:
    async with connected(platform) as (transport, inbox):
        await sent(transport, delivery(transport, "May I?", CLUB))
        ts = platform.messages[-1]["ts"]
        platform.react(CLUB, ts, "+1::skin-tone-3")
        platform.react(CLUB, ts, "tada")
        platform.react(CLUB, ts, "x", BOT)
        await platform.until(lambda: len(platform.acknowledged) == 3)
        (row,) = inbox.rows.values()
        assert (row.kind, row.text, row.reply_to, str(row.address)) == ("reaction", "👍", ts, f"slack:{CLUB}")


async def test_names_that_cannot_be_had_cost_no_message(platform: SlackEmulator) -> None:  # BO-065
    platform.scopes -= {"users:read"}
    async with connected(platform) as (_, inbox):
        platform.say("hello <@U0BOB>")
        await inbox.until(lambda: inbox.texts == ["hello @U0BOB"])


# What was missed -------------------------------------------------------------------------------------------------


async def test_what_was_said_while_clew_was_away_is_read_in_order(platform: SlackEmulator) -> None:  # P42, P48, BO-049
    async with connected(platform) as (_, inbox):
        root = platform.say(f"{MENTION} hello", channel=CLUB)
        await inbox.until(lambda: len(inbox.rows) == 1)
    platform.page = 3
    for number in range(8):
        platform.say(f"message {number}", told=False)
    platform.say("in the thread", channel=CLUB, thread=root, told=False)
    platform.say("not for the bot", channel=CLUB, told=False)
    later = platform.say(f"{MENTION} a new one", channel=CLUB, told=False)
    platform.say("and below it", channel=CLUB, thread=later, told=False)
    platform.say("from somebody new", "U0NEW", "D0NEW", told=False)
    async with connected(platform, inbox):
        await inbox.until(lambda: len(inbox.rows) == 13)
        mine = [row.text for row in inbox.rows.values() if row.address.chat == HER]
        assert mine == [f"message {number}" for number in range(8)]
        theirs = {row.text: row.address.thread for row in inbox.rows.values() if row.address.chat == CLUB}
        assert theirs == {"hello": root, "in the thread": root, "a new one": later, "and below it": later}
        assert "from somebody new" in inbox.texts


async def test_what_came_late_is_found_behind_what_was_stored_before_it(platform: SlackEmulator) -> None:  # P42
    async with connected(platform) as (_, inbox):
        platform.say("one")
        await inbox.until(lambda: inbox.texts == ["one"])
        platform.say("two, which Slack was to offer again", told=False)
        platform.say("three", channel="D0BOB")
        await inbox.until(lambda: inbox.texts == ["one", "three"])
    async with connected(platform, inbox):
        await inbox.until(lambda: "two, which Slack was to offer again" in inbox.texts)
        assert len(inbox.texts) == 3


async def test_a_history_that_has_to_wait_is_read_all_the_same(platform: SlackEmulator) -> None:  # BO-064
    async with connected(platform) as (_, inbox):
        platform.say("one")
        await inbox.until(lambda: inbox.texts == ["one"])
    platform.say("two", told=False)
    platform.next["users.conversations"].append(slack_wire.too_many(1))
    platform.next["conversations.history"].extend([slack_wire.too_many(1), listening.drops, slack_wire.refuses("internal_error")])
    async with connected(platform, inbox):
        await inbox.until(lambda: inbox.texts == ["one", "two"])


async def test_the_place_stays_until_the_gap_is_filled(platform: SlackEmulator) -> None:  # P42
    async with connected(platform) as (_, inbox):
        platform.say("one")
        await inbox.until(lambda: inbox.texts == ["one"])
    platform.say("two", told=False)
    platform._ts += 3_600_000_000  # an hour later
    platform.next["conversations.history"].append(listening.hangs)
    async with connected(platform, inbox):
        platform.say("three", channel="D0BOB")
        await inbox.until(lambda: inbox.texts == ["one", "three"])
    async with connected(platform, inbox):  # killed in between: the gap is still known
        await inbox.until(lambda: "two" in inbox.texts)


async def test_scopes_that_are_missing_leave_the_conversations_that_were_met(platform: SlackEmulator) -> None:
    platform.scopes -= {"im:read", "channels:read", "groups:read", "mpim:read"}
    async with connected(platform) as (_, inbox):
        platform.say("one")
        await inbox.until(lambda: inbox.texts == ["one"])
    platform.say("two", told=False)
    platform.say("from somebody new", "U0NEW", "D0NEW", told=False)
    async with connected(platform, inbox) as (transport, _):
        await inbox.until(lambda: inbox.texts == ["one", "two"])
        await sent(transport, delivery(transport, "answers go out"))
        assert inbox.texts == ["one", "two"]


async def test_a_channel_that_clew_was_taken_out_of_holds_up_nothing(platform: SlackEmulator) -> None:
    async with connected(platform) as (_, inbox):
        platform.say(f"{MENTION} one", channel=CLUB)
        await inbox.until(lambda: inbox.texts == ["one"])
    platform.members.discard(CLUB)
    platform.say("two", told=False)
    async with connected(platform, inbox):
        await inbox.until(lambda: inbox.texts == ["one", "two"])


async def test_a_first_start_reads_no_old_history(platform: SlackEmulator) -> None:  # BO-049
    platform._ts -= 86_400_000_000
    platform.say("a day ago", told=False)
    platform._ts += 2 * 86_400_000_000
    async with connected(platform) as (_, inbox):
        platform.say("now")
        await inbox.until(lambda: inbox.texts == ["now"])


# Doctor and config -----------------------------------------------------------------------------------------------


async def test_wrong_tokens_are_told_without_them(platform: SlackEmulator) -> None:
    for key, words in (("bot_token", BAD_BOT), ("app_token", BAD_APP)):
        inbox = Inbox()
        more: dict[str, Any] = {key: SecretStr(f"{'xoxb' if key == 'bot_token' else 'xapp'}-wrong")}
        async with running(platform, inbox, **more):
            await inbox.until(lambda inbox=inbox: bool(inbox.reports))  # type: ignore[misc]
        assert inbox.reports[0][1].startswith(words)
        assert not any("wrong" in detail for _, detail in inbox.reports)


async def test_without_a_way_in_it_says_so(platform: SlackEmulator) -> None:  # BO-066
    inbox = Inbox()
    async with running(platform, inbox, app_token=None):
        await inbox.until(lambda: (False, REQUIRED) in inbox.reports)


async def test_the_doctor_asks_slack(platform: SlackEmulator) -> None:
    async def found(**more: Any) -> list[tuple[str, bool]]:
        assert plugin.examine is not None
        return [(each.text, each.serious) for each in await plugin.examine("slack", settings(platform, **more)) if isinstance(each, Fault)]

    assert await found() == []
    assert await found(app_token=None) == [(REQUIRED, True)]
    assert await found(app_token=None, signing_secret=SecretStr(SECRET)) == []
    ((text, _),) = await found(bot_token=SecretStr("xoxb-wrong"))
    assert text.startswith(BAD_BOT)
    ((text, _),) = await found(app_token=SecretStr("xapp-wrong"))
    assert text.startswith(BAD_APP)
    platform.scopes -= {"im:history", "files:read"}
    (history, files) = await found()
    assert ("im:history" in history[0], history[1], "files:read" in files[0], files[1]) == (True, True, True, False)
    await platform.down()
    ((text, _),) = await found()
    assert "no connection to Slack" in text


@pytest.mark.parametrize(
    "wrong",
    [
        {"bot_token": SecretStr("xapp-1")},
        {"app_token": SecretStr("xoxb-1")},
        {"bot_token": SecretStr("xoxb-a\nb")},
        {"signing_secret": SecretStr("a b")},
        {"base_url": "ftp://x"},
        {"groups": "some"},
        {"prefix": ""},
    ],
)
async def test_settings_that_cannot_be_are_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**wrong)
