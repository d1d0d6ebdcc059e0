"""The JSON API: what operators' commands and scripts ask of a running daemon."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from clew import contents
from clew.errors import ClewError, NotFound, UsageError
from clew.messages import Message, blocks_to_json
from clew.service import Service
from clew.store import Compaction, Said, SessionRow
from clew.threads import Pinned
from clew.transport import Address
from clew.web.access import Access
from clew.web.approvals import Approvals
from clew.web.auth import Door, by_socket
from clew.web.chat import PAGE, place
from clew.web.costs import Costs
from clew.web.database import Database
from clew.web.deliveries import Deliveries
from clew.web.documents import Documents
from clew.web.imports import Imports
from clew.web.index import Index
from clew.web.jobs import Jobs
from clew.web.memory import Memory
from clew.web.openapi import BASE, Call, Endpoint, document
from clew.web.privacy import Privacy
from clew.web.search import Search
from clew.web.wire import Problem, answer, checked, plain, problem_of, read_object

IMPORT_BYTES = 256 * 2**20
"""The longest export that can be read back."""
DEEPEST = 10_000
"""How far back from a chat's end its older messages are looked for."""

log = structlog.get_logger()


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SessionsQuery(_Model):
    address: Annotated[str, Field(max_length=512)] | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1000


class TranscriptQuery(_Model):
    """after: seq of the newest message that you have."""

    after: Annotated[int, Field(ge=0, lt=2**63)] = 0
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1000


class ChatQuery(_Model):
    """after: first what follows this seq; before: last what precedes it; neither: the newest."""

    after: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    before: Annotated[int, Field(ge=1, lt=2**63)] | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = PAGE


class CompactQuery(_Model):
    preview: bool = False


class CompactBody(_Model):
    """focus: what the summary must keep."""

    focus: Annotated[str, Field(max_length=10_000)] | None = None


class RedoBody(CompactBody):
    """instructions: what the summariser is told this once, in the place of the usual instructions."""

    instructions: Annotated[str, Field(max_length=10_000)] = ""


class PinBody(_Model):
    """message: an id or its beginning, or `#7` for the seventh."""

    message: Annotated[str, Field(min_length=1, max_length=64)]


class TerminalBody(_Model):
    """session: an id or its beginning, `latest`, or null for a new one. title: of a new one."""

    session: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    title: Annotated[str, Field(max_length=200)] = ""


class ImportBody(BaseModel):
    """An export, as `GET /sessions/{id}/export` gives it."""

    model_config = ConfigDict(extra="allow")

    clew: int
    session: dict[str, JsonValue]


class Sessions(BaseModel):
    sessions: list[SessionRow]


class Compactions(BaseModel):
    compactions: list[Compaction]


class Pins(BaseModel):
    """pins: the one pinned last at the end."""

    pins: list[dict[str, JsonValue]]


class Context(BaseModel):
    """context: the figures; told: the same in words, as /context says it."""

    context: dict[str, JsonValue]
    told: str


class Messages(BaseModel):
    """more: whether there are further ones in the direction asked for."""

    messages: list[Said]
    more: bool


class Transcript(BaseModel):
    messages: list[dict[str, JsonValue]]
    more: bool


class Terminal(BaseModel):
    """address: of the caller's terminal chat. after: seq of its newest message."""

    session: str
    address: str
    after: int


