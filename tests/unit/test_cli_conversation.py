"""The terminal's side of the chat protocol."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from clew.cli.conversation import Conversation


class Shown:
    """Keeps what a screen is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def delta(self, turn: str, text: str, restart: bool) -> None:
        self.events.append(("again" if restart else "delta", text))

    def reply(self, frame: Mapping[str, Any]) -> None:
        self.events.append(("reply", frame["text"]))

    def elsewhere(self, frame: Mapping[str, Any]) -> None:
        self.events.append(("elsewhere", frame["text"]))

    def error(self, text: str, message: str | None) -> None:
        self.events.append(("error", text))

    def connection(self, up: bool) -> None:
        self.events.append(("connection", str(up)))


def message(
    seq: int, text: str, *, role: str = "assistant", id: str = "r", to: str | None = None, answers: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {"type": "message", "seq": seq, "id": id, "role": role, "text": text, "in_reply_to": to, "answers": list(answers)}


async def stored(talk: Conversation) -> bool:
    """Whether `talk.stored()` ends at once."""
    waiting = asyncio.ensure_future(talk.stored())
    await asyncio.sleep(0)
    return waiting.done() or not waiting.cancel()


@pytest.mark.asyncio
async def test_a_message_is_due_until_it_is_answered() -> None:
    shown = Shown()
    talk = Conversation(shown, 0)
    first, second = talk.say("one"), talk.say("two")
    talk.frame({"type": "ack", "id": first})
    assert not await stored(talk)
    talk.frame({"type": "ack", "id": second})
    assert await stored(talk)
    talk.frame({"type": "typing", "in_reply_to": first})
    talk.frame({"type": "delta", "turn": "t", "text": "so"})
    talk.frame({"type": "delta", "turn": "t", "text": "no", "restart": True})
    assert talk.busy
    talk.frame(message(3, "both", to=second, answers=(first, second)))
    assert not talk.busy
    assert shown.events == [("delta", "so"), ("again", "no"), ("reply", "both")]


def test_nothing_is_shown_twice_and_own_messages_not_at_all() -> None:
    shown = Shown()
    talk = Conversation(shown, 4)
    mine = talk.say("mine")
    for frame in (
        message(4, "seen before"),
        message(5, "mine", role="user", id=mine),
        message(6, "typed in another window", role="user", id="other"),
        message(7, "answer", to=mine),
        message(7, "answer", to=mine),
    ):
        talk.frame(frame)
    assert shown.events == [("elsewhere", "typed in another window"), ("reply", "answer")]
    assert talk.after == 7


def test_a_refused_message_is_not_waited_for() -> None:
    shown = Shown()
    talk = Conversation(shown, 0)
    refused = talk.say("too long")
    talk.frame({"type": "error", "text": "no frame"})
    assert talk.busy
    talk.frame({"type": "error", "id": refused, "text": "It is too long."})
    assert not talk.busy
    assert shown.events == [("error", "no frame"), ("error", "It is too long.")]
    talk.frame({"type": "of a later version"})
    assert len(shown.events) == 2
