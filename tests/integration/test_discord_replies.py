"""What goes out to Discord, against its emulated HTTP API; and what the doctor asks of it."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr, ValidationError

from clew.transport import Address, Delivery, Refused, Retry, Sent, Typing, Unknown
from clew_transports.discord.gateway import FATAL
from clew_transports.discord.transport import Settings, plugin
from tests.emulators import discord_faults as faults
from tests.emulators import listening
from tests.emulators.discord import CHANNEL, TOKEN, DiscordEmulator, private
from tests.emulators.listening import Fault
from tests.integration.discord_harness import ADA, BOB, HOME, ME, connected, delivery, sent

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[DiscordEmulator]:
    async with DiscordEmulator() as emulator:
        yield emulator


# Out -------------------------------------------------------------------------------------------------------------


async def test_a_reply_is_rendered_and_split_by_what_discord_counts(platform: DiscordEmulator) -> None:  # P43, BO-055, BO-061
    code = "\n".join(f"print({number:03})  # *<&>*" for number in range(150))
    text = f"**Look** [here](https://e.org):\n\n```python\n{code}\n```\n\n- א שלום\n- 你好。\n" + "Sentence 😀. " * 300 + "!|-" * 900
    async with connected(platform) as (transport, _):
        whole = await sent(transport, delivery(transport, text))
        assert len(platform.sent) == len(whole.parts) > 5
        shown = "".join(platform.texts())
        for number in range(150):
            assert shown.count(f"print({number:03})  # *<&>*") == 1
        assert shown.count("😀") == 300
        assert shown.count("!\\|-") == 900
        fences = [each for each in platform.texts() if "print(" in each]
        assert len(fences) > 1
        assert all(each.count("```") == 2 and "```python\n" in each for each in fences)
        assert all(each["flags"] == 4 for each in platform.sent)


async def test_nobody_is_notified_by_what_the_model_says(platform: DiscordEmulator) -> None:  # BO-125
    async with connected(platform) as (transport, _):
        await sent(transport, delivery(transport, "@everyone <@&1> <@11> <!channel> @room", CHANNEL))
        assert platform.pinged == []
        assert platform.texts() == ["@everyone \\<@&1> \\<@11> \\<!channel> @room"]


async def test_a_reply_in_a_server_is_one_to_the_question(platform: DiscordEmulator) -> None:
    async with connected(platform) as (transport, inbox):
        asked = platform.say(f"{ME} why?", BOB, CHANNEL)
        gone = platform.say(f"{ME} never mind", BOB, CHANNEL)
        platform.say("why?")
        await inbox.until(lambda: len(inbox.rows) == 3)
        platform.messages[CHANNEL].remove(gone)
        for row, id in zip(inbox.rows.values(), ("a", "b", "c"), strict=True):
            answer = Delivery(id, row.address, "so", tuple(transport.parts("so")), 1.0, in_reply_to=row.client_id, context=row.context)
            await sent(transport, answer)
        references = [each.get("message_reference", {}).get("message_id") for each in platform.sent]
        assert references == [asked["id"], None, None]


async def test_where_the_history_may_not_be_read_a_reply_names_no_question(platform: DiscordEmulator) -> None:
    platform.no_history.add(CHANNEL)
    async with connected(platform) as (transport, _):
        await sent(transport, delivery(transport, "so", CHANNEL, in_reply_to="5", context={"server": "1"}))
        assert platform.texts(CHANNEL) == ["so"]


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (faults.refuses(403, 50007, "Cannot send messages to this user"), Refused),
        (faults.refuses(404, 10003, "Unknown Channel"), Refused),
        (faults.refuses(400, 50035, "Invalid Form Body"), Refused),
        (faults.refuses(401, 0, "401: Unauthorized"), Retry),
        (faults.answers(403, "<html>Cloudflare</html>"), Retry),
        (faults.answers(429, "error code: 1015", Retry_After="7"), Retry),
        (faults.answers(301, Location="https://elsewhere.example/"), Retry),
        (faults.answers(502), Retry),
        (faults.answers(503), Retry),
        (faults.answers(500), Unknown),
        (faults.answers(504), Unknown),
        (faults.answers(524), Unknown),
        (faults.answers(200), Unknown),
        (listening.drops, Unknown),
        (listening.does_and_drops, Unknown),
        (listening.hangs, Unknown),
    ],
)
async def test_what_failures_of_a_send_mean(platform: DiscordEmulator, fault: Fault, outcome: type[Exception]) -> None:  # P43
    async with connected(platform, answer_s=1.0 if fault is listening.hangs else 20.0) as (transport, _):
        platform.next["POST messages"].append(fault)
        with pytest.raises(outcome) as caught:
            await transport.send(delivery(transport, "hello"))
        assert TOKEN not in str(caught.value)


async def test_nobody_listening_means_that_nothing_was_sent(platform: DiscordEmulator) -> None:  # P43, BO-054
    async with connected(platform) as (transport, _):
        await platform.down()
        with pytest.raises(Retry):
            await transport.send(delivery(transport, "hello"))


async def test_a_part_that_may_have_been_sent_is_sent_once(platform: DiscordEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        platform.next["POST messages"].append(listening.does_and_drops)
        answer = delivery(transport, "hello")
        with pytest.raises(Unknown):
            await transport.send(answer)
        assert await transport.send(answer) == Sent(platform.sent[0]["id"], 1)
        assert platform.texts() == ["hello"]


async def test_a_part_is_looked_for_where_discord_has_forgotten_its_nonce(platform: DiscordEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        await sent(transport, delivery(transport, "hello", id="earlier"))
        platform.say("hello", ADA)
        platform.next["POST messages"].extend([listening.drops, listening.does_and_drops])
        answer = delivery(transport, "hello")
        with pytest.raises(Unknown):
            await transport.send(answer)
        platform.forget_nonces()
        assert await transport.find(answer) is None
        with pytest.raises(Unknown):
            await transport.send(answer)
        platform.forget_nonces()
        assert await transport.find(answer) == Sent(platform.sent[1]["id"], 1)
        platform.next["GET messages"].append(faults.answers(502))
        with pytest.raises(Retry):
            await transport.find(answer)


async def test_a_429_is_kept_for_its_chat_and_not_for_others(platform: DiscordEmulator) -> None:  # BO-064
    async with connected(platform) as (transport, _):
        platform.next["POST messages"].append(faults.too_many(40))
        with pytest.raises(Retry) as caught:
            await transport.send(delivery(transport, "hello"))
        assert caught.value.after == 40
        calls = len(platform.calls)
        with pytest.raises(Retry) as caught:
            await transport.send(delivery(transport, "hello"))
        assert 0 < (caught.value.after or 0) <= 40
        assert len(platform.calls) == calls
        await sent(transport, delivery(transport, "to another", private(12)))
        assert platform.texts() == ["to another"]


async def test_a_429_for_all_calls_is_kept_for_all(platform: DiscordEmulator) -> None:  # BO-064
    async with connected(platform) as (transport, _):
        platform.next["POST messages"].append(faults.too_many(40, everywhere=True))
        calls = 0
        for chat in (HOME, private(12)):
            with pytest.raises(Retry) as caught:
                await transport.send(delivery(transport, "hello", chat))
            assert caught.value.everywhere
            calls = calls or len(platform.calls)
        assert len(platform.calls) == calls


async def test_calls_wait_for_their_bucket_instead_of_breaking_it(platform: DiscordEmulator) -> None:  # BO-064
    platform.limits["POST messages"] = (2, 0.3)
    async with connected(platform) as (transport, _):
        for number in range(7):
            await sent(transport, delivery(transport, f"{number}", id=f"d{number}"))
        chats = [private(20 + number) for number in range(60)]
        await asyncio.gather(*(sent(transport, delivery(transport, chat, chat, id=chat)) for chat in chats))
        assert platform.texts()[:7] == [f"{number}" for number in range(7)]
        assert sorted(platform.texts()[7:]) == sorted(chats)
        assert platform.refusals == 0


# Hints and the doctor --------------------------------------------------------------------------------------------


async def test_typing_is_shown_at_its_rate_and_fails_nothing(platform: DiscordEmulator) -> None:  # BO-065
    async with connected(platform) as (transport, _):
        for _ in range(20):
            await transport.hint(Address("discord", HOME), Typing())
        await platform.until(lambda: platform.typing == [HOME])
        for number, fault in enumerate([faults.too_many(5), listening.drops, faults.answers(502), faults.refuses(403, 50013, "no")]):
            platform.next["POST typing"].append(fault)
            await transport.hint(Address("discord", private(20 + number)), Typing())
        await platform.until(lambda: not platform.next["POST typing"])
        await sent(transport, delivery(transport, "the reply"))
        assert (platform.texts(), platform.typing) == (["the reply"], [HOME])


async def test_the_doctor_asks_discord(platform: DiscordEmulator) -> None:
    async def found(token: str = TOKEN) -> list[str]:
        assert plugin.examine is not None
        return [each.text for each in await plugin.examine("discord", Settings(base_url=platform.base, token=SecretStr(token)))]

    assert await found() == []
    assert await found("MTIzNDU2Nzg5.wrong.wrong-wrong-wrong") == [FATAL[4004]]
    platform.flags = 0
    assert await found() == [FATAL[4014]]
    platform.flags, platform.permissions = 1 << 18, 1 << 10
    assert await found() == [
        "in the server 'The Server' the bot may not: Send Messages, Read Message History, Send Messages in Threads",
    ]
    platform.permissions = 1 << 3
    assert await found() == []
    platform.in_server = False
    assert await found() == ["the bot is in no server: nobody can write to it"]
    platform.sessions_left = 0
    assert "no further sessions" in (await found())[0]
    await platform.down()
    (silent,) = await found()
    assert "no connection to Discord" in silent


async def test_clew_doctor_shows_what_discord_says(platform: DiscordEmulator, tmp_path: Path) -> None:
    platform.flags = 0
    values = {"data_dir": str(tmp_path / "data"), "transports": {"discord": {"token": TOKEN, "base_url": platform.base}}}
    (tmp_path / "clew.yaml").write_text(json.dumps(values))
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("clew")), "doctor", "--config", str(tmp_path / "clew.yaml")), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert f"discord: {FATAL[4014]}" in said.decode()
    assert TOKEN not in said.decode()
    assert process.returncode == 1


@pytest.mark.parametrize("settings", [{"token": SecretStr("Bot abc")}, {"base_url": "ftp://x"}, {"groups": "some"}, {"prefix": ""}])
async def test_settings_that_cannot_be_are_errors(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**settings)
