"""Buttons below a question of clew's: which there are, and who is told what became of a press."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from clew.transport import Delivery, Inbound, Receipt

BUTTONS = (("Yes", "yes"), ("No", "no"), ("Always", "always"))
"""What each says, and what comes back when it is pressed."""
ANSWERS = frozenset(pressed for _, pressed in BUTTONS)
CLOSED = "This question is closed, or somebody else was asked."

PRESSED = "pressed"
"""Key of `Inbound.context`: what the platform has to be told to answer the press of a button."""

Answer = Callable[[Inbound, bool], Awaitable[None]]
"""Tells the platform of a press, and whether it was taken: if so its buttons go, else whoever pressed is told CLOSED. Raises nothing."""


def has_buttons(delivery: Delivery) -> bool:
    """Whether the next part of `delivery` is the last one of a question."""
    return delivery.asks and delivery.sent == len(delivery.parts) - 1


class Presses:
    """Presses on their way to being answered. name: of the section."""

    def __init__(self, name: str, answer: Answer) -> None:
        self._name = name
        self._answer = answer
        self._tasks: set[asyncio.Task[None]] = set()

    def answer(self, batch: Sequence[Inbound], receipts: Sequence[Receipt]) -> None:
        """Answer those in `batch`, once it is stored. Never waits."""
        for inbound, receipt in zip(batch, receipts, strict=True):
            if PRESSED in inbound.context:
                task = asyncio.ensure_future(self._answer(inbound, receipt.status == "stored"))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
