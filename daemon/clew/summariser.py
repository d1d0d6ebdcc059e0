"""From what a compaction demotes to the new ledger: what the summariser is asked, in how many parts, and what comes of its answers."""

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from clew.compacted import began
from clew.config import Compression
from clew.context import ledger as ledgers
from clew.context.compression import chunks
from clew.context.contract import refusal, room
from clew.context.extract import extracting
from clew.context.ledger import Ledger
from clew.context.prompt import Marks
from clew.context.revision import Report, Size, hear, in_all, revising
from clew.context.steps import Steps, finish
from clew.context.summarise import material, message_tokens, pointers
from clew.context.tokens import estimate
from clew.context.view import Rendered
from clew.messages import Text
from clew.model_call import ModelCaller, Spent
from clew.prompting import Behind, Prompter
from clew.prompts import load
from clew.providers import Limits, PromptMessage, Provider, ProviderError, Request, SystemBlock
from clew.purse import OverBudget
from clew.stopping import Stop, Stopped
from clew.store import ViewRows
from clew.store.sql import SqlStore


class SummaryFailed(Exception):
    """No summary came of it. calls: what was paid for all the same."""

    def __init__(self, why: str, spent: Spent) -> None:
        super().__init__(why)
        self.calls = tuple(spent.calls)


@dataclass(frozen=True, slots=True)
class Work:
    """A cut carried out: what goes and what stays."""

    rows: ViewRows
    demoted: tuple[Rendered, ...]
    kept: tuple[Rendered, ...]
    focus: str
    instructions: str  # in the place of the configured ones
    payer: str
    summary_tokens: int
    shorten: tuple[str, ...]
    extract: bool  # without a model
    replaces: str | None  # the newest compaction, if this one takes its place
    stop: Stop | None
    behind: Behind | None = None  # the request, where it shares the prefix of the session's replies

    @property
    def ledger(self) -> Ledger:
        return ledgers.from_json(self.rows.compaction.ledger) if self.rows.compaction else ()