class Api:
    """The handlers, and the table of routes that they are mounted and described by."""

    def __init__(self, service: Service, door: Door) -> None:
        self._service = service
        self._store = service.store
        self._door = door
        self.endpoints = (
            Endpoint("GET", "/status", self.status, "How the daemon is"),
            Endpoint("GET", "/sessions", self.sessions, "Sessions, the one used last first", Sessions, SessionsQuery),
            Endpoint("POST", "/sessions/import", self.import_session, "Read an export back", body=ImportBody, body_bytes=IMPORT_BYTES),
            Endpoint("GET", "/sessions/{id}", self.session, "One session", SessionRow),
            Endpoint("DELETE", "/sessions/{id}", self.delete_session, "Delete a session with all that hangs on it"),
            Endpoint("GET", "/sessions/{id}/transcript", self.transcript, "Its messages, oldest first", Transcript, TranscriptQuery),
            Endpoint("GET", "/sessions/{id}/context", self.context, "What its model sees, by part, and when it is compacted next", Context),
            Endpoint("GET", "/sessions/{id}/compactions", self.compactions, "Its compactions, oldest first", Compactions),
            Endpoint("GET", "/sessions/{id}/export", self.export_session, "All of a session"),
            Endpoint("POST", "/sessions/{id}/compact", self.compact, "Compact now, or preview", query=CompactQuery, body=CompactBody),
            Endpoint("POST", "/sessions/{id}/redo", self.redo, "Write the newest summary anew", body=RedoBody),
            Endpoint("POST", "/sessions/{id}/undo-compaction", self.undo_compaction, "Undo the newest compaction", Compaction),
            Endpoint("GET", "/sessions/{id}/pins", self.pins, "Its pinned messages", Pins),
            Endpoint("POST", "/sessions/{id}/pins", self.pin, "Keep a message word for word", body=PinBody),
            Endpoint("DELETE", "/sessions/{id}/pins/{message}", self.unpin, "Let go of a pinned message"),
            Endpoint("GET", "/chats/{id}/messages", self.messages, "The timeline of a web chat", Messages, ChatQuery, everybody=True),
            *Deliveries(service).endpoints,
            Endpoint("POST", "/terminal/session", self.terminal, "Choose the session of your terminal chat", Terminal, body=TerminalBody),
            *Access(service).endpoints,
            *Memory(service).endpoints,
            *Imports(service).endpoints,
            *Jobs(service).endpoints,
            *Approvals(service).endpoints,
            *Search(service).endpoints,
            *Index(service).endpoints,
            *Privacy(service).endpoints,
            *Documents(service).endpoints,
            *Database(service).endpoints,
            *Costs(service).endpoints,
        )

    def mount(self, app: web.Application) -> None:
        # Paths without variables come first, and are nobody's id for the methods that they do not have.
        for path in sorted(dict.fromkeys(endpoint.path for endpoint in self.endpoints), key=lambda each: "{" in each):
            here = [endpoint for endpoint in self.endpoints if endpoint.path == path]
            for endpoint in here:
                app.router.add_route(endpoint.method, BASE + path, self._handler(endpoint))
            if "{" not in path:
                app.router.add_route("*", BASE + path, _other_method([endpoint.method for endpoint in here]))
        app.router.add_get(BASE + "/openapi.json", self._openapi)

    async def _openapi(self, request: web.Request) -> web.Response:
        return await answer(document(self.endpoints))

    def _handler(self, endpoint: Endpoint) -> Any:
        async def handle(request: web.Request) -> web.Response:
            caller = self._door.known(request) if endpoint.everybody else self._door.owner(request)
            if (request.method == "POST" or endpoint.body) and request.content_type != "application/json" and not by_socket(request):
                raise Problem(400, "The body's type must be application/json.", "Send `Content-Type: application/json`.")
            query = checked(endpoint.query, request.query) if endpoint.query else None
            body = checked(endpoint.body, await read_object(request, endpoint.body_bytes)) if endpoint.body else None
            try:
                return await answer(await endpoint.handler(Call(caller, dict(request.match_info), query, body)))
            except ClewError as error:
                raise problem_of(error) from error

        return handle

    async def _find(self, call: Call) -> SessionRow:
        return await self._store.find_session(call.path["id"])

    # Sessions ----------------------------------------------------------------------------------------------------

    async def status(self, call: Call) -> Any:
        return await self._service.status()

    async def sessions(self, call: Call) -> Any:
        return {"sessions": await self._store.sessions(call.query.address, call.query.limit)}

    async def session(self, call: Call) -> Any:
        return await self._find(call)

    async def transcript(self, call: Call) -> Any:
        session = await self._find(call)
        messages = await self._store.transcript(session.id, call.query.after)
        page = messages[: call.query.limit]
        return {"messages": [_message(each) for each in page], "more": len(messages) > len(page)}

    async def compactions(self, call: Call) -> Any:
        session = await self._find(call)
        return {"compactions": await self._store.compactions(session.id)}

    async def export_session(self, call: Call) -> Any:
        session = await self._find(call)
        return await self._store.export_session(session.id)

    async def import_session(self, call: Call) -> Any:
        data = call.body.model_dump()
        identifier = data["session"].get("id")
        if isinstance(identifier, str) and await self._is_here(identifier):
            raise Problem(409, f"The session {identifier} is here already.", "Delete it first, or keep the one that is here.")
        try:
            messages = data.get("messages")
            count = len(messages) if isinstance(messages, list) else None
            with self._service.progress.of("import", "messages", count) as work:
                return {"session": await self._store.import_session(data, self._service.time.wall(), work.at)}
        except UsageError as error:
            raise Problem(422, error.message, error.hint) from error

    async def _is_here(self, identifier: str) -> bool:
        try:
            return (await self._store.find_session(identifier)).id == identifier
        except (NotFound, UsageError):
            return False

    async def delete_session(self, call: Call) -> Any:
        session = await self._find(call)
        try:
            return {"session": session.id, "messages": await self._store.delete_session(session.id, self._service.time.wall())}
        except UsageError as error:
            raise Problem(409, error.message, error.hint) from error

    async def compact(self, call: Call) -> Any:
        session = await self._find(call)
        if call.query.preview:
            return plain(await self._service.compactor.preview(session.id))
        return plain(await self._service.compactor.compact(session.id, "command", call.body.focus))

    async def redo(self, call: Call) -> Any:
        session = await self._find(call)
        return plain(await self._service.compactor.redo(session.id, call.body.focus, instructions=call.body.instructions))

    async def undo_compaction(self, call: Call) -> Any:
        session = await self._find(call)
        try:
            undone = await self._service.threads.undo_compaction(session.id)
            await self._service.threads.carry_out(session.id, undone.effect)
            return next(each for each in await self._store.compactions(session.id) if each.id == undone.compaction.id)
        except UsageError as error:
            raise Problem(409, error.message, error.hint) from error

    async def context(self, call: Call) -> Any:
        seen = await self._service.contents.of((await self._find(call)).id)
        return {"context": plain(seen), "told": contents.told(seen)}

    async def pins(self, call: Call) -> Any:
        pins = await self._store.pins((await self._find(call)).id)
        return {"pins": [{"message": _message(each.message), "by": each.by, "at": each.at} for each in pins]}

    async def pin(self, call: Call) -> Any:
        return await self._marked((await self._find(call)).id, self._service.threads.pin, call.body.message)

    async def unpin(self, call: Call) -> Any:
        return await self._marked((await self._find(call)).id, self._service.threads.unpin, call.path["message"])

    async def _marked(self, session: str, how: Callable[[str, str], Awaitable[Pinned]], message: str) -> Any:
        pinned = await how(session, message)
        await self._service.threads.carry_out(session, pinned.effect)
        return _pinned(pinned)

    # Chats -------------------------------------------------------------------------------------------------------

    async def messages(self, call: Call) -> Any:
        query: ChatQuery = call.query
        address = str(place(call.caller, call.path["id"])[0])
        if query.after is not None and query.before is not None:
            raise Problem(400, "Give after or before, not both.")
        if query.after is not None:
            found = await self._store.history(address, query.after, query.limit + 1, newest=False)
            page = found[: query.limit]
        else:
            found = await self._preceding(address, query.before or 2**63 - 1, query.limit + 1)
            page = found[-query.limit :]
        # Of a deleted message the place remains, without its words.
        return {"messages": [said for said in page if said.text or said.files], "more": len(found) > query.limit}

    async def _preceding(self, address: str, before: int, wanted: int) -> list[Said]:
        """The newest `wanted` lines in front of `before`, found by looking further and further back from the end."""
        depth = wanted
        while True:
            depth = min(2 * depth, DEEPEST)
            page = await self._store.history(address, 0, depth, newest=True)
            found = [said for said in page if said.seq < before]
            if len(found) >= wanted or len(page) < depth or depth == DEEPEST:
                return found[-wanted:]

    async def terminal(self, call: Call) -> Any:
        if call.caller.user is None:
            raise Problem(400, "The terminal is reached through the daemon's socket only.")
        address = Address("terminal", call.caller.user)
        wanted = call.body.session
        if wanted == "latest":
            wanted = await self._service.latest_session(address)
            if wanted is None:
                raise NotFound("You have no terminal session yet.", hint="Start one with `clew chat`.")
        session = await self._service.attach(address, str(address), wanted, call.body.title)
        newest = await self._store.history(str(address), 0, 1, newest=True)
        return {"session": session, "address": str(address), "after": newest[-1].seq if newest else 0}


def _other_method(methods: Sequence[str]) -> Handler:
    """Refuses what is none of `methods`."""

    async def handle(request: web.Request) -> web.StreamResponse:
        raise web.HTTPMethodNotAllowed(request.method, methods)

    return handle


def _pinned(pinned: Pinned) -> dict[str, Any]:
    """new: it was not so before. behind: the summary shows it from the next compaction on."""
    return {"message": _message(pinned.message), "new": pinned.new, "behind": pinned.behind}


def _message(message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = plain(message)
    return fields | {"blocks": json.loads(blocks_to_json(message.blocks)), "text": message.text}
