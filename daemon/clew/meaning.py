"""What messages mean, as vectors: made behind the talk, asked for when something is looked for."""

import asyncio
import random
from collections import Counter
from collections.abc import Collection, Sequence

import structlog

from clew.allowances import shares
from clew.bills import Bills, Seller
from clew.clock import Time
from clew.context.nearness import Nearness, Pair
from clew.context.tokens import estimate
from clew.context.vectors import embeddable
from clew.embedders import BATCH, Embedder, Vectors
from clew.messages import Usage
from clew.progress import Progress
from clew.providers import RETRYABLE, ErrorKind, ProviderError, backoff
from clew.store.notes import Where
from clew.store.sql import SqlStore
from clew.store.vectors import Unembedded
from clew.supervise import unless_lasting

log = structlog.get_logger()

PATIENCE = 1.0
"""Seconds that a reply waits for the vector of its question; then it is looked for by its words alone."""
REST = 30.0
"""Seconds for which it is not tried again after that, so that a server which is down does not hold up every reply."""
EVERY = 60.0
"""Seconds between two looks for messages without a vector, if nothing happens in between."""
LONGEST_WAIT = 600.0
REFUSED: frozenset[ErrorKind] = frozenset({"invalid", "overflow"})
"""Kinds of errors that may lie in a text."""
HARMLESS = "hello"