class Summariser:
    """Makes summaries. provider: the model that writes them; own: the session's own.

    prompter: what makes the requests of the session's replies; None where there are none whose cached prefix a summary could share.
    """

    def __init__(
        self,
        store: SqlStore,
        settings: Compression,
        caller: ModelCaller,
        provider: Provider,
        own: Provider,
        zone: tzinfo,
        known: Collection[str],
        prompter: Prompter | None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._caller = caller
        self._provider = provider
        self._own = own
        self._zone = zone
        self._known = known
        self._prompter = prompter

    async def behind(self, work: Work) -> Behind | None:
        """The request behind the prefix of the session's replies, where their model writes the summary and holds that prefix.

        After a failure the summariser gets a prompt of its own: it may have gone on with the conversation, or called a tool.
        """
        if self._prompter is None or self._provider.cache_ttl is None or work.rows.failures:
            return None
        if (self._provider.name, self._provider.model) != (self._own.name, self._own.model):
            return None
        numbered, output = ledgers.numbered(work.ledger), load("summary_format").text
        told = await asyncio.to_thread(pointers, numbered, work.demoted, output, work.focus, self._known)
        words = f"{load('summary_behind').text}\n\n{self._instructions(work)}\n\n{told}"
        longest = _longest(work, await self._provider.limits())
        than = self._own_prompt_tokens(work)
        return await self._prompter.behind(work.rows, work.demoted, words, longest, self._provider, than)

    def read_tokens(self, work: Work) -> int:
        """Estimated tokens that the summariser reads."""
        return work.behind.tokens if work.behind else self._own_prompt_tokens(work)

    def _own_prompt_tokens(self, work: Work) -> int:
        """The same where it gets a prompt of its own."""
        fixed = estimate(self._instructions(work)) + estimate(load("summary_format").text)
        summary = estimate(work.rows.compaction.text) if work.rows.compaction else 0
        return fixed + summary + sum(message_tokens(message, self._zone) for message in work.demoted)

    async def revised(self, work: Work) -> tuple[Ledger, Report, Spent]:
        """The new ledger. The old part is fed in as many consecutive parts as the summariser's window asks for."""
        limits = await self._provider.limits()
        capacity, limit = self._capacity(limits, work)
        sizes = [message_tokens(message, self._zone) for message in work.demoted]
        parts = [(0, len(sizes))] if work.behind else chunks(sizes, capacity)
        before = ledger = work.ledger
        reports: list[Report] = []
        spent = Spent()
        for start, end in parts:
            part = work.demoted[start:end]
            answer = "" if work.extract else await self._ask(self._request(ledger, part, work, limits, limit), work, spent)
            if not work.extract and (why := refusal(answer)):
                raise SummaryFailed(why, spent)
            ledger, report = await asyncio.to_thread(finish, self._revision(ledger, part, answer, work), _pause)
            reports.append(report)
        if not ledger:
            raise SummaryFailed("the summary is empty", spent)
        return ledger, in_all(before, ledger, reports), spent

    def _revision(self, ledger: Ledger, part: Sequence[Rendered], answer: str, work: Work) -> Steps[tuple[Ledger, Report]]:
        """The ledger after an answer of the summariser or, where there is none or nothing comes of it, after an extract."""
        replaced = material(ledgers.numbered(ledger), part, self._zone, "")
        year = datetime.fromtimestamp(began(work.rows, work.demoted), self._zone).year
        size = Size(room(work.summary_tokens, replaced), self._zone, year)
        heard = yield from hear(part, self._known)
        if answer:
            revised, report = yield from revising(ledger, heard, answer, self._known, size=size)
            if revised:
                return revised, report
        answer = yield from extracting(ledger, heard, size.tokens)
        return (yield from revising(ledger, heard, answer, self._known, size=size))

    def _capacity(self, limits: Limits, work: Work) -> tuple[int, int]:
        """(tokens of messages that fit one request, characters of one message)."""
        fixed = estimate(self._instructions(work)) + estimate(load("summary_format").text) + work.summary_tokens * 2 + 500
        room = max(limits.window - fixed - work.summary_tokens, limits.window // 4)
        return room, max(room * 2, 400)

    def prompt_version(self, work: Work) -> str:
        """Of the prompts that a summary was asked for with."""
        version = "custom" if work.instructions or self._settings.prompt else load("summary").version
        return " ".join([version, load("summary_format").version, *([load("summary_behind").version] if work.behind else [])])

    def _instructions(self, work: Work) -> str:
        return work.instructions or self._settings.prompt or load("summary").text

    def _request(self, ledger: Ledger, part: Sequence[Rendered], work: Work, limits: Limits, limit: int) -> Request:
        if work.behind:
            return work.behind.marks.request
        text = material(ledgers.numbered(ledger), part, self._zone, load("summary_format").text, work.focus, limit, self._known)
        said = PromptMessage("user", (Text(text),))
        return Request((SystemBlock("base", self._instructions(work)),), (said,), max_tokens=_longest(work, limits), purpose="summary")

    async def _ask(self, request: Request, work: Work, spent: Spent) -> str:
        marks, chain = (work.behind.marks, work.behind.chain) if work.behind else (Marks(request, ()), ())
        try:
            done = await self._caller.call(
                self._provider, marks, chain, payer=work.payer, spent=spent, session=work.rows.session, stop=work.stop
            )
        except (Stopped, OverBudget):
            await self._store.note_calls(work.rows.session, spent.calls)  # no failure of the summariser's, but paid for
            raise
        except ProviderError as error:
            raise SummaryFailed(f"{error.kind}: {error}", spent) from error
        if done.stop == "refusal":
            raise SummaryFailed("the summariser refused", spent)
        return "\n".join(block.text for block in done.blocks if isinstance(block, Text))


def _pause() -> None:
    """Leave the interpreter to the loop: while a thread works it changes hands every 5 ms only."""
    time.sleep(0)


def _longest(work: Work, limits: Limits) -> int:
    """Tokens of the longest answer that a summariser may give."""
    return min(work.summary_tokens, limits.max_output, max(limits.window // 8, 200))
