"""What was spent, and what a call asks of the budgets."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from typing import Literal

from clew.allowances import Amount, Payer, Standing
from clew.messages import Usage

SpendingKind = Literal["all", "person", "chat", "model", "purpose"]


@dataclass(frozen=True, slots=True)
class Sums:
    """Calls of models, together. micros: millionths of a dollar. unpriced: tokens of models without a price. reply_ms: milliseconds that
    the calls for `replies` took together."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    micros: int = 0
    unpriced: int = 0
    replies: int = 0
    reply_ms: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(*map(add, self.figures, other.figures))

    @property
    def figures(self) -> tuple[int, ...]:
        """All of them, in their order."""
        tokens = (self.input, self.output, self.cache_read, self.cache_write)
        return self.calls, *tokens, self.micros, self.unpriced, self.replies, self.reply_ms

    @property
    def usage(self) -> Usage:
        return Usage(self.input, self.output, self.cache_read, self.cache_write)

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write

    @property
    def amount(self) -> Amount:
        return Amount(self.tokens, self.micros, self.unpriced)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that is to be made. session: empty for none; payer: a person, empty for whose chat it is. instead_of: a call that came to
    nothing, whose reservation goes. expires: seconds since the epoch."""

    id: str
    session: str
    payer: str
    amount: Amount
    now: float
    expires: float
    instead_of: str = ""


@dataclass(frozen=True, slots=True)
class Reserved:
    """How the limits that bind a call stand without it. refused: the one that it does not fit; then nothing was reserved."""

    payer: Payer
    standings: Sequence[Standing]
    refused: Standing | None
