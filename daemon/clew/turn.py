"""A turn while it runs: what it goes by, and what of it is not stored yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from clew.clock import Time
from clew.fitting import TurnView
from clew.messages import Block, Message
from clew.model_call import Spent
from clew.prompting import Decided
from clew.stopping import Stop
from clew.store import Claim, NewMessage, Step, ToolState
from clew.store.sql import SqlStore
from clew.supervise import patiently


@dataclass(slots=True)
class Turn:
    """What is known of a turn, and how it is written down, step by step."""

    store: SqlStore
    time: Time
    claim: Claim
    view: TurnView
    decided: Decided
    stop: Stop
    spent: Spent = field(default_factory=Spent)
    saved: tuple[int, int] = (0, 0)  # of the calls and cache entries in `spent`
    fresh: bool = False  # the prompt is decided on, and its state is to be written with the next step
    refused: set[str] = field(default_factory=set)  # hashes of files that a model did not take

    @property
    def payer(self) -> str:
        return self.claim.person.id if self.claim.person else ""

    @property
    def asked(self) -> tuple[Message, ...]:
        """What the person said in this turn."""
        return tuple(message for message in self.view.messages if message.turn == self.claim.turn and message.role == "user")

    def said(self, blocks: tuple[Block, ...], metadata: Mapping[str, object]) -> NewMessage:
        """What the model said now."""
        return NewMessage("assistant", blocks, self.time.wall(), metadata=metadata)

    def step(self, messages: tuple[NewMessage, ...] = (), *, tools: tuple[ToolState, ...] = ()) -> Step:
        """What is to be committed: everything since the last step, with the prompt's state where that is new."""
        fresh, self.fresh = self.fresh, False
        calls, cache = tuple(self.spent.calls[self.saved[0] :]), tuple(self.spent.cache[self.saved[1] :])
        self.saved = (len(self.spent.calls), len(self.spent.cache))
        state = replace(self.decided.state, last_call=self.time.wall()) if fresh or calls else None
        return Step(messages, calls, tools, cache, self.decided.recalled if fresh else (), state)

    async def record(self, step: Step) -> None:
        """Commit a step; its messages stand in the view from then on. Raises LeaseLost."""
        self.view.messages += await patiently(lambda: self.store.record(self.claim, step))


def newest(claim: Claim) -> str:
    """The id by which the sender knows the newest message of a turn; empty for none."""
    return claim.items[-1].client_id if claim.items else ""
