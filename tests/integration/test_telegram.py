"""The Telegram transport against the emulated Bot API, with a host that remembers."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr, ValidationError

from clew.config import Person, TransportSection
from clew.transport import Address, Attachment, Delivery, Preview, Refused, Retry, Sent, Typing, Unknown
from clew_transports.reading import READABLE
from clew_transports.telegram.doctor import BAD_TOKEN, SECOND_POLLER, WEBHOOK_SET
from clew_transports.telegram.settings import Settings
from clew_transports.telegram.transport import TelegramTransport, plugin
from clew_transports.telegram.updates import Place
from tests.emulators import listening, telegram
from tests.emulators.telegram import BOT, TOKEN, TelegramEmulator, person
from tests.integration.engine import calling, engine
from tests.integration.mqtt_harness import Inbox
from tests.integration.test_engine_approvals import Ledger

pytestmark = pytest.mark.asyncio

ADA, BOB = person(11), person(12, "Bob", last_name="Bo")
GROUP, SUPER = -55, -1_000_055


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[TelegramEmulator]:
    async with TelegramEmulator() as emulator:
        yield emulator


@contextlib.asynccontextmanager
async def running(platform: TelegramEmulator, inbox: Inbox, *, answer_s: float = 20.0, **more: Any) -> AsyncIterator[TelegramTransport]:
    settings = Settings(token=SecretStr(more.pop("token", TOKEN)), base_url=platform.url, **more)
    transport = TelegramTransport("telegram", settings, first_pause=0.02, poll_s=5.0, answer_s=answer_s)
    task = asyncio.create_task(transport.run(inbox))
    try:
        yield transport
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def connected(platform: TelegramEmulator, **more: Any) -> AsyncIterator[tuple[TelegramTransport, Inbox]]:
    inbox = Inbox()
    async with running(platform, inbox, **more) as transport:
        await inbox.until(lambda: inbox.up)
        yield transport, inbox


def delivery(transport: TelegramTransport, text: str, chat: str = "11", **more: Any) -> Delivery:
    return Delivery("k3v9", Address("telegram", chat), text, tuple(transport.parts(text)), 1.0, **more)


async def sent(transport: TelegramTransport, whole: Delivery) -> Delivery:
    """Sends part after part, as the host does."""
    while whole.sent < len(whole.parts):
        upto = (await transport.send(whole)).upto
        assert upto == whole.sent + 1
        whole = replace(whole, sent=upto)
    return whole


# In --------------------------------------------------------------------------------------------------------------


async def test_what_waited_before_the_first_start_comes_in_order(platform: TelegramEmulator) -> None:  # P42, BO-053
    for number in range(6):
        platform.say(f"message {number}")
    async with connected(platform) as (_, inbox):
        await inbox.until(lambda: len(inbox.rows) == 6)
        assert inbox.texts == [f"message {number}" for number in range(6)]
        first = next(iter(inbox.rows.values()))
        assert first.external_id == "telegram/4242/11/101"
        assert (first.address, first.identity, first.sender_name, first.direct) == (
            Address("telegram", "11"),
            "telegram:11",
            "Ada",
            True,
        )
        await platform.until(lambda: platform.confirmed == 6)
        assert not [arguments for _, arguments in platform.calls if "drop_pending_updates" in arguments]


async def test_nothing_is_confirmed_before_it_is_stored(platform: TelegramEmulator) -> None:  # P42
    inbox = Inbox()
    inbox.stuck = True
    platform.say("hello")
    async with running(platform, inbox) as transport:
        await inbox.until(lambda: bool(inbox.batches))
        for number in range(20):  # time enough for another poll
            await sent(transport, delivery(transport, f"meanwhile {number}"))
        assert platform.polls == [None]
    assert (platform.confirmed, inbox.stored_cursor) == (0, None)
    inbox.stuck = False
    async with running(platform, inbox):
        await inbox.until(lambda: bool(inbox.rows))
        await platform.until(lambda: platform.confirmed == 1)


async def test_a_restart_goes_on_behind_what_is_stored(platform: TelegramEmulator) -> None:  # P42, BO-047
    platform.say("one")
    async with connected(platform) as (_, inbox):
        await inbox.until(lambda: bool(inbox.rows))
    platform.say("two")
    async with running(platform, inbox):
        await inbox.until(lambda: len(inbox.rows) == 2)
    assert inbox.duplicates == []
    inbox.stored_cursor = None  # as if the process had died between the commit and the next poll
    platform.give({"message": next(iter(platform_messages(inbox)))})
    async with running(platform, inbox):
        await inbox.until(lambda: bool(inbox.duplicates))
    assert inbox.texts == ["one", "two"]


def platform_messages(inbox: Inbox) -> list[dict[str, Any]]:
    """The messages that were stored, as Telegram would deliver them again."""
    return [
        {"message_id": int(row.client_id), "from": ADA, "chat": {"id": 11, "type": "private"}, "date": 1, "text": row.text}
        for row in inbox.rows.values()
    ]


async def test_ids_that_begin_anew_lower_are_read_and_confirmed(platform: TelegramEmulator) -> None:  # P42
    platform.say("before the silence")
    async with connected(platform) as (_, inbox):
        await inbox.until(lambda: len(inbox.rows) == 1)
        await platform.until(lambda: platform.confirmed == 1)
        platform.jump(5_000)
        platform.say("after it")
        await inbox.until(lambda: len(inbox.rows) == 2)
        await platform.until(lambda: platform.confirmed == 2)
        assert platform.polls[-1] == 5_002
        assert inbox.duplicates == []


async def test_no_message_is_handled_before_the_own_id_is_known(platform: TelegramEmulator) -> None:  # BO-073
    platform.next["getMe"].extend([telegram.refuses(500, "Internal Server Error"), listening.drops])
    platform.say("meanwhile")
    async with connected(platform) as (_, inbox):
        await inbox.until(lambda: inbox.texts == ["meanwhile"])
    methods = [method for method, _ in platform.calls]
    assert methods.index("getUpdates") == 3


async def test_bots_channels_and_the_own_words_are_ignored(platform: TelegramEmulator) -> None:  # BO-072, BO-074
    platform.echoes = True
    async with connected(platform) as (transport, inbox):
        await sent(transport, delivery(transport, "my own words"))
        platform.say("I am a bot", {"id": 77, "is_bot": True, "first_name": "Other"}, 11)
        platform.say("a channel speaks", ADA, GROUP, sender_chat={"id": -9, "type": "channel"})
        platform.give({"message": {"message_id": 9, "chat": {"id": 11, "type": "private"}, "date": 1}})
        platform.say("", ADA, pinned_message={"message_id": 3})
        platform.say("a person")
        await inbox.until(lambda: inbox.texts == ["a person"])
        assert len(inbox.rows) == 1


async def test_of_a_group_only_what_speaks_to_the_bot_is_taken(platform: TelegramEmulator) -> None:  # BO-069, BO-070
    bots = {"message_id": 5, "from": BOT, "text": "an answer"}
    other = {"message_id": 6, "from": BOB, "text": "mine"}
    async with connected(platform, prefix="!") as (_, inbox):
        for text, more in (
            ("lunch?", {}),
            ("@all @everyone lunch", {}),
            ("/new", {}),
            ("/new@OtherBot", {}),
            ("@ClewTestBotter hello", {}),
            ("no", {"reply_to_message": other}),
            ("in a topic", {"reply_to_message": {**bots, "forum_topic_created": {}}, "message_thread_id": 7, "is_topic_message": True}),
            ("@clewtestbot, what is 👍 2+2?", {}),
            ("👍👍 hey @ClewTestBot", {}),
            ("yes", {"reply_to_message": bots}),
            ("!status", {}),
            ("/new@ClewTestBot", {}),
        ):
            platform.say(text, BOB, GROUP, **more)
        platform.say("Clew, see", BOB, GROUP, entities=[{"type": "text_mention", "offset": 0, "length": 4, "user": BOT}])
        await inbox.until(lambda: len(inbox.rows) == 6)
        assert inbox.texts == ["what is 👍 2+2?", "👍👍 hey @ClewTestBot", "yes", "status", "/new", "Clew, see"]
        row = list(inbox.rows.values())[2]
        assert (row.direct, row.sender, row.sender_name, row.reply_to, str(row.address)) == (
            False,
            "12",
            "Bob Bo",
            "5",
            f"telegram:{GROUP}",
        )


async def test_what_is_not_for_the_bot_is_kept_where_the_config_says_so(platform: TelegramEmulator) -> None:  # BO-069
    async with connected(platform, groups="listen", prefix="!") as (_, inbox):
        said = platform.say("lunch?", BOB, GROUP)
        platform.say("I am a bot", {"id": 77, "is_bot": True, "first_name": "Other"}, GROUP)
        platform.say("", BOB, GROUP, sticker={"file_id": "s"})
        platform.say("!help", ADA, GROUP)
        platform.edit(said, "lunch at one?")
        await inbox.until(lambda: len(inbox.rows) == 3)
        assert [(row.kind, row.text, row.sender) for row in inbox.rows.values()] == [
            ("context", "lunch?", "12"),
            ("message", "help", "11"),
            ("edit", "lunch at one?", "12"),
        ]
        assert [row.sent_at for row in inbox.rows.values()][2] == 1_800_000_009


async def test_all_of_a_group_is_taken_where_the_config_says_so(platform: TelegramEmulator) -> None:
    async with connected(platform, groups="all") as (_, inbox):
        platform.say("lunch?", BOB, GROUP)
        await inbox.until(lambda: inbox.texts == ["lunch?"])


async def test_topics_are_chats_and_threads_of_replies_are_not(platform: TelegramEmulator) -> None:
    async with connected(platform) as (transport, inbox):
        platform.say("@ClewTestBot a", ADA, SUPER, message_thread_id=7, is_topic_message=True)
        platform.say("@ClewTestBot b", ADA, SUPER, message_thread_id=8)
        platform.say("c", ADA, message_thread_id=9, is_topic_message=True)
        await inbox.until(lambda: len(inbox.rows) == 3)
        assert [str(row.address) for row in inbox.rows.values()] == [f"telegram:{SUPER}/7", f"telegram:{SUPER}", "telegram:11/9"]
        answer = Delivery("1", Address("telegram", str(SUPER), "7"), "hi", tuple(transport.parts("hi")), 1.0)
        await sent(transport, answer)
        assert platform.messages[-1]["message_thread_id"] == 7


async def test_an_emoji_on_a_message_comes_as_a_reaction_to_it(platform: TelegramEmulator) -> None:
    async with connected(platform) as (_, inbox):
        platform.react(101, "❤", "👍", before=["❤"])
        platform.react(101, before=["👍"])
        platform.react(101, "👍", user=telegram.BOT)
        platform.react(55, "👎", user=ADA, chat=SUPER)
        platform.give(
            {
                "message_reaction": {
                    "chat": {"id": SUPER, "type": "supergroup"},
                    "message_id": 55,
                    "actor_chat": {"id": SUPER},
                    "date": 1,
                    "old_reaction": [],
                    "new_reaction": [{"type": "custom_emoji", "custom_emoji_id": "5"}],
                }
            }
        )
        platform.say("behind it")
        await inbox.until(lambda: any(row.kind == "message" for row in inbox.rows.values()))
        mine, groups, _ = inbox.rows.values()
        assert (mine.kind, mine.text, mine.reply_to, mine.direct, str(mine.address)) == ("reaction", "👍", "101", True, "telegram:11")
        assert (groups.text, groups.reply_to, groups.direct, str(groups.address)) == ("👎", "55", False, f"telegram:{SUPER}")


async def test_a_question_has_buttons_below_its_last_part(platform: TelegramEmulator) -> None:
    async with connected(platform) as (transport, inbox):
        await sent(transport, delivery(transport, "May I?\n\n" + "word " * 1200, asks=True))
        await sent(transport, delivery(transport, "hello"))
        first, last, plain = platform.messages
        assert "reply_markup" not in first
        assert "reply_markup" not in plain
        (row,) = last["reply_markup"]["inline_keyboard"]
        assert [button["callback_data"] for button in row] == ["yes", "no", "always"]
        platform.press(last, "always")
        await inbox.until(lambda: bool(inbox.rows))
        (pressed,) = inbox.rows.values()
        assert (pressed.kind, pressed.text, pressed.reply_to, pressed.sender) == ("reaction", "always", str(last["message_id"]), "11")
        await platform.until(lambda: bool(platform.pressed) and last["reply_markup"] is None)


async def test_a_button_answers_the_question_of_whoever_was_asked(platform: TelegramEmulator, tmp_path: Path) -> None:
    ledger = Ledger()
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[ledger.tool]) as world:
        section = Settings(token=SecretStr(TOKEN), base_url=platform.url, groups="all")
        transports = {**world.config.transports, "telegram": TransportSection(kind="telegram", name="telegram", settings=section)}
        people = {"ada": Person(identities=("telegram:11",)), "bob": Person(identities=("telegram:12",))}
        world.config = world.config.model_copy(update={"transports": transports, "people": people})
        async with world.running():
            platform.say("pay the rent", chat=SUPER, message_thread_id=7, is_topic_message=True)
            await platform.until(lambda: any("reply_markup" in each for each in platform.messages))
            (asked,) = platform.messages
            platform.press(asked, "yes", telegram.person(12, "Bob"))
            await platform.until(lambda: bool(platform.pressed))
            assert platform.pressed[0][1] == "This question is closed, or somebody else was asked."
            assert ledger.done == []
            platform.press(asked, "yes")
            await platform.until(lambda: "done" in platform.texts())
            assert ledger.done == ["rent"]
            await platform.until(lambda: asked["reply_markup"] is None)
            platform.press(asked, "no")
            await platform.until(lambda: len(platform.pressed) == 3)
            assert platform.pressed[2][1] == "This question is closed, or somebody else was asked."


async def test_an_edit_names_what_it_changes(platform: TelegramEmulator) -> None:  # BO-075
    async with connected(platform) as (_, inbox):
        message = platform.say("helo")
        platform.edit(message, "hello")
        platform.edit(message, "hello!")
        await inbox.until(lambda: len(inbox.rows) == 3)
        first, *edits = inbox.rows.values()
        assert [(each.kind, each.text, each.edits) for each in edits] == [
            ("edit", "hello", first.external_id),
            ("edit", "hello!", first.external_id),
        ]


async def test_pictures_and_files_come_with_their_bytes_and_other_things_are_named(platform: TelegramEmulator) -> None:
    platform.files["big"] = b"jpeg" * 100_000
    async with connected(platform) as (transport, inbox):
        photos = [{"file_id": "small", "file_size": 10}, {"file_id": "big", "file_size": 400_000}]
        platform.say("", photo=photos, caption="what is this?")
        platform.say("", document={"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf", "file_size": 7})
        platform.say("", sticker={"file_id": "s"})
        await inbox.until(lambda: len(inbox.rows) == 3)
        picture, document, sticker = inbox.rows.values()
        assert (picture.text, picture.attachments) == ("what is this?", (Attachment("photo.jpg", "image/jpeg", 400_000, "big"),))
        assert document.attachments == (Attachment("a.pdf", "application/pdf", 7, "d"),)
        assert sticker.refused == READABLE
        assert b"".join([piece async for piece in transport.fetch("big")]) == platform.files["big"]
        with pytest.raises(LookupError):
            [piece async for piece in transport.fetch("gone")]


async def test_start_asks_for_help(platform: TelegramEmulator) -> None:
    async with connected(platform) as (_, inbox):
        platform.say("/start invited")
        await inbox.until(lambda: inbox.texts == ["/help"])


@pytest.mark.parametrize("update", [{"message": {}}, {"message": 7}, {"message": {"message_id": "x", "from": ADA, "chat": {"id": 1}}}])
async def test_an_update_of_another_shape_is_passed_over(platform: TelegramEmulator, update: dict[str, Any]) -> None:  # BO-076
    async with connected(platform) as (_, inbox):
        platform.give(update)
        platform.say("after it")
        await inbox.until(lambda: inbox.texts == ["after it"])
        await platform.until(lambda: platform.confirmed == 2)


# Connection ------------------------------------------------------------------------------------------------------


async def test_a_second_poller_is_told_once_and_survived(platform: TelegramEmulator) -> None:  # BO-093
    async with connected(platform) as (_, inbox):
        platform.next["getUpdates"].extend([telegram.refuses(409, "Conflict: terminated by other getUpdates request")] * 3)
        platform.say("go")  # ends the poll that waits
        await inbox.until(lambda: inbox.texts == ["go"])
        await inbox.until(lambda: (False, SECOND_POLLER) in inbox.reports)
        await inbox.until(lambda: inbox.up)
        platform.say("after the conflict")
        await inbox.until(lambda: inbox.texts == ["go", "after the conflict"])


async def test_a_webhook_that_is_set_elsewhere_is_told_and_left_alone(platform: TelegramEmulator) -> None:
    platform.webhook = "https://elsewhere.example/hook"
    inbox = Inbox()
    async with running(platform, inbox):
        await inbox.until(lambda: (False, WEBHOOK_SET) in inbox.reports)
    assert not inbox.up
    assert "deleteWebhook" not in {method for method, _ in platform.calls}


async def test_a_wrong_token_is_told_without_the_token(platform: TelegramEmulator) -> None:
    inbox = Inbox()
    async with running(platform, inbox, token="1:wrong"):
        await inbox.until(lambda: (False, BAD_TOKEN) in inbox.reports)
    assert not any("wrong" in detail for _, detail in inbox.reports)


async def test_polls_that_get_no_answer_are_given_up_and_told(platform: TelegramEmulator) -> None:  # BO-091
    inbox = Inbox()
    platform.next["getUpdates"].append(listening.hangs)
    async with running(platform, inbox, answer_s=0.2):
        await inbox.until(lambda: any(not up and "no answer" in detail for up, detail in inbox.reports))
        platform.say("after the silence")
        await inbox.until(lambda: inbox.texts == ["after the silence"])
        assert inbox.up


async def test_a_platform_that_is_down_is_told_and_met_again(platform: TelegramEmulator) -> None:
    async with connected(platform) as (_, inbox):
        await platform.down()
        await inbox.until(lambda: not inbox.up)
        platform.say("said meanwhile")
        await platform.up()
        await inbox.until(lambda: inbox.up and inbox.texts == ["said meanwhile"])


# Out -------------------------------------------------------------------------------------------------------------


async def test_a_reply_is_rendered_and_split_by_what_telegram_counts(platform: TelegramEmulator) -> None:  # P43, BO-055, BO-059, BO-061
    code = "\n".join(f"print({number})  # <&>" for number in range(400))
    text = f"**Look** [here](https://e.org):\n\n```python\n{code}\n```\n\n- א שלום\n- 你好。\n" + "Sentence 😀. " * 500 + "!.-" * 1400
    async with connected(platform) as (transport, _):
        whole = await sent(transport, delivery(transport, text))
        assert len(platform.messages) == len(whole.parts) > 3
        assert all(each["html"] for each in platform.messages)
        shown = "".join(platform.texts())
        for number in range(400):
            assert shown.count(f"print({number})  # <&>") == 1
        assert shown.count("😀") == 500
        assert shown.count("!.-") == 1400
        fences = [each["html"] for each in platform.messages if "print(" in each["text"]]
        assert len(fences) > 1
        assert all("language-python" in html for html in fences)


async def test_markup_that_is_refused_is_sent_once_as_it_was_written(platform: TelegramEmulator) -> None:  # BO-062, BO-063
    async with connected(platform) as (transport, _):
        platform.next["sendMessage"].append(telegram.refuses(400, "Bad Request: can't parse entities: some fault"))
        await sent(transport, delivery(transport, "Sure! Step 1 - done."))
        await sent(transport, delivery(transport, "use snake_case and *args [x"))
        assert platform.texts() == ["Sure! Step 1 - done.", "use snake_case and *args [x"]
        assert [each["html"] for each in platform.messages] == [None, "use snake_case and *args [x"]


async def test_a_429_is_kept_for_its_chat_and_not_for_others(platform: TelegramEmulator) -> None:  # BO-064
    async with connected(platform) as (transport, _):
        platform.next["sendMessage"].append(telegram.too_many(40))
        with pytest.raises(Retry) as caught:
            await transport.send(delivery(transport, "hello"))
        assert caught.value.after == 40
        calls = len(platform.calls)
        with pytest.raises(Retry) as caught:
            await transport.send(delivery(transport, "hello"))
        assert 0 < (caught.value.after or 0) <= 40
        await transport.hint(Address("telegram", "11"), Typing())
        assert [method for method, _ in platform.calls[calls:] if method != "getUpdates"] == []
        await sent(transport, delivery(transport, "to another", chat="12"))
        assert platform.texts() == ["to another"]


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (telegram.refuses(403, "Forbidden: bot was blocked by the user"), Refused),
        (telegram.refuses(400, "Bad Request: chat not found"), Refused),
        (telegram.refuses(500, "Internal Server Error"), Retry),
        (telegram.answers(502), Retry),
        (telegram.answers(504), Unknown),
        (listening.drops, Unknown),
        (listening.does_and_drops, Unknown),
        (listening.hangs, Unknown),
    ],
)
async def test_what_failures_of_a_send_mean(platform: TelegramEmulator, fault: listening.Fault, outcome: type[Exception]) -> None:  # P43
    async with connected(platform, answer_s=1.0 if fault is listening.hangs else 20.0) as (transport, _):
        platform.next["sendMessage"].append(fault)
        with pytest.raises(outcome) as caught:
            await transport.send(delivery(transport, "hello"))
        assert TOKEN not in str(caught.value)


async def test_nobody_listening_means_that_nothing_was_sent(platform: TelegramEmulator) -> None:  # P43, BO-054
    async with connected(platform) as (transport, _):
        await platform.down()
        with pytest.raises(Retry):
            await transport.send(delivery(transport, "hello"))


async def test_a_chat_without_a_number_is_refused(platform: TelegramEmulator) -> None:
    async with connected(platform) as (transport, _):
        with pytest.raises(Refused, match="numbers"):
            await transport.send(delivery(transport, "hello", chat="ada"))


async def test_a_reply_in_a_group_is_one_to_the_question(platform: TelegramEmulator) -> None:
    async with connected(platform) as (transport, _):
        await sent(transport, delivery(transport, "a", str(GROUP), in_reply_to="5", context={"chat": str(GROUP)}))
        await sent(transport, delivery(transport, "b", in_reply_to="5", context={"chat": "11"}))
        assert [each.get("reply_to_message") for each in platform.messages] == [{"message_id": 5}, None]


@pytest.mark.parametrize("told", ["by a message", "by a refusal"])
async def test_a_group_that_became_a_supergroup_keeps_its_address(platform: TelegramEmulator, told: str) -> None:  # BO-124
    async with connected(platform) as (transport, inbox):
        platform.move(GROUP, SUPER)
        if told == "by a message":
            platform.say("", ADA, GROUP, migrate_to_chat_id=SUPER)
            platform.say("", ADA, SUPER, migrate_from_chat_id=GROUP)
            await inbox.until(lambda: bool(inbox.stored_cursor))
        await sent(transport, delivery(transport, "hello", str(GROUP), in_reply_to="5", context={"chat": str(GROUP)}))
        assert (platform.messages[-1]["chat"]["id"], "reply_to_message" in platform.messages[-1]) == (SUPER, False)
        platform.say("@ClewTestBot hi", ADA, SUPER)
        await inbox.until(lambda: bool(inbox.rows))
        (row,) = inbox.rows.values()
        assert (str(row.address), row.external_id) == (f"telegram:{GROUP}", f"telegram/4242/{SUPER}/{row.client_id}")
    assert Place.load(inbox.stored_cursor).current(str(GROUP)) == str(SUPER)
    polls = len(platform.polls)
    async with running(platform, inbox) as transport:
        await platform.until(lambda: len(platform.polls) > polls)
        await sent(transport, delivery(transport, "after a restart", str(GROUP)))
        assert platform.messages[-1]["chat"]["id"] == SUPER


# Hints -----------------------------------------------------------------------------------------------------------


async def test_typing_everywhere_and_drafts_in_private_chats(platform: TelegramEmulator) -> None:
    async with connected(platform) as (transport, _):
        await transport.hint(Address("telegram", str(SUPER), "7"), Typing())
        await platform.until(lambda: platform.actions == [{"chat_id": SUPER, "message_thread_id": 7, "action": "typing"}])
        await transport.hint(Address("telegram", "11"), Preview("turn1", "**half** a sen", " sen"))
        await platform.until(lambda: len(platform.drafts) == 1)
        assert (platform.drafts[0]["text"], platform.drafts[0]["parse_mode"]) == ("<b>half</b> a sen", "HTML")


async def test_drafts_come_at_their_rate_and_the_reply_after_the_last(platform: TelegramEmulator) -> None:  # BO-064
    async with connected(platform) as (transport, _):
        gate = asyncio.Event()
        platform.next["sendMessageDraft"].append(listening.after(gate))
        for length in range(1, 60):
            await transport.hint(Address("telegram", "11"), Preview("turn1", "x" * length, "x"))
        await platform.until(lambda: "sendMessageDraft" in {method for method, _ in platform.calls})
        sending = asyncio.create_task(transport.send(delivery(transport, "x" * 60)))
        for number in range(20):  # time enough for the reply
            await sent(transport, delivery(transport, f"meanwhile {number}", chat="12"))
        assert platform.texts(11) == []
        gate.set()
        assert isinstance(await sending, Sent)
        assert platform.texts(11) == ["x" * 60]
        assert [method for method, _ in platform.calls].count("sendMessageDraft") == 1


@pytest.mark.parametrize("fault", [telegram.too_many(5), listening.drops, telegram.refuses(404, "Not Found"), telegram.answers(502)])
async def test_a_hint_that_fails_fails_nothing(platform: TelegramEmulator, fault: listening.Fault) -> None:  # BO-065
    async with connected(platform) as (transport, _):
        for event in (Preview("turn1", "half", "half"), Typing()):
            platform.next["sendMessageDraft"].append(fault)
            platform.next["sendChatAction"].append(fault)
            seen = len(platform.calls)
            await transport.hint(Address("telegram", "77"), event)
            await platform.until(lambda seen=seen: len(platform.calls) > seen)  # type: ignore[misc]
        await sent(transport, delivery(transport, "the reply"))
        assert platform.texts() == ["the reply"]


# Doctor and config -----------------------------------------------------------------------------------------------


async def test_the_doctor_asks_telegram(platform: TelegramEmulator) -> None:
    assert plugin.examine is not None

    async def found(**more: Any) -> list[str]:
        assert plugin.examine is not None
        settings = Settings(base_url=platform.url, token=SecretStr(more.pop("token", TOKEN)), **more)
        return [each.text for each in await plugin.examine("telegram", settings)]

    assert await found() == []
    assert await found(token="1:wrong") == [BAD_TOKEN]
    (privacy,) = await found(groups="all")
    assert "privacy mode" in privacy
    platform.webhook = "https://elsewhere.example/"
    assert await found() == [WEBHOOK_SET]
    await platform.down()
    (silent,) = await found()
    assert "no connection to Telegram" in silent


@pytest.mark.parametrize(
    ("webhook", "code", "line"),
    [("", 0, "ok       transport telegram: nothing is wrong with it"), ("https://x/", 1, f"telegram: {WEBHOOK_SET}")],
)
async def test_clew_doctor_shows_what_telegram_says(platform: TelegramEmulator, tmp_path: Path, webhook: str, code: int, line: str) -> None:
    platform.webhook = webhook
    values = {"data_dir": str(tmp_path / "data"), "transports": {"telegram": {"token": TOKEN, "base_url": platform.url}}}
    (tmp_path / "clew.yaml").write_text(json.dumps(values))
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("clew")), "doctor", "--config", str(tmp_path / "clew.yaml")), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert line in said.decode()
    assert TOKEN not in said.decode()
    assert process.returncode == code


@pytest.mark.parametrize(
    "settings",
    [{"token": SecretStr("https://x/")}, {"base_url": "ftp://x"}, {"base_url": "http://u:p@x"}, {"groups": "some"}, {"prefix": ""}],
)
async def test_settings_that_cannot_be_are_errors(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**settings)


@pytest.mark.parametrize("odd", [{"date": 10**400}, {"message_id": 1e999}, {"message_thread_id": 1e999, "is_topic_message": True}])
async def test_numbers_without_end_are_passed_over(platform: TelegramEmulator, odd: dict[str, Any]) -> None:
    async with connected(platform) as (_, inbox):
        platform.say("odd", **odd)
        platform.say("hello")
        await inbox.until(lambda: inbox.texts == ["hello"])
