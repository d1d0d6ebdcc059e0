"""Whoever lives, pauses, dies and comes back, whatever their own clocks say: a name has one holder, a turn one end, a reply one sender."""

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.store import Claim, LeaseLost, Outcome, Settlement
from clew.store.sql import SqlStore
from clew.transport import Delivery
from tests.databases import BOTH
from tests.unit.store_rows import LEASE, NOW, Clock, accept, inbound, reply, side_by_side

pytestmark = BOTH
LIVES = 10.0
DAEMONS = (0, 1)
SKEW = (-40_000.0, 90_000.0)
"""How far each daemon's own clock is from the database's, seconds."""
PASSES = (3.0, 8.0)
WHAT = ("start", "renew", "take over", "take over", "name", "say", "claim", "claim", "finish", "send", "settle", "pass", "pass")
events = st.lists(st.tuples(st.sampled_from(WHAT), st.sampled_from(DAEMONS)), min_size=20, max_size=50)


@dataclass
class Daemon:
    """What one of them believes. It notices nothing by itself: of all that its lease forbids the store alone keeps it."""

    store: SqlStore
    skew: float
    owner: str = ""
    until: float = 0.0
    turns: list[Claim] = field(default_factory=list)
    sends: list[Delivery] = field(default_factory=list)

    @property
    def now(self) -> float:
        return NOW + self.skew


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events)
def test_of_all_that_is_claimed_nothing_is_done_twice(happened: list[tuple[str, int]]) -> None:  # P42, P43, P44, P48
    async def run(folder: Path) -> None:
        clock, ended, said, holder = Clock(), dict[str, int](), 0, "nobody"
        async with side_by_side(folder, clock, len(DAEMONS)) as stores:
            daemons = [Daemon(store, skew) for store, skew in zip(stores, SKEW, strict=True)]
            begun = [("start", 0), ("start", 1), ("say", 0), ("say", 1)]
            for number, (what, which) in enumerate((*begun, *happened)):
                if what == "pass":
                    clock.at += PASSES[which]
                    continue
                daemon = daemons[which]
                store, owner, lives = daemon.store, daemon.owner, daemon.until > clock.at
                match what:
                    case "say":
                        await accept(store, inbound(str(number), chat=("ada", "bob")[which]), now=daemon.now)
                        said += 1
                    case "start":
                        daemon.owner, daemon.until = f"{which}.{number}", clock.at + LIVES
                        await store.leases.join(daemon.owner, LIVES, frozenset(), daemon.now, former=owner)
                    case "renew":
                        assert bool(await store.leases.renew(owner, LIVES)) == lives
                        daemon.until = clock.at + LIVES if lives else daemon.until
                    case "take over":
                        await store.leases.take_over(frozenset(), daemon.now)
                    case "name":
                        free = holder not in {each.owner for each in daemons if each.until > clock.at}
                        assert await store.leases.acquire(owner, "upkeep") == (lives and free)
                        holder = owner if lives and free else holder
                    case "claim":
                        daemon.turns += await claimed(daemon, lives)
                    case "send":
                        daemon.sends += await sent(daemon, lives)
                    case "finish" if daemon.turns:
                        turn = daemon.turns.pop(0)
                        try:
                            await store.finish(turn, Outcome("done"), [reply(turn.turn)], daemon.now)
                        except LeaseLost:
                            continue
                        ended[turn.turn] = ended.get(turn.turn, 0) + 1
                    case "settle" if daemon.sends:
                        await store.settle(daemon.sends.pop(0), Settlement("sent"), daemon.now)
                living = {daemon.owner for daemon in daemons if daemon.until > clock.at}
                held = {each.name: each.owner for each in await store.leases.listing() if each.left > 0}
                assert held == {f"daemon:{each}": each for each in living} | ({"upkeep": holder} if holder in living else {})
            assert set(ended.values()) <= {1}
            await drained(stores[0], clock, said)

    with tempfile.TemporaryDirectory() as name:
        asyncio.run(run(Path(name)))


async def claimed(daemon: Daemon, lives: bool) -> list[Claim]:
    try:
        found = await daemon.store.claim_turn(daemon.owner, daemon.now, LEASE * 10**6, frozenset())
    except LeaseLost:
        assert not lives
        return []
    assert lives or found is None
    return [found] if found else []


async def sent(daemon: Daemon, lives: bool) -> list[Delivery]:
    try:
        found, _ = await daemon.store.claim_delivery(daemon.owner, "desk", daemon.now)
    except LeaseLost:
        assert not lives
        return []
    assert lives or found is None
    return [found] if found and await daemon.store.may_send(found) else []


async def drained(store: SqlStore, clock: Clock, said: int) -> None:
    """Whatever all of them left behind, one that comes when they are gone does it all, each once."""
    clock.at += LIVES
    await store.leases.join("last", LIVES, frozenset(), NOW)
    while (turn := await store.claim_turn("last", NOW, LEASE, frozenset())) is not None:
        await store.finish(turn, Outcome("done"), [reply(turn.turn)], NOW)
    while (delivery := (await store.claim_delivery("last", "desk", NOW + 10**6))[0]) is not None:
        await store.settle(delivery, Settlement("sent"), NOW)
    rows = await store.outbox(("pending", "sending", "sent", "unknown", "dead"))
    assert len(rows) == said
    assert {row["state"] for row in rows} <= {"sent", "unknown"}
