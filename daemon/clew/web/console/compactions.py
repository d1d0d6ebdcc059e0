"""The console's pages of compactions: what each kept, changed and dropped, and making, undoing and redoing them."""

from dataclasses import asdict
from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from clew.compacted import difference, entry_line, outcome_words, preview_words, told
from clew.compactor import Outcome
from clew.context import ledger as ledgers
from clew.context.ledger import Entry
from clew.errors import UsageError
from clew.store import Compaction
from clew.web.auth import Caller
from clew.web.console.frame import Frame, Paging, form, link, redirect
from clew.web.wire import Problem, checked

COMPACTIONS = "/console/threads/compactions"
COMPACTION = "/console/threads/compaction"
COMPACT = "/console/threads/compact"
UNDO = "/console/threads/undo"
REDO = "/console/threads/redo"
PAGE = 50
WHOLE = 2**31
"""Characters that no entry has: nothing of it is cut."""
CONTEXT = 2
"""Lines that a diff shows around what changed."""
PARTS = ("dropped", "changed", "added", "kept", "refused")

_Id = Annotated[str, Field(min_length=1, max_length=64)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SessionForm(_Model):
    id: _Id


class CompactionsQuery(SessionForm):
    page: Annotated[int, Field(ge=1, le=100_000)] = 1


class CompactionQuery(SessionForm):
    number: Annotated[int, Field(ge=1, le=10**9)]


class CompactForm(SessionForm):
    """focus: what the summary must keep."""

    focus: Annotated[str, Field(max_length=10_000)] = ""


class RedoForm(CompactForm):
    """instructions: what the summariser is told this once, in the place of the usual instructions."""

    instructions: Annotated[str, Field(max_length=10_000)] = ""


class UndoForm(SessionForm):
    """compaction: the one that was looked at, so that no other is undone."""

    compaction: _Id


class Compactions:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._store = frame.store

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, COMPACTIONS, self.compactions)
        self._frame.get(app, COMPACTION, self.compaction)
        self._frame.get(app, COMPACT, self.preview)
        self._frame.post(app, COMPACT, self.compact)
        self._frame.post(app, UNDO, self.undo)
        self._frame.post(app, REDO, self.redo)

    async def compactions(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        asked = checked(CompactionsQuery, request.query)
        row = await self._store.find_session(asked.id)
        found, total = await self._store.compaction_page(row.id, PAGE, (asked.page - 1) * PAGE)
        failing = await self._store.failing_compactions(row.id)
        paging = Paging(asked.page, PAGE, total)
        return await self._frame.drawn(request, "compactions.html", row=row, compactions=found, paging=paging, failing=failing)

    async def compaction(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        asked = checked(CompactionQuery, request.query)
        row = await self._store.find_session(asked.id)
        found, before, before_number = await self._store.compaction(row.id, asked.number)
        newest = await self._store.newest_compaction(row.id)
        try:
            report = told(found)
        except ValueError:
            raise Problem(409, f"Compaction {asked.number} is damaged and cannot be read.", "The thread goes on without it.") from None
        names = (f"compaction {before_number or '(none)'}", f"compaction {asked.number}")
        return await self._frame.drawn(
            request,
            "compaction.html",
            row=row,
            number=asked.number,
            compaction=found,
            before=before_number,
            newest=newest is not None and newest.id == found.id and not await self._store.begins_branch(found),
            report=report,
            parts=[(name, getattr(report, name)) for name in PARTS],
            entries=entries(found),
            difference=difference(before.text if before else "", found.text, names, CONTEXT)[2:],
            line=lambda entry: entry_line(entry, WHOLE),
            section=ledgers.section,
        )

    async def preview(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        row = await self._store.find_session(checked(SessionForm, request.query).id)
        plan = await self._frame.service.compactor.preview(row.id)
        words = preview_words(**asdict(plan))
        return await self._frame.drawn(request, "compact.html", row=row, plan=plan, words=words)

    async def compact(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        asked = await form(request, CompactForm)
        row = await self._store.find_session(asked.id)
        return await self._made(row.id, await self._frame.service.compactor.compact(row.id, "command", asked.focus or None))

    async def redo(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        asked = await form(request, RedoForm)
        row = await self._store.find_session(asked.id)
        compactor = self._frame.service.compactor
        return await self._made(row.id, await compactor.redo(row.id, asked.focus or None, instructions=asked.instructions))

    async def _made(self, session: str, outcome: Outcome) -> web.StreamResponse:
        """To the compaction that was made. Raises Problem where none was."""
        if outcome.state != "done":
            raise Problem(409, outcome_words(**asdict(outcome)))
        (newest, *_), _ = await self._store.compaction_page(session, 1, 0)
        return redirect(link(COMPACTION, id=session, number=newest.number))

    async def undo(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        asked = await form(request, UndoForm)
        row = await self._store.find_session(asked.id)
        threads = self._frame.service.threads
        undone = await threads.undo_compaction(row.id)
        if undone.compaction.id != asked.compaction:
            raise Problem(409, "This is not the newest compaction any more. Nothing was undone.", "Undo the newest one first.")
        try:
            await threads.carry_out(row.id, undone.effect)
        except UsageError as error:
            raise Problem(409, error.message, error.hint) from error
        return redirect(link(COMPACTIONS, id=row.id))


def entries(compaction: Compaction) -> ledgers.Ledger:
    """The entries of a summary, those under one heading together, in the order of its text; none of a damaged one."""
    try:
        ledger = ledgers.from_json(compaction.ledger)
    except ValueError:
        return ()
    return tuple(sorted(ledger, key=_place))


def _place(entry: Entry) -> int:
    return ledgers.SECTIONS.index(ledgers.section(entry))
