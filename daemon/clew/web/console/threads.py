"""The console's pages of threads: which there are, and what was said in each."""

from dataclasses import dataclass
from typing import Annotated, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from clew import contents
from clew.commands.remembering import told
from clew.errors import NotFound
from clew.messages import Message
from clew.store import Compaction, CompactionRow, Filed, Line, Listed
from clew.web.auth import Caller
from clew.web.console.compactions import Compactions
from clew.web.console.frame import Frame, Paging, form, link, redirect
from clew.web.console.turns import Turns
from clew.web.files import given
from clew.web.wire import Problem, checked

THREADS = "/console/threads"
THREAD = f"{THREADS}/thread"
MESSAGE = f"{THREADS}/message"
FILE = f"{THREADS}/file"
WINDOW = f"{THREADS}/window"
PIN = f"{THREADS}/pin"
VERIFY = f"{THREADS}/verify"
DELETE = f"{THREADS}/delete"
PAGE = 50
"""Threads, and rows of a transcript, on one page."""
BEFORE = 8
"""Rows in front of the one that a link leads to."""
SHOWN = 4_000
"""Characters of a text in a transcript; a page of its own has the rest."""
LONGEST = 2**20
"""Characters of a text on its own page. All of it is in the export."""
FORESEEN = 2_000
"""Messages of a thread for which all that goes with them is counted beforehand."""

