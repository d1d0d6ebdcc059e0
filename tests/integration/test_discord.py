"""What comes in from Discord, against the emulated gateway and HTTP API, with a host that remembers."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from clew.transport import Attachment
from clew_transports.calls import Unanswered, Unreached
from clew_transports.discord.api import Refusal
from clew_transports.discord.gateway import FATAL
from clew_transports.discord.place import Place
from clew_transports.reading import READABLE
from tests.emulators import discord_faults as faults
from tests.emulators import listening
from tests.emulators.discord import BOT, CHANNEL, OTHER_CHANNEL, ROLE, THREAD, DiscordEmulator, person, private
from tests.integration.discord_harness import ADA, BOB, HOME, ME, beaten, connected, delivery, running, sent
from tests.integration.mqtt_harness import Inbox

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[DiscordEmulator]:
    async with DiscordEmulator() as emulator:
        yield emulator


# In --------------------------------------------------------------------------------------------------------------


async def test_messages_come_with_all_that_is_known_of_them(platform: DiscordEmulator) -> None:
    async with connected(platform) as (_, inbox):
        said = platform.say("hello", BOB)
        await inbox.until(lambda: bool(inbox.rows))
        (row,) = inbox.rows.values()
        assert (row.external_id, str(row.address)) == (f"discord/424242/{said['id']}", f"discord:{private(12)}")
        assert (row.identity, row.sender_name, row.direct, row.client_id) == ("discord:12", "Bob Bo", True, said["id"])
        (hello,) = platform.gateway.identified
        assert hello["intents"] == 1 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 15


async def test_nothing_counts_as_read_before_it_is_stored(platform: DiscordEmulator) -> None:  # P42
    async with connected(platform) as (_, inbox):
        inbox.stuck = True
        before = max(number or 0 for number in platform.gateway.beats)
        platform.say("hello")
        await inbox.until(lambda: any(batch for batch in inbox.batches))
        await beaten(platform)
        assert max(number or 0 for number in platform.gateway.beats) == before
    inbox.stuck = False
    async with connected(platform, inbox):
        await inbox.until(lambda: inbox.texts == ["hello"])
        assert platform.gateway.resumed[-1]["seq"] <= before
        assert len(platform.gateway.identified) == 1


async def test_a_restart_goes_on_with_the_session_where_it_was_left(platform: DiscordEmulator) -> None:  # P42 P48, BO-047
    async with connected(platform) as (_, inbox):
        platform.say("one")
        await inbox.until(lambda: bool(inbox.rows))
    await platform.until(lambda: bool(platform.gateway.codes))
    assert platform.gateway.codes == [4000]  # behind 1000 the session would be gone
    platform.say("two")
    platform.say("three", BOB)
    async with connected(platform, inbox):
        await inbox.until(lambda: inbox.texts == ["one", "two", "three"])
    (resumed,) = platform.gateway.resumed
    assert resumed["path"] == "/resume"
    assert (len(platform.gateway.identified), inbox.duplicates) == (1, [])
    assert not [call for call, _ in platform.calls if call == "GET messages"]


async def test_what_a_lost_session_did_not_tell_is_asked_for(platform: DiscordEmulator) -> None:  # P42 P48
    async with connected(platform, prefix="!") as (_, inbox):
        platform.say("one")
        platform.say(f"{ME} a thread", BOB, THREAD)
        await inbox.until(lambda: len(inbox.rows) == 2)
    platform.gateway.forget()
    for number in range(250):
        platform.say(f"missed {number}")
    platform.say(f"{ME} in the thread", BOB, THREAD)
    platform.say("just talk", BOB, CHANNEL)
    platform.say("! in a channel that was never met", BOB, OTHER_CHANNEL)
    async with connected(platform, inbox, prefix="!"):
        await inbox.until(lambda: len(inbox.rows) == 254)
        platform.say("live again")
        await inbox.until(lambda: inbox.texts[-1:] == ["live again"])
    direct = [row.text for row in inbox.rows.values() if row.direct]
    assert direct == ["one", *(f"missed {number}" for number in range(250)), "live again"]
    others = [(row.text, str(row.address)) for row in inbox.rows.values() if not row.direct][1:]
    assert sorted(others) == [
        ("in a channel that was never met", f"discord:{OTHER_CHANNEL}"),
        ("in the thread", f"discord:{THREAD}"),
    ]
    assert len(platform.gateway.identified) == 2


async def test_a_kill_while_what_was_missed_is_asked_for_loses_nothing(platform: DiscordEmulator) -> None:  # P42 P48
    async with connected(platform) as (_, inbox):
        platform.say("one")
        await inbox.until(lambda: bool(inbox.rows))
    platform.gateway.forget()
    for number in range(3):
        platform.say(f"private {number}")
        platform.say(f"{ME} shared {number}", BOB, CHANNEL)
    for stuck_at in ("private 0", "shared 0"):
        platform.gateway.forget()
        gate = Inbox()
        gate.rows, gate.stored_cursor = dict(inbox.rows), inbox.stored_cursor
        if stuck_at == "private 0":
            gate.stuck = True
        async with running(platform, gate):
            await gate.until(lambda: any(each.text == stuck_at for batch in gate.batches for each in batch))  # noqa: B023
            gate.stuck = True
        inbox.rows, inbox.stored_cursor = gate.rows, gate.stored_cursor
    platform.gateway.forget()
    async with connected(platform, inbox):
        await inbox.until(lambda: len(inbox.rows) == 7)
    assert sorted(inbox.texts) == sorted(["one", *(f"{where} {number}" for where in ("private", "shared") for number in range(3))])


async def test_the_first_start_asks_for_nothing_old(platform: DiscordEmulator) -> None:
    platform.say("of last year", channel=CHANNEL)
    async with connected(platform) as (_, inbox):
        platform.say("new")
        await inbox.until(lambda: inbox.texts == ["new"])
    assert not [call for call, _ in platform.calls if call == "GET messages"]


async def test_another_bot_has_no_past(platform: DiscordEmulator) -> None:
    inbox = Inbox()
    inbox.stored_cursor = str(Place("777", floor=1, directs=(HOME,)))
    platform.say("to another bot")
    async with connected(platform, inbox):
        platform.say("new")
        await inbox.until(lambda: inbox.texts == ["new"])


async def test_history_that_cannot_be_had_at_once_is_asked_for_again(platform: DiscordEmulator) -> None:  # P42
    async with connected(platform) as (_, inbox):
        platform.say("one")
        await inbox.until(lambda: bool(inbox.rows))
    platform.gateway.forget()
    platform.say("missed")
    platform.next["GET messages"].extend([faults.answers(502), listening.drops, faults.answers(503), faults.too_many(0.01)])
    async with connected(platform, inbox):
        await inbox.until(lambda: inbox.texts == ["one", "missed"])


async def test_a_channel_whose_history_is_closed_holds_nothing_up(platform: DiscordEmulator) -> None:
    async with connected(platform) as (_, inbox):
        platform.say("one")
        await inbox.until(lambda: bool(inbox.rows))
    platform.gateway.forget()
    platform.closed.add(CHANNEL)
    platform.say(f"{ME} closed", BOB, CHANNEL)
    platform.say(f"{ME} open", BOB, OTHER_CHANNEL)
    async with connected(platform, inbox):
        await inbox.until(lambda: inbox.texts == ["one", "open"])


async def test_its_own_words_other_bots_webhooks_and_notices_are_ignored(platform: DiscordEmulator) -> None:  # BO-072, BO-074
    async with connected(platform, groups="all") as (transport, inbox):
        await sent(transport, delivery(transport, "my own words"))
        platform.say("I am a bot", person(77, "other", bot=True), HOME)
        platform.say("a webhook speaks", person(78), CHANNEL, webhook_id="78")
        platform.say("joined", BOB, CHANNEL, type=7)
        platform.say("", ADA)
        platform.say("a person")
        await inbox.until(lambda: inbox.texts == ["a person"])
        assert len(inbox.rows) == 1


async def test_of_a_server_only_what_speaks_to_the_bot_is_taken(platform: DiscordEmulator) -> None:  # BO-069, BO-070
    bots, other = {"author": BOT, "id": "5"}, {"author": BOB, "id": "6"}
    async with connected(platform, prefix="!") as (_, inbox):
        for text, more in (
            ("lunch?", {}),
            ("@everyone lunch", {}),
            ("@here lunch", {}),
            ("<@&9501> a role", {}),
            ("/new", {}),
            ("<@13> hello", {}),
            ("no", {"type": 19, "referenced_message": other, "message_reference": {"message_id": "6"}}),
            ("gone", {"type": 19, "referenced_message": None, "message_reference": {"message_id": "7"}}),
            (f"{ME}, what is 2+2, <@13>? <:smile:123> <#9100>", {}),
            (f"hey <@!{BOT['id']}>", {}),
            ("yes", {"type": 19, "referenced_message": bots, "message_reference": {"message_id": "5"}}),
            ("!status", {}),
            (f"{ME} /new", {}),
            (f"<@&{ROLE}> by its own role", {}),
        ):
            platform.say(text, BOB, CHANNEL, **more)
        await inbox.until(lambda: len(inbox.rows) == 6)
        assert inbox.texts == ["what is 2+2, @user13? :smile: <#9100>", "hey @Clew", "yes", "status", "/new", "by its own role"]
        row = list(inbox.rows.values())[2]
        assert (row.direct, row.sender, row.reply_to, str(row.address)) == (False, "12", "5", f"discord:{CHANNEL}")


async def test_its_own_role_is_known_after_a_restart(platform: DiscordEmulator) -> None:
    async with connected(platform) as (_, inbox):
        platform.say("one")
        await inbox.until(lambda: bool(inbox.rows))
    async with connected(platform, inbox):
        platform.say(f"<@&{ROLE}> two", BOB, CHANNEL)
        await inbox.until(lambda: inbox.texts == ["one", "two"])
    assert len(platform.gateway.identified) == 1


async def test_all_of_a_server_is_taken_where_the_config_says_so(platform: DiscordEmulator) -> None:
    async with connected(platform, groups="all") as (_, inbox):
        platform.say("lunch?", BOB, CHANNEL)
        await inbox.until(lambda: inbox.texts == ["lunch?"])


async def test_other_lines_of_a_server_are_kept_where_the_config_says_so(platform: DiscordEmulator) -> None:
    async with connected(platform, groups="listen", prefix="!") as (_, inbox):
        lunch = platform.say("lunch, <@13>?", BOB, CHANNEL)
        platform.say("", BOB, CHANNEL, sticker_items=[{"id": "1"}])
        platform.edit(lunch, "dinner?")
        platform.say(f"{ME} where?", BOB, CHANNEL)
        platform.say("!when?", BOB, CHANNEL)
        await inbox.until(lambda: len(inbox.rows) == 4)
        assert [(row.kind, row.text) for row in inbox.rows.values()] == [
            ("context", "lunch, @user13?"),
            ("edit", "dinner?"),
            ("message", "where?"),
            ("message", "when?"),
        ]


async def test_a_group_of_friends_is_no_private_chat(platform: DiscordEmulator) -> None:  # BO-071
    async with connected(platform) as (_, inbox):
        platform.say("not to you", BOB, "5000999", channel_type=3)
        platform.say("to you", BOB, channel_type=1)
        await inbox.until(lambda: inbox.texts == ["to you"])


async def test_threads_are_chats_of_their_own(platform: DiscordEmulator) -> None:
    async with connected(platform) as (transport, inbox):
        platform.say(f"{ME} a", ADA, CHANNEL)
        platform.say(f"{ME} b", ADA, THREAD)
        await inbox.until(lambda: len(inbox.rows) == 2)
        assert [str(row.address) for row in inbox.rows.values()] == [f"discord:{CHANNEL}", f"discord:{THREAD}"]
        await sent(transport, delivery(transport, "hi", THREAD))
        assert platform.texts(THREAD) == ["hi"]


async def test_an_edit_names_what_it_changes_and_updates_by_discord_are_none(platform: DiscordEmulator) -> None:  # BO-075, BO-076
    async with connected(platform) as (_, inbox):
        said = platform.say("helo https://e.org")
        platform.update(id=said["id"], channel_id=HOME, embeds=[{}])
        platform.update(**{**said, "embeds": [{}]})
        platform.edit(said, "hello")
        platform.update(**{**said, "edited_timestamp": "2027-01-15T08:00:01.766000+00:00", "embeds": [{}]})
        platform.edit(said, "hello!", "2027-01-15T08:00:02+00:00")
        platform.say("behind it")
        await inbox.until(lambda: inbox.texts[-1:] == ["behind it"])
        first, *edits, _ = inbox.rows.values()
        assert [(each.kind, each.text, each.edits) for each in edits] == [
            ("edit", "hello", first.external_id),
            ("edit", "hello!", first.external_id),
        ]
        assert [each.sent_at for each in edits] == [1_800_000_001.766195, 1_800_000_002.0]


async def test_deletions_name_what_they_take_away(platform: DiscordEmulator) -> None:
    async with connected(platform) as (_, inbox):
        one, two, three = (platform.say(text, BOB) for text in ("one", "two", "three"))
        shared = platform.say(f"{ME} shared", BOB, CHANNEL)
        await inbox.until(lambda: len(inbox.rows) == 4)
        platform.delete(one)
        platform.delete(two, three)
        platform.delete(shared)
        await inbox.until(lambda: len(inbox.rows) == 8)
        *_, first, second, third, fourth = inbox.rows.values()
        assert [each.edits.rpartition("/")[2] for each in (first, second, third, fourth)] == [
            each["id"] for each in (one, two, three, shared)
        ]
        assert (first.kind, first.direct, fourth.direct, str(fourth.address)) == ("delete", True, False, f"discord:{CHANNEL}")


async def test_an_emoji_on_a_message_of_the_bot_comes_as_a_reaction(platform: DiscordEmulator) -> None:
    async with connected(platform) as (_, inbox):
        platform.react("55", "👍")
        platform.react("56", "👎", BOB, CHANNEL, message_author_id=BOT["id"])
        platform.react("57", "👍", BOB, CHANNEL, message_author_id="11")
        platform.react("58", "👍", BOT, CHANNEL)
        platform.react("59", "👍", person(77, bot=True), CHANNEL)
        platform.react("60", "custom", emoji={"id": "5", "name": "custom"})
        platform.say("behind it")
        await inbox.until(lambda: inbox.texts[-1:] == ["behind it"])
        mine, servers, _ = inbox.rows.values()
        assert (mine.kind, mine.text, mine.reply_to, mine.direct, str(mine.address)) == ("reaction", "👍", "55", True, f"discord:{HOME}")
        assert (servers.text, servers.reply_to, servers.direct, servers.sender) == ("👎", "56", False, "12")


async def test_files_come_with_their_bytes_and_other_things_are_named(platform: DiscordEmulator) -> None:
    platform.files["a.pdf"] = b"%PDF" * 100_000
    async with connected(platform) as (transport, inbox):
        file = {"id": "71", "filename": "a.pdf", "content_type": "application/pdf", "size": 400_000, "url": f"{platform.url}/files/a.pdf"}
        said = platform.say("", attachments=[file])
        spoken = {"id": "72", "filename": "voice-message.ogg", "content_type": "audio/ogg", "size": 9, "url": f"{platform.url}/files/v"}
        platform.say("", attachments=[spoken], flags=1 << 13)
        platform.say("", sticker_items=[{"id": "1", "name": "wave", "format_type": 1}])
        forwarded: dict[str, Any] = {
            "message_reference": {"type": 1, "message_id": "9"},
            "message_snapshots": [{"message": {"content": "old\nwords"}}],
        }
        platform.say("", **forwarded)
        passed = {"attachments": [{"id": "73", "filename": "b.png", "size": 3, "url": f"{platform.url}/files/b.png"}]}
        sent_on = platform.say("", message_reference={"type": 1, "message_id": "9"}, message_snapshots=[{"message": passed}])
        platform.files["b.png"] = b"png"
        await inbox.until(lambda: len(inbox.rows) == 5)
        document, voice, sticker, passed_on, picture = inbox.rows.values()
        ref = f"{HOME}/{said['id']}/71"
        assert document.attachments == (Attachment("a.pdf", "application/pdf", 400_000, ref),)
        assert [(each.name, each.mime, each.voice) for each in voice.attachments] == [("voice-message.ogg", "audio/ogg", True)]
        assert sticker.refused == READABLE
        assert passed_on.text == "Forwarded:\n> old\n> words"
        assert [each.ref for each in picture.attachments] == [f"{HOME}/{sent_on['id']}/73"]
        assert [piece async for piece in transport.fetch(picture.attachments[0].ref)] == [b"png"]
        assert b"".join([piece async for piece in transport.fetch(ref)]) == platform.files["a.pdf"]
        for gone in (f"{HOME}/{said['id']}/72", f"{HOME}/1/71", "x", "1/2/x/y"):
            with pytest.raises(LookupError):
                [piece async for piece in transport.fetch(gone)]
        for later in (faults.answers(502), faults.answers(504), faults.too_many(50)):
            platform.next["GET messages one"].append(later)
            with pytest.raises((Unreached, Unanswered, Refusal)):
                [piece async for piece in transport.fetch(ref)]


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("MESSAGE_CREATE", {}),
        ("MESSAGE_CREATE", {"id": "x", "author": {"id": "y", "bot": True}, "type": 0}),
        ("MESSAGE_CREATE", {"id": "1", "channel_id": "2", "author": {"id": "3"}, "type": 0, "content": "x", "timestamp": "yesterday"}),
        ("MESSAGE_UPDATE", {"edited_timestamp": 5, "author": 7}),
        ("MESSAGE_REACTION_ADD", {"emoji": None}),
        ("GUILD_CREATE", {"id": None, "channels": 5}),
        ("GUILD_CREATE", {"id": float("inf"), "channels": []}),
        ("GUILD_CREATE", {"id": "5", "channels": [], "roles": [5]}),
        ("MESSAGE_CREATE", {"id": float("inf"), "channel_id": "1", "author": {"bot": True}, "type": 0}),
        ("GUILD_DELETE", {"id": [1]}),
        ("MESSAGE_NEW_FASHION", {"a": [1]}),
    ],
)
async def test_an_event_of_another_shape_is_passed_over(platform: DiscordEmulator, kind: str, told: dict[str, Any]) -> None:  # BO-076
    async with connected(platform) as (_, inbox):
        platform.gateway.dispatch(kind, told)
        platform.say("after it")
        await inbox.until(lambda: inbox.texts == ["after it"])


# Connection ------------------------------------------------------------------------------------------------------


async def test_heartbeats_go_on_and_one_that_is_asked_for_comes_at_once(platform: DiscordEmulator) -> None:
    async with connected(platform):  # by those that it asks for
        pass
    platform.gateway.beat_s = 0.05
    async with running(platform, Inbox()):
        await platform.until(lambda: len(platform.gateway.beats) > 5)


async def test_a_connection_that_answers_no_heartbeat_is_renewed(platform: DiscordEmulator) -> None:  # P48, BO-091
    platform.gateway.beat_s = 0.2
    async with connected(platform) as (_, inbox):
        platform.gateway.deaf = True
        await inbox.until(lambda: (False, "Discord answered no heartbeat") in inbox.reports)
        platform.gateway.deaf = False
        platform.say("meanwhile")
        await inbox.until(lambda: inbox.texts == ["meanwhile"] and inbox.up)
        assert 4000 in platform.gateway.codes
        assert platform.gateway.resumed
        assert len(platform.gateway.identified) == 1


@pytest.mark.parametrize(
    "how", ["reconnect", "invalid but resumable", "drop", "close 4000", "close 4008", "nonsense", "no number", "no JSON"]
)
async def test_a_session_goes_on_behind_a_connection_that_ended(platform: DiscordEmulator, how: str) -> None:  # P42 P48
    async with connected(platform) as (_, inbox):
        match how:
            case "reconnect":
                platform.gateway.reconnect()
            case "invalid but resumable":
                platform.gateway.invalidate(resumable=True)
            case "drop":
                platform.gateway.drop()
            case "nonsense":
                platform.gateway.say('{"op": 0, "s": "x"}')
            case "no number":
                platform.gateway.say('{"op": 0, "s": Infinity, "t": "MESSAGE_CREATE", "d": {}}')
            case "no JSON":
                platform.gateway.say("{" * 1000)
            case _:
                platform.gateway.close(int(how.split()[1]))
        await inbox.until(lambda: not inbox.up)
        platform.say("meanwhile")
        await inbox.until(lambda: inbox.up and inbox.texts == ["meanwhile"])
        assert (len(platform.gateway.identified), len(platform.gateway.resumed)) == (1, 1)


@pytest.mark.parametrize("how", ["invalid", "close 4007", "close 4009"])
async def test_a_session_that_is_over_is_begun_anew_and_nothing_is_missed(platform: DiscordEmulator, how: str) -> None:  # P42 P48
    async with connected(platform) as (_, inbox):
        platform.say("one")
        await inbox.until(lambda: bool(inbox.rows))
        if how == "invalid":
            platform.gateway.invalidate(resumable=False)
        else:
            platform.gateway.close(int(how.split()[1]))
            platform.gateway.forget()
        platform.say("meanwhile")
        await inbox.until(lambda: inbox.up and inbox.texts == ["one", "meanwhile"])
        assert len(platform.gateway.identified) == 2


async def test_a_platform_that_is_down_is_told_and_met_again(platform: DiscordEmulator) -> None:  # P48
    async with connected(platform) as (_, inbox):
        await platform.down()
        await inbox.until(lambda: not inbox.up)
        platform.say("said meanwhile")
        await platform.up()
        await inbox.until(lambda: inbox.up and inbox.texts == ["said meanwhile"])


@pytest.mark.parametrize("code", [4004, 4010, 4011, 4012, 4013, 4014])
async def test_what_discord_does_not_want_to_see_again_is_told_and_left_alone(platform: DiscordEmulator, code: int) -> None:
    async with connected(platform, fatal_pause=3600.0) as (_, inbox):
        seen = len(platform.calls)
        platform.gateway.close(code)
        await inbox.until(lambda: inbox.reports[-1] == (False, FATAL[code]))
        assert (len(platform.gateway.identified), len(platform.calls), platform.gateway.connections) == (1, seen, [])


async def test_an_intent_that_is_off_is_told_and_looked_for_again(platform: DiscordEmulator) -> None:
    platform.gateway.allowed = 0
    inbox = Inbox()
    async with running(platform, inbox):
        await inbox.until(lambda: (False, FATAL[4014]) in inbox.reports)
        platform.gateway.allowed = 1 << 15
        await inbox.until(lambda: inbox.up)


async def test_a_wrong_token_is_told_without_the_token(platform: DiscordEmulator) -> None:
    inbox = Inbox()
    async with running(platform, inbox, token="MTIzNDU2Nzg5.wrong.wrong-wrong-wrong", fatal_pause=3600.0):
        await inbox.until(lambda: (False, FATAL[4004]) in inbox.reports)
    assert not any("wrong" in detail for _, detail in inbox.reports)
    assert len(platform.calls) == 1


async def test_no_session_is_begun_where_none_may_be(platform: DiscordEmulator) -> None:
    platform.sessions_left = 0
    inbox = Inbox()
    async with running(platform, inbox):
        await inbox.until(lambda: any("no further sessions" in detail for _, detail in inbox.reports))
    assert platform.gateway.identified == []
