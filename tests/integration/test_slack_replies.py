"""What goes out to Slack and what is fetched from it: replies, what their failures mean, where they are looked for, files."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from clew.transport import Attachment, Refused, Retry, Sent, Unknown
from clew_transports.slack.api import Refusal
from tests.emulators import listening, slack_wire, telegram
from tests.emulators.listening import Fault
from tests.emulators.slack import BOT_TOKEN, MENTION, SlackEmulator
from tests.integration.slack_harness import CLUB, HER, connected, delivery, sent, workspace

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[SlackEmulator]:
    async with workspace() as emulator:
        yield emulator


# Out -------------------------------------------------------------------------------------------------------------


async def test_a_reply_is_rendered_and_split_by_what_slack_counts(platform: SlackEmulator) -> None:  # P43, BO-055, BO-061
    code = "\n".join(f"print({number})  # <&>" for number in range(400))
    text = f"**Look** [here](https://e.org/?a=1&b=<2>):\n\n```python\n{code}\n```\n\n- א שלום\n> said *he*\n\n" + "&<>😀 " * 500
    async with connected(platform) as (transport, _):
        whole = await sent(transport, delivery(transport, text))
        assert len(platform.messages) == len(whole.parts) > 5  # more than Slack takes at once
        said = "".join(each["shown"] for each in platform.messages)
        for number in range(400):
            assert said.count(f"print({number})  # <&>") == 1
        assert said.count("&<>😀") == 500
        assert platform.messages[0]["text"].startswith("*Look* <https://e.org/?a=1&amp;b=%3C2%3E|here>:")


async def test_nobody_is_called_by_what_a_model_writes(platform: SlackEmulator) -> None:  # BO-125
    text = "<!channel> <!here|x> <@U0ADA> <#C0CLUB> <!subteam^S1> @everyone `<!channel>` [x](<!channel>) [<!here>](https://e.org)\n\n<!everyone>"
    async with connected(platform) as (transport, _):
        await sent(transport, delivery(transport, f"{text}\n\n```\n<!channel>\n```"))
        (message,) = platform.messages  # the emulator refuses mentions
        assert "<!" not in message["text"]
        assert "<!channel> <!here|x> <@U0ADA>" in message["shown"]
        arguments = next(arguments for method, arguments in platform.calls if method == "chat.postMessage")
        assert (arguments["link_names"], arguments["unfurl_links"]) == ("false", "false")


async def test_a_429_is_kept_for_its_channel_and_not_for_others(platform: SlackEmulator) -> None:  # BO-064
    async with connected(platform) as (transport, _):
        platform.next["chat.postMessage"].append(slack_wire.too_many(40))
        with pytest.raises(Retry) as caught:
            await transport.send(delivery(transport, "hello"))
        assert caught.value.after == 40
        calls = len(platform.calls)
        with pytest.raises(Retry) as caught:
            await transport.send(delivery(transport, "hello"))
        assert 0 < (caught.value.after or 0) <= 41
        assert len(platform.calls) == calls
        await sent(transport, delivery(transport, "to another", "D0BOB"))
        assert platform.texts("D0BOB") == ["to another"]


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (slack_wire.refuses("channel_not_found"), Refused),
        (slack_wire.refuses("not_in_channel"), Refused),
        (slack_wire.refuses("is_archived"), Refused),
        (slack_wire.refuses("msg_too_long"), Refused),
        (slack_wire.refuses("no_text"), Refused),
        (slack_wire.refuses("invalid_auth"), Retry),
        (slack_wire.refuses("token_revoked"), Retry),
        (slack_wire.refuses("missing_scope", needed="chat:write"), Retry),
        (slack_wire.refuses("ratelimited"), Retry),
        (slack_wire.refuses("rate_limited"), Retry),
        (slack_wire.refuses("service_unavailable"), Retry),
        (slack_wire.refuses("internal_error"), Retry),
        (slack_wire.refuses("fatal_error"), Retry),
        (slack_wire.does_and_fails("internal_error"), Sent),
        (telegram.answers(503), Retry),
        (telegram.answers(500), Unknown),
        (telegram.answers(504), Unknown),
        (telegram.answers(200), Unknown),
        (listening.drops, Unknown),
        (listening.does_and_drops, Unknown),
        (listening.hangs, Unknown),
    ],
)
async def test_what_failures_of_a_send_mean(platform: SlackEmulator, fault: Fault, outcome: type[Any]) -> None:  # P43
    async with connected(platform, answer_s=1.0 if fault is listening.hangs else 20.0) as (transport, _):
        platform.next["chat.postMessage"].append(fault)
        try:
            found: object = await transport.send(delivery(transport, "hello"))
        except (Refused, Retry, Unknown) as error:
            found = error
        assert isinstance(found, outcome)
        assert BOT_TOKEN not in str(found)


async def test_an_unknown_outcome_of_which_nothing_can_be_asked_stays_unknown(platform: SlackEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        platform.next["chat.postMessage"].append(slack_wire.does_and_fails("fatal_error"))
        platform.next["conversations.history"].append(listening.drops)
        with pytest.raises(Unknown):
            await transport.send(delivery(transport, "hello"))


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_part_that_arrived_unseen_is_found_by_its_metadata(platform: SlackEmulator, in_thread: bool) -> None:  # P43
    platform.page = 2
    root = platform.say(f"{MENTION} x", channel=CLUB) if in_thread else None
    text = "word " * 1500
    async with connected(platform) as (transport, _):
        whole = delivery(transport, text, CLUB if in_thread else HER, root)
        assert len(whole.parts) == 2
        assert await transport.find(whole) is None
        whole = replace(whole, sent=(await transport.send(whole)).upto or 0)
        platform.next["chat.postMessage"].append(listening.does_and_drops)
        with pytest.raises(Unknown):
            await transport.send(whole)
        for number in range(3):
            platform.say(f"behind it {number}", channel=whole.address.chat, thread=root)
        assert await transport.find(whole) == Sent(platform.messages[-1]["ts"], 2)
        assert await transport.find(replace(whole, sent=0)) == Sent(platform.messages[-1]["ts"], 2)
        assert await transport.find(replace(whole, id="other")) is None
        assert await transport.find(replace(whole, sent=2)) is None


async def test_nobody_listening_means_that_nothing_was_sent(platform: SlackEmulator) -> None:  # P43, BO-054
    async with connected(platform) as (transport, _):
        await platform.down()
        with pytest.raises(Retry):
            await transport.send(delivery(transport, "hello"))


async def test_a_place_that_is_none_is_refused(platform: SlackEmulator) -> None:
    async with connected(platform) as (transport, _):
        with pytest.raises(Refused, match="channel's id"):
            await transport.send(delivery(transport, "hello", "#general"))


# Files -----------------------------------------------------------------------------------------------------------


async def test_files_come_with_their_bytes(platform: SlackEmulator) -> None:
    platform.files |= {
        "F0PIC": {},
        "F0GONE": {"url_private": "https://evil.example/x"},
        "F0NEAR": {"url_private": "https://notslack.com/x"},
    }
    platform.contents["F0PIC"] = b"png" * 100_000
    files = [
        {"id": "F0PIC", "name": "a.png", "mimetype": "image/png", "size": 300_000},
        {"id": "F0DOC", "mode": "external", "is_external": True, "name": "elsewhere"},
        {"id": "F0OLD", "mode": "tombstone"},
    ]
    async with connected(platform) as (transport, inbox):
        platform.say("look", subtype="file_share", files=files)
        clip = {"id": "F0CLIP", "name": "clip.m4a", "mimetype": "audio/mp4", "size": 9, "subtype": "slack_audio"}
        platform.say("", subtype="file_share", files=[clip])
        await inbox.until(lambda: len(inbox.rows) == 2)
        picture, spoken = Attachment("a.png", "image/png", 300_000, "F0PIC"), Attachment("clip.m4a", "audio/mp4", 9, "F0CLIP", voice=True)
        assert [row.attachments for row in inbox.rows.values()] == [(picture,), (spoken,)]
        assert b"".join([piece async for piece in transport.fetch("F0PIC")]) == platform.contents["F0PIC"]
        del platform.files["F0GONE"]["url_private"]
        platform.files["F0GONE"]["url_private_download"] = "https://evil.example/x"
        platform.files["F0NEAR"]["url_private_download"] = "https://files.slack.com.evil.example/x"
        for ref in ("F0NONE", "F0GONE", "F0NEAR"):
            with pytest.raises(LookupError):
                [piece async for piece in transport.fetch(ref)]
        for fault in (slack_wire.refuses("missing_scope"), slack_wire.too_many(1)):
            platform.next["files.info"].append(fault)
            with pytest.raises(Refusal):  # another time it may be had
                [piece async for piece in transport.fetch("F0PIC")]
