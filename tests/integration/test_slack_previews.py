"""What is being said on Slack: a message that is edited, and becomes the reply."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from clew.transport import Address, Delivery, Gone, Preview, Refused, Retry, Typing, Unknown
from clew_transports.slack.transport import SlackTransport
from tests.emulators import listening, slack_wire, telegram
from tests.emulators.listening import Fault
from tests.emulators.slack import SlackEmulator
from tests.integration.slack_harness import HER, connected, delivery, sent, workspace

pytestmark = pytest.mark.asyncio

TO = Address("slack", HER)


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[SlackEmulator]:
    async with workspace() as emulator:
        yield emulator


def preview(text: str, ref: str | None = None) -> Preview:
    return Preview("turn1", text, text, "5", ref, "k3v9")


async def posted(transport: SlackTransport, text: str = "**half** a") -> str:
    ref = await transport.hint(TO, preview(text))
    assert ref
    return ref


def reply(transport: SlackTransport, text: str, ref: str | None) -> Delivery:
    return delivery(transport, text, preview_ref=ref)


async def test_the_words_are_posted_edited_and_replaced_by_the_reply(platform: SlackEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        ref = await posted(transport)
        assert platform.messages[0]["text"] == "*half* a"
        assert await transport.hint(TO, preview("half a sentence", ref)) == ref
        whole = await sent(transport, reply(transport, "A **sentence** &.", ref))
        assert [text for _, text in platform.edits] == ["half a sentence", "A *sentence* &amp;."]
        assert platform.texts(HER) == ["A *sentence* &."]
        assert (await transport.send(replace(whole, sent=0))).ref == ref, "the same words once more are no fault"


async def test_edits_keep_to_slacks_rate_over_all_chats(platform: SlackEmulator) -> None:  # BO-064
    async with connected(platform) as (transport, _):
        ref = await posted(transport)
        other = await transport.hint(Address("slack", "D0BOB"), replace(preview("b"), id="other"))
        assert other
        for number in range(1, 50):
            assert await transport.hint(TO, preview("x" * number, ref)) == ref
            assert await transport.hint(Address("slack", "D0BOB"), replace(preview("y", other), id="other")) == other
        assert 1 <= len(platform.edits) <= 3
        await sent(transport, reply(transport, "the reply", ref))
        assert platform.texts(HER) == ["the reply"]


async def test_a_long_reply_replaces_it_by_its_first_part(platform: SlackEmulator) -> None:  # P43, BO-060
    text = "\n\n".join(f"paragraph {number} " + "word " * 200 for number in range(8))
    async with connected(platform) as (transport, _):
        whole = await sent(transport, reply(transport, text, await posted(transport)))
        assert len(whole.parts) > 1
        assert [text.split() for text in platform.texts(HER)] == [part.text.split() for part in whole.parts]


async def test_a_preview_is_never_taken_for_the_reply(platform: SlackEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        ref = await posted(transport)
        whole = reply(transport, "the reply", ref)
        assert await transport.find(whole) is None
        await sent(transport, whole)
        assert await transport.find(whole) is not None


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("fault", [listening.does_and_drops, listening.drops, slack_wire.does_and_fails("internal_error")])
async def test_a_first_preview_of_unknown_fate_is_found_and_goes_on(platform: SlackEmulator, fault: Fault, again: bool) -> None:  # P43
    async with connected(platform) as (transport, _):
        platform.next["chat.postMessage"].append(fault)
        with pytest.raises(Unknown):
            await transport.hint(TO, preview("half"))
        if again:  # a turn that goes on after a crash
            await transport.hint(TO, preview("half of it"))
        await sent(transport, reply(transport, "the reply", ""))
        assert platform.texts(HER) == ["the reply"]


@pytest.mark.parametrize(
    ("fault", "texts"),
    [(listening.drops, []), (slack_wire.refuses("internal_error"), []), (slack_wire.refuses("missing_scope"), ["the reply"])],
)
async def test_where_nobody_can_say_whether_there_is_a_preview(platform: SlackEmulator, fault: Fault, texts: list[str]) -> None:  # P43
    async with connected(platform) as (transport, _):
        platform.next["conversations.history"].append(fault)
        if texts:  # clew may not look: better a preview that stays than no reply
            await transport.send(reply(transport, "the reply", ""))
        else:
            with pytest.raises(Retry):
                await transport.send(reply(transport, "the reply", ""))
        assert platform.texts(HER) == texts


async def test_a_message_that_was_deleted_meanwhile_is_gone(platform: SlackEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        ref = await posted(transport)
        platform.history[HER].clear()
        platform.messages.clear()
        with pytest.raises(Refused):
            await transport.hint(TO, preview("more", ref))
        with pytest.raises(Gone, match="message_not_found"):
            await transport.send(reply(transport, "the reply", ref))
        await sent(transport, reply(transport, "the reply", None))
        assert platform.texts(HER) == ["the reply"]


async def test_what_comes_to_nothing_is_deleted(platform: SlackEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        nothing = replace(reply(transport, "x", await posted(transport)), parts=())
        await transport.send(nothing)
        assert platform.texts(HER) == []
        await transport.send(nothing)  # it is gone already


@pytest.mark.parametrize(
    "fault",
    [listening.does_and_drops, listening.drops, slack_wire.refuses("internal_error"), telegram.answers(500), slack_wire.too_many(1)],
)
async def test_the_reply_takes_its_place_whatever_becomes_of_an_edit(platform: SlackEmulator, fault: Fault) -> None:  # P43
    async with connected(platform) as (transport, _):
        whole = reply(transport, "the reply", await posted(transport))
        platform.next["chat.update"].append(fault)
        with pytest.raises(Retry):  # to edit twice does no harm
            await transport.send(whole)
        assert platform.texts(HER) == ["the reply" if fault is listening.does_and_drops else "*half* a"]


async def test_a_wait_that_is_asked_for_is_handed_on(platform: SlackEmulator) -> None:  # BO-064
    async with connected(platform) as (transport, _):
        platform.next["chat.postMessage"].append(slack_wire.too_many(7))
        with pytest.raises(Retry) as raised:
            await transport.hint(TO, preview("half"))
        assert raised.value.after == 7.0


async def test_typing_is_nothing_on_slack(platform: SlackEmulator) -> None:
    async with connected(platform) as (transport, _):
        calls = len(platform.calls)
        assert await transport.hint(TO, Typing()) is None
        assert len(platform.calls) == calls
