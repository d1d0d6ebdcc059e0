"""What is paid for beside chat models, vectors and recordings: bound by budgets, and written down like a call of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.allowances import MICROS, Amount
from clew.budget import cost
from clew.clock import Time, new_id
from clew.config import Price
from clew.config.prices import price_of
from clew.messages import Usage
from clew.metrics import Metrics
from clew.purse import OverBudget, Purse
from clew.store import ModelCall
from clew.store.sql import SqlStore
from clew.transcribers import Transcript


@dataclass(frozen=True, slots=True)
class Seller:
    """A server that is asked. provider: its section in the config; kind: of that."""

    provider: str
    kind: str
    model: str


class Bills:
    """Of one process; it goes by the prices and budgets of now."""

    def __init__(self, store: SqlStore, metrics: Metrics, time: Time) -> None:
        self._store = store
        self._metrics = metrics
        self._time = time
        self._prices: Mapping[str, Price] = {}
        self._purse: Purse | None = None

    def use(self, prices: Mapping[str, Price], purse: Purse | None) -> None:
        """purse: None without budgets."""
        self._prices = prices
        self._purse = purse

    async def is_held_back(self, seller: Seller, tokens: int) -> bool:
        """Whether the budgets of everybody together have no room for so many tokens that are nobody's in particular."""
        price = self._price(seller)
        amount = Amount(tokens, round(cost(price, Usage(tokens)) * MICROS)) if price else Amount(tokens)
        return self._purse is not None and await self._purse.is_held_back(amount)

    async def keeps_from_listening(self, seller: Seller, address: str) -> OverBudget | None:
        """Why a recording that came to an address is not heard: nothing is left of a budget that it takes something of."""
        price = self._price(seller)
        if self._purse is None or price is None or not (price.minute or price.input):
            return None
        return await self._purse.hindrance_at(address, Amount(0, 1))

    async def pay(self, purpose: str, seller: Seller, parts: Sequence[tuple[str, Usage]], started: float, seconds: float = 0.0) -> None:
        """Write down what was asked for at once: (session, what it took), an empty session being nobody's.

        started: seconds since the epoch; seconds: of recordings, for those that are paid by the minute.
        """
        price, ended = self._price(seller), self._time.wall()
        calls = []
        for session, usage in parts:
            paid = cost(price, usage) + (price.minute or 0.0) * seconds / 60 if price else None
            call = ModelCall(new_id(), purpose, "", seller.provider, seller.model, usage, started, None, ended, cost=paid)
            calls.append((session, call))
            for kind in ("input", "output"):
                self._metrics.tokens.labels(seller.provider, kind).inc(getattr(usage, kind))
        await self._store.spending.note(calls)

    async def pay_for_recording(self, seller: Seller, address: str, heard: Transcript, started: float) -> None:
        """Write down what it took to hear a recording that came to an address."""
        if heard.usage.prompt or heard.usage.output or heard.seconds:
            session = await self._store.spending.session_at(address)
            await self.pay("transcription", seller, [(session, heard.usage)], started, heard.seconds)

    def _price(self, seller: Seller) -> Price | None:
        return price_of(seller.kind, seller.model, self._prices)