class Meaning:
    """Of one embedding model.

    known: secrets of this installation, which no model gets. Nothing that is said waits for it: a message is stored, answered, and embedded
    then.
    """

    def __init__(self, store: SqlStore, embedder: Embedder, known: Collection[str], time: Time) -> None:
        self._store = store
        self._embedder = embedder
        self._known = frozenset(known)
        self._time = time
        self._resting_until = 0.0
        self._by_extension = False
        self._failures = 0
        self._bills: Bills | None = None
        self._seller = Seller("", "", "")
        self._unpaid = 0  # tokens of questions, which are written down with the next messages: no turn waits for that

    def charge(self, bills: Bills, seller: Seller) -> None:
        """Let budgets hold back what `seller` is asked for, and write down what it costs."""
        self._bills, self._seller = bills, seller

    async def prepare(self) -> None:
        """Load what is needed. Raises ConfigError."""
        await self._embedder.prepare()
        self._by_extension = await self._store.vectors.prepare()

    async def close(self) -> None:
        await self._embedder.close()

    async def run(self, progress: Progress) -> None:
        """Embed what has no vector yet, the oldest first, for ever. progress: told of more than a moment's work."""
        if not self._by_extension:
            log.info("vectors.compared_in_python", reason="sqlite-vec is not installed, or this Python's sqlite3 loads no extensions")
        while True:
            seen = self._store.version
            with unless_lasting():
                try:
                    while done := await self._some_and_rest():
                        if done == BATCH:
                            await self._many(progress)
                except ProviderError as error:
                    self._failures += 1
                    await asyncio.sleep(_waited(error, self._failures))
                    continue
            await self._store.changed(seen, EVERY)

    async def _many(self, progress: Progress) -> None:
        version = self._embedder.version
        left = await self._store.vectors.left(version) + await self._store.documents.left(version)
        if not left:
            return
        with progress.of("embedding", "texts", left) as work:
            while done := await self._some_and_rest():
                work.at(work.done + done, max(left, work.done + done))

    async def _some_and_rest(self) -> int:
        """`_some`, and a rest as long as it took: what people say comes in between."""
        begun = self._time.steady()
        done = await self._some()
        self._failures = 0
        if done:
            await asyncio.sleep(self._time.steady() - begun)
        return done

    async def catch_up(self) -> None:
        """Embed everything that has no vector yet. Raises ProviderError."""
        while await self._some():
            pass

    async def near(self, text: str, names: Collection[str], ids: Sequence[str], pairs: Sequence[Pair] = ()) -> Nearness:
        """How near to `text` the messages of these ids are, and those of `pairs` to one another, as far as they have a vector; nothing
        where the model does not answer within `PATIENCE`. names: of those who speak there."""
        vector = await self._asked(text, names)
        return await self._store.vectors.near(self._embedder.version, vector, ids, pairs) if vector else Nearness()

    async def nearest(self, where: Where | None, text: str, limit: int) -> Sequence[int]:
        """The pieces of documents that may be seen from there and are nearest to `text`, best first; none where the model does not answer
        within `PATIENCE`."""
        if self._store.documents.empty or not (vector := await self._asked(text, ())):
            return ()
        version = self._embedder.version
        return await self._store.documents.nearest(where, version, vector, limit, extension=self._by_extension)

    async def _asked(self, text: str, names: Collection[str]) -> bytes:
        """The vector of a question, empty where there is none in time."""
        asked = embeddable(text, names, self._known)
        if self._time.steady() < self._resting_until or await self._is_held_back([asked]):
            return b""
        try:
            async with asyncio.timeout(PATIENCE):
                found = await self._embedder.embed([asked])
            self._unpaid += found.tokens
            return found[0]
        except (TimeoutError, ProviderError) as error:
            self._resting_until = self._time.steady() + REST
            kind = error.kind if isinstance(error, ProviderError) else "stall"
            log.warning("recall.by_words_alone", kind=kind, err=str(error) or f"no vector within {PATIENCE:g} s", rest=REST)
            return b""

    async def _some(self) -> int:
        """Embed a few messages or, where none lacks its vector, passages of documents. Returns how many."""
        version = self._embedder.version
        waiting = await self._store.vectors.waiting(version, BATCH)
        if not waiting:
            return await self._some_passages(version)
        texts = await asyncio.to_thread(self._texts, waiting)
        if await self._is_held_back(texts):
            return 0
        started = self._time.wall()
        vectors = await self._embedded(texts)
        await self._pay(vectors.tokens, [(each.session, len(text)) for each, text in zip(waiting, texts, strict=True)], started)
        if not await self._store.vectors.add(version, list(zip(waiting, vectors, strict=True))):
            log.warning("embedding.begun_anew", reason="the model's vectors have another length than before")
        return len(waiting)

    async def _some_passages(self, version: str) -> int:
        waiting = await self._store.documents.waiting(version, BATCH)
        if waiting:
            texts = await asyncio.to_thread(lambda: [embeddable(each.text, (), self._known) for each in waiting])
            if await self._is_held_back(texts):
                return 0
            started = self._time.wall()
            vectors = await self._embedded(texts)
            await self._pay(vectors.tokens, [], started)
            await self._store.documents.embedded(version, list(zip(waiting, vectors, strict=True)))
        return len(waiting)

    async def _is_held_back(self, texts: Sequence[str]) -> bool:
        return self._bills is not None and await self._bills.is_held_back(self._seller, sum(map(estimate, texts)))

    async def _pay(self, tokens: int, lengths: Sequence[tuple[str, int]], started: float) -> None:
        """Write down what was embedded, by the sessions it is of: (session, characters of a text). Questions are nobody's in particular."""
        if self._bills is None or not (tokens or self._unpaid):
            return
        characters = Counter[str]()
        for session, length in lengths:
            characters[session] += length
        parts = Counter(dict(zip(characters, shares(tokens, list(characters.values())), strict=True)) if characters else {"": tokens})
        parts[""] += self._unpaid
        self._unpaid = 0
        paid = [(session, Usage(part)) for session, part in parts.items() if part]
        await self._bills.pay("embedding", self._seller, paid, started)

    def _texts(self, waiting: Sequence[Unembedded]) -> list[str]:
        return [embeddable(each.text, each.names, self._known) for each in waiting]

    async def _embedded(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts, empty for one that the model refuses whatever stands beside it."""
        try:
            return await self._embedder.embed(texts)
        except ProviderError as error:
            if error.kind not in REFUSED:
                raise
        probe = await self._embedder.embed([HARMLESS])  # fails where the model takes nothing at all
        alone = [await self._alone(text) for text in texts]
        return Vectors((each[0] for each in alone), probe.tokens + sum(each.tokens for each in alone))

    async def _alone(self, text: str) -> Vectors:
        try:
            return await self._embedder.embed([text])
        except ProviderError as error:
            if error.kind not in REFUSED:
                raise
            log.warning("embedding.refused", kind=error.kind, err=str(error))
            return Vectors([b""])


def _waited(error: ProviderError, failures: int) -> float:
    """Seconds until the next try."""
    wait = backoff(failures, error.retry_after, random.random(), base=1.0, cap=LONGEST_WAIT)  # noqa: S311 - jitter
    wait = wait if error.kind in RETRYABLE else LONGEST_WAIT
    log.warning("embedding.failed", kind=error.kind, err=str(error), wait=round(wait, 1))
    return wait
