"""The chat page and the terminal as transports."""

import asyncio

import pytest

from clew.plugins import registry
from clew.transport import Address, Delivery, Host, Part, Typing
from clew.web.transport import LookIn, plugin, terminal


class Door:
    """A host that is told and asked for nothing but its state."""

    def __init__(self) -> None:
        self.up = asyncio.Event()

    def report(self, up: bool, detail: str = "") -> None:
        if up:
            self.up.set()


def test_both_are_found_by_their_entry_points() -> None:
    found = registry("clew.transports")
    assert found["web"] is plugin
    assert found["terminal"] is terminal


def test_what_they_can() -> None:
    can = LookIn().capabilities
    assert (can.instant, can.merges, can.stream, can.markup, can.limit) == (True, True, "ephemeral", "markdown", None)


@pytest.mark.asyncio
async def test_a_reply_is_one_part_and_where_it_is_looked_for() -> None:
    look_in = LookIn()
    address = Address("web", "local")
    assert look_in.parts("x" * 100_000) == [Part("x" * 100_000)]
    delivery = Delivery("d1", address, "hi", (Part("hi"),), 1.0)
    assert await look_in.send(delivery) == await look_in.find(delivery)
    assert await look_in.hint(address, Typing()) is None
    with pytest.raises(LookupError):
        await anext(look_in.fetch("any"))


@pytest.mark.asyncio
async def test_it_is_up_until_it_is_stopped() -> None:
    door = Door()
    running = asyncio.create_task(LookIn().run(as_host(door)))
    async with asyncio.timeout(5):
        await door.up.wait()
    assert not running.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def as_host(door: Door) -> Host:
    return door  # type: ignore[return-value]  # the rest is not asked for
