"""Whatever sends, fails and crashes: each chat's replies leave in order, each once, and no chat waits for another."""

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.store import Outcome, Settlement
from clew.transport import Delivery
from tests.databases import BOTH
from tests.unit.store_rows import NOW, accept, claim, inbound, opened, reply

pytestmark = BOTH
CHATS = ("ada", "bob", "eve")
events = st.lists(
    st.one_of(
        st.tuples(st.just("reply"), st.sampled_from(CHATS)),
        st.tuples(st.just("claim"), st.just("")),
        st.tuples(st.just("sent"), st.sampled_from(CHATS)),
        st.tuples(st.just("again"), st.sampled_from(CHATS)),
        st.tuples(st.just("dead"), st.sampled_from(CHATS)),
        st.tuples(st.just("crash"), st.just("")),
    ),
    max_size=30,
)


@dataclass
class Lanes:
    """The outbox in plain Python: what waits in each chat, in order, what is on its way, and what was sent."""

    waiting: dict[str, list[str]] = field(default_factory=lambda: {chat: [] for chat in CHATS})
    sending: dict[str, Delivery] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)

    def heads(self) -> set[str]:
        return {lane[0] for chat, lane in self.waiting.items() if lane and chat not in self.sending}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events)
def test_lanes_keep_their_order_and_hold_up_no_other(happened: list[tuple[str, str]]) -> None:  # P43, P48, BO-052, BO-054, BO-055
    async def run(folder: Path) -> None:
        async with opened(folder) as store:
            lanes = Lanes()
            for number, (what, chat) in enumerate(happened):
                if what == "reply":
                    text = f"{chat} {number}"
                    await accept(store, inbound(str(number), chat=chat))
                    await store.finish(await claim(store), Outcome("done"), [reply(text, chat)], NOW)
                    lanes.waiting[chat].append(text)
                elif what == "claim":
                    claimed, later = await store.claim_delivery("me", "desk", NOW)
                    heads = lanes.heads()
                    assert (claimed.text in heads) if claimed else not heads
                    if claimed:
                        lanes.sending[claimed.address.chat] = claimed
                    assert later == (NOW if lanes.heads() else None)
                elif what == "crash":
                    await store.recover(frozenset({"desk"}), NOW)
                    lanes.sending.clear()
                elif chat in lanes.sending:
                    delivery = lanes.sending.pop(chat)
                    if what == "again":
                        await store.settle(delivery, Settlement("pending", next_at=NOW), NOW)
                        continue
                    await store.settle(delivery, Settlement("sent" if what == "sent" else "dead"), NOW)
                    lanes.waiting[chat].remove(delivery.text)
                    lanes.sent += [delivery.text] if what == "sent" else []
            states = [row["state"] for row in await store.outbox(("pending", "sending", "sent", "dead"))]
            assert states.count("sent") == len(lanes.sent)
            assert states.count("pending") + states.count("sending") == sum(map(len, lanes.waiting.values()))

    with tempfile.TemporaryDirectory() as name:
        asyncio.run(run(Path(name)))