Identifier = Annotated[str, Field(min_length=1, max_length=64)]
_Seq = Annotated[int, Field(ge=0, lt=2**62)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ThreadsQuery(_Model):
    """q: a part of a title, an address, a person or an id. runs: those of jobs' runs beside their chats."""

    q: Annotated[str, Field(max_length=200)] = ""
    transport: Annotated[str, Field(max_length=100)] = ""
    runs: Literal["", "yes"] = ""
    page: Annotated[int, Field(ge=1, le=100_000)] = 1


class SessionQuery(_Model):
    id: Identifier


class ThreadQuery(SessionQuery):
    """at: the row that is to be read; after, before: the rows behind one, or in front of it. None of them: the newest."""

    at: _Seq | None = None
    after: _Seq | None = None
    before: _Seq | None = None


class MessageQuery(SessionQuery):
    message: Identifier


class FileQuery(MessageQuery):
    """file: which of the message's files, from 0."""

    file: Annotated[int, Field(ge=0, lt=1000)]


class PinForm(MessageQuery):
    do: Literal["pin", "unpin"]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a transcript on its page. place: `window`, `held` (word for word in the summary), `summary`, or empty where it was taken
    back. short: it is one line in the window. cut: the summary whose last row it is."""

    line: Line
    place: Literal["window", "held", "summary", ""]
    short: bool
    cut: CompactionRow | None

    @property
    def message(self) -> Message:
        return self.line.message

    @property
    def words(self) -> bool:
        """Whether what it says may be shown: what was deleted is not."""
        return self.line.taken_back != "deleted"


class Threads:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._store = frame.store

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, THREADS, self.threads)
        self._frame.get(app, THREAD, self.thread)
        self._frame.get(app, MESSAGE, self.message)
        self._frame.get(app, FILE, self.file)
        self._frame.get(app, WINDOW, self.contents)
        self._frame.post(app, PIN, self.pin)
        self._frame.get(app, VERIFY, self.verify)
        self._frame.get(app, DELETE, self.ask_delete)
        self._frame.post(app, DELETE, self.delete)
        Compactions(self._frame).mount(app)
        Turns(self._frame).mount(app)

    async def threads(self, request: web.Request, caller: Caller) -> web.Response:
        asked = checked(ThreadsQuery, request.query)
        filed = Filed(asked.q.strip(), asked.transport, asked.runs == "yes")
        found, total = await self._store.session_page(filed, PAGE, (asked.page - 1) * PAGE)
        return await self._frame.drawn(
            request,
            "threads.html",
            threads=found,
            asked=asked,
            paging=Paging(asked.page, PAGE, total),
            transports=await self._store.chat_transports(),
            window=await self.window(),
        )

    async def window(self) -> int:
        """Tokens that the first provider's model takes."""
        return (await self._frame.service.providers[0].limits()).window

    async def thread(self, request: web.Request, caller: Caller) -> web.Response:
        asked = checked(ThreadQuery, request.query)
        listed = await self._listed(asked.id)
        session = listed.row.id
        if asked.at is not None:
            found = await self._store.lines(session, PAGE, after=max(0, asked.at - BEFORE - 1))
        elif asked.after is not None:
            found = await self._store.lines(session, PAGE, after=asked.after)
        else:
            found = await self._store.lines(session, PAGE, before=asked.before)
        tip = await self._store.newest_compaction(session)
        rows = await self._rows(session, found.lines, tip)
        return await self._frame.drawn(
            request,
            "thread.html",
            listed=listed,
            rows=rows,
            earlier=found.earlier,
            later=found.later,
            after=asked.after or 0,
            at=asked.at,
            tip=tip,
            most=SHOWN,
            window=await self.window(),
        )

    async def _listed(self, prefix: str) -> Listed:
        """The session with this id, or this beginning of one. Raises NotFound or UsageError."""
        return await self._store.listed((await self._store.find_session(prefix)).id)

    async def _rows(self, session: str, lines: tuple[Line, ...], tip: Compaction | None) -> list[Row]:
        if not lines:
            return []
        cuts = {each.to_seq: each for each in await self._store.cuts(session, lines[0].message.seq, lines[-1].message.seq)}
        return [_row(line, tip, cuts.get(line.message.seq)) for line in lines]

    async def _found(self, asked: MessageQuery) -> Line:
        """A row by its id, with what was done to it. Raises NotFound or UsageError."""
        session = (await self._store.find_session(asked.id)).id
        (message,) = await self._store.messages([asked.message]) or (None,)
        rows = await self._store.lines(session, 1, after=message.seq - 1) if message else None
        if message is None or rows is None or not rows.lines or rows.lines[0].message.id != message.id:
            raise NotFound(f"There is no message {asked.message[:40]!r} in session {session}.")
        return rows.lines[0]

    async def message(self, request: web.Request, caller: Caller) -> web.Response:
        asked = checked(MessageQuery, request.query)
        listed = await self._listed(asked.id)
        line = await self._found(asked)
        (row,) = await self._rows(listed.row.id, (line,), await self._store.newest_compaction(listed.row.id))
        return await self._frame.drawn(request, "message.html", listed=listed, row=row, most=LONGEST)

    async def file(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        asked = checked(FileQuery, request.query)
        line = await self._found(asked)
        files = line.message.files if line.taken_back != "deleted" else ()
        kept = files[asked.file] if asked.file < len(files) else None
        path = await self._store.files.path(kept.hash) if kept and kept.hash else None
        if kept is None or path is None:
            raise NotFound("The bytes of this file are not kept.")
        return await given(path, kept.name)

    async def contents(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        """What the model sees when the next message comes, in the words of `/context`."""
        listed = await self._listed(checked(SessionQuery, request.query).id)
        seen = await self._frame.service.contents.of(listed.row.id)
        words = [line for line in contents.told(seen).splitlines() if line and not line.startswith("- ")]
        return await self._frame.drawn(request, "window.html", listed=listed, seen=seen, words=words)

    async def pin(self, request: web.Request, caller: Caller) -> web.Response:
        asked = await form(request, PinForm)
        session = (await self._store.find_session(asked.id)).id
        threads = self._frame.service.threads
        pinned = await (threads.pin if asked.do == "pin" else threads.unpin)(session, asked.message)
        await threads.carry_out(session, pinned.effect)
        return redirect(f"{link(THREAD, id=session, at=pinned.message.seq)}#m{pinned.message.seq}")

    async def verify(self, request: web.Request, caller: Caller) -> web.Response:
        listed = await self._listed(checked(SessionQuery, request.query).id)
        problems = await self._store.verify_session(listed.row.id)
        return await self._frame.drawn(request, "verify.html", listed=listed, problems=problems)

    async def ask_delete(self, request: web.Request, caller: Caller) -> web.Response:
        listed = await self._listed(checked(SessionQuery, request.query).id)
        goes = f"{listed.row.messages:,} messages"
        if listed.row.messages <= FORESEEN:
            rows = (await self._store.lines(listed.row.id, FORESEEN)).lines
            goes = told(await self._store.foreseen(listed.row.id, [row.message.id for row in rows]))
        return await self._frame.drawn(request, "delete.html", listed=listed, goes=goes)

    async def delete(self, request: web.Request, caller: Caller) -> web.Response:
        """A form names the whole id: what was asked about is what goes."""
        asked = await form(request, SessionQuery)
        session = await self._store.find_session(asked.id)
        if session.id != asked.id:
            raise Problem(400, "A session is deleted by its whole id.")
        await self._store.delete_session(session.id)
        return redirect(THREADS)


def _row(line: Line, tip: Compaction | None, cut: CompactionRow | None) -> Row:
    message = line.message
    behind = tip is not None and message.seq <= tip.to_seq
    place: Literal["window", "held", "summary", ""] = "summary" if behind else "window"
    if line.taken_back and not line.shown:
        place = ""
    elif tip and message.id in tip.held:
        place = "held"
    return Row(line, place, bool(tip and not behind and message.id in tip.shortened), cut)
