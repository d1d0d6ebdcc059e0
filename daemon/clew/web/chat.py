"""The WebSocket of the chat page and of `clew chat`.

A socket acknowledges what is stored, shows what is being written, and reads the timeline of its chat. Nothing depends on a frame
arriving: whoever comes back with `after` gets what was missed.
"""

import asyncio
import contextlib
import json
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import structlog
from aiohttp import WSCloseCode, WSMsgType, web

from clew.bus import LiveEvent, Replied, Subscription
from clew.errors import ClewError
from clew.service import Service
from clew.store import Said
from clew.store.files import UPLOAD, Kept
from clew.store.logins import page_name
from clew.transport import Address, Attachment, Inbound, Preview, Typing
from clew.web.auth import Caller, Door
from clew.web.transport import CHAT
from clew.web.wire import Problem

HEARTBEAT_S = 30.0
SEND_S = 20.0
"""A client that takes no frame for this long is hung up on; it comes back with `after`."""
RESYNC_S = 30.0
"""The bus may drop events of a socket that lags: the timeline is looked at this often in any case."""
PAGE = 200
"""Lines of a timeline read at once, and the newest ones shown to a client that has none."""
SOCKETS = 256
"""Sockets that may be open at once."""
REMEMBERED = 1000
"""Ids that a socket remembers, of its own messages and of answered ones."""
ID_CHARS = 128
LOCAL = "local"
"""The chat that the plain page opens, and this machine's owner there."""
MOST_UPLOADS = 16
"""Files of one message."""


_FILE_ID = re.compile("[a-z2-7]{12}")

log = structlog.get_logger()


class Unusable(Exception):
    """A frame that cannot be taken. `id`: of the message it holds, if it has one."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(reason)
        self.id = message


class Recent:
    """The newest ids of a kind, in bounded number."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def add(self, identifier: str) -> None:
        self._ids[identifier] = None
        if len(self._ids) > REMEMBERED:
            self._ids.popitem(last=False)

    def __contains__(self, identifier: str) -> bool:
        return identifier in self._ids


def is_file_id(value: object) -> bool:
    """Whether it looks like the id of a file."""
    return isinstance(value, str) and _FILE_ID.fullmatch(value) is not None


def frame_limit(message_bytes: int) -> int:
    """The longest frame: JSON may write each byte of a text in six."""
    return 6 * message_bytes + 4096


def parse(frame: str, message_bytes: int) -> tuple[str, str, tuple[str, ...]]:
    """The id, the text and the ids of the uploads of a client's frame. Raises Unusable."""
    try:
        value = json.loads(frame)
    except (ValueError, RecursionError):
        raise Unusable("This frame is not JSON.") from None
    if not isinstance(value, dict) or value.get("type") != "message":
        raise Unusable('A frame is a JSON object whose type is "message".')
    identifier, text = value.get("id"), value.get("text")
    if not (isinstance(identifier, str) and 0 < len(identifier) <= ID_CHARS and identifier.isprintable()):
        raise Unusable(f"id must be a text of 1 to {ID_CHARS} characters.")
    uploads = value.get("attachments", [])
    if not isinstance(uploads, list) or len(uploads) > MOST_UPLOADS or not all(map(is_file_id, uploads)):
        raise Unusable(f"attachments must be a list of at most {MOST_UPLOADS} ids of uploads.", identifier)
    if not isinstance(text, str) or not (text.strip() or uploads):
        raise Unusable("The message is empty.", identifier)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Unusable("The message holds half a character, which is not valid Unicode.", identifier) from None
    if size > message_bytes:
        raise Unusable(f"The message is too long: {size} bytes, and at most {message_bytes} are taken.", identifier)
    return identifier, text, tuple(uploads)


def line(said: Said) -> dict[str, Any]:
    """A line of a timeline as clients see it. `at`: seconds since the epoch, UTC. failed: only where a reply says that there is none.

    question: only where it asks for a yes and is open; the code that an answer names it by. attachments: only where files came with it.
    """
    return (
        {
            "type": "message",
            "seq": said.seq,
            "id": said.id,
            "in_reply_to": said.in_reply_to or None,
            "answers": list(said.answers),
            "role": said.role,
            "text": said.text,
            "at": said.at,
        }
        | ({"failed": True} if said.failed else {})
        | ({"question": said.question} if said.question else {})
        | ({"attachments": [asdict(each) for each in said.files]} if said.files else {})
    )


def _attachment(upload: str, kept: Kept | None) -> Attachment:
    """An upload as a file of a message. One that is not there (any more) is one all the same: the message may have been stored before."""
    name, mime, size = (kept.name, kept.mime, kept.size) if kept else ("file", "", 0)
    return Attachment(name, mime, size, f"{UPLOAD}{upload}")


class ChatSocket:
    """One client of one chat.

    abort: drops the connection at once. after: place in the timeline up to which the client has everything; 0: it has nothing.
    holds: whether whoever is behind it may still be here; asked before anything is taken or shown.
    """

    def __init__(
        self,
        service: Service,
        ws: web.WebSocketResponse,
        abort: Callable[[], None],
        address: Address,
        sender: str,
        after: int,
        holds: Callable[[], Awaitable[bool]],
    ) -> None:
        self._holds = holds
        self._service = service
        self._ws = ws
        self._abort = abort
        self._address = address
        self._sender = sender
        self._after = after
        self._own = Recent()
        self._answered = Recent()
        self._turn = ""
        self._shown = 0

    async def run(self) -> None:
        """Serve until the client is gone, then close."""
        with self._service.bus.subscribe(self._address) as events:
            pushing = asyncio.create_task(self._push(events), name=f"push {self._address}")
            try:
                await self._read()
            except ConnectionError:
                pass
            except TimeoutError:
                self._abort()
            finally:
                pushing.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await pushing
        await self._ws.close()

    # In ----------------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        async for frame in self._ws:
            if not await self._holds():
                await self._ws.close(code=WSCloseCode.POLICY_VIOLATION)
                return
            if frame.type is WSMsgType.TEXT:
                await self._take(frame.data)
            elif frame.type is WSMsgType.BINARY:
                await self._send({"type": "error", "text": "Frames must be text; this one is binary."})

    async def _take(self, frame: str) -> None:
        try:
            identifier, text, uploads = parse(frame, self._service.config.limits.message_bytes)
            await self._store(identifier, text, uploads)
        except Unusable as error:
            await self._send({"type": "error", "text": str(error)} | ({"id": error.id} if error.id else {}))
        except ClewError as error:
            # Without an acknowledgement the client keeps the message and sends it again when it comes back.
            log.warning("inbox.rejected", transport=self._address.transport, err=str(error))
            await self._send({"type": "error", "text": error.told})
            await self._ws.close(code=WSCloseCode.TRY_AGAIN_LATER)

    async def _store(self, identifier: str, text: str, uploads: tuple[str, ...]) -> None:
        address = self._address
        known = {each.id: each for each in await self._service.store.files.uploaded(str(address), uploads)} if uploads else {}
        self._own.add(identifier)
        arrival = Inbound(
            external_id=f"{address.transport}/{address.chat}/{identifier}",
            address=address,
            sender=self._sender,
            text=text,
            client_id=identifier,
            attachments=tuple(_attachment(each, known.get(each)) for each in uploads),
        )
        (receipt,) = await self._service.host(address.transport).accept([arrival])
        if receipt.status == "refused":
            await self._send({"type": "error", "id": identifier, "text": receipt.reason})
        else:
            await self._send({"type": "ack", "id": identifier})

    # Out ---------------------------------------------------------------------------------------------------------

    async def _push(self, events: Subscription) -> None:
        try:
            await self._catch_up()
            while True:
                event = await self._next(events)
                if not await self._holds():
                    await self._ws.close(code=WSCloseCode.POLICY_VIOLATION)
                    return
                await self._show(event)
        except ConnectionError:
            return
        except TimeoutError:
            log.info("web.client_slow", address=str(self._address))
            self._abort()
        except Exception as error:
            log.error("web.push_failed", address=str(self._address), err=repr(error))
            await self._ws.close(code=WSCloseCode.TRY_AGAIN_LATER)

    async def _next(self, events: Subscription) -> LiveEvent:
        try:
            async with asyncio.timeout(RESYNC_S):
                return await events.get()
        except TimeoutError:
            return Replied("")

    async def _show(self, event: LiveEvent) -> None:
        match event:
            case Replied():
                await self._catch_up()
            case Typing(in_reply_to=asked):
                await self._send({"type": "typing", "in_reply_to": asked or None})
            case Preview() if event.in_reply_to not in self._answered:
                await self._delta(event)

    async def _delta(self, event: Preview) -> None:
        """Send what is new of a preview. Dropped events are made good by the next one; a text begun anew says so."""
        frame: dict[str, Any] = {"type": "delta", "turn": event.turn, "in_reply_to": event.in_reply_to or None}
        if event.turn == self._turn and len(event.text) >= self._shown:
            frame["text"] = event.text[self._shown :]
        else:
            frame |= {"text": event.text} | ({"restart": True} if event.turn == self._turn else {})
        self._turn, self._shown = event.turn, len(event.text)
        if frame["text"] or "restart" in frame:
            await self._send(frame)

    async def _catch_up(self) -> None:
        """Send what was said behind `after`, page by page; nothing of the store is held while the client takes its time."""
        store, newest = self._service.store, self._after == 0
        while True:
            page = await store.history(str(self._address), self._after, PAGE, newest=newest)
            for said in page:
                await self._say(said)
            if newest or len(page) < PAGE:
                return

    async def _say(self, said: Said) -> None:
        self._after = said.seq
        for identifier in (said.in_reply_to, *said.answers):
            if identifier:
                self._answered.add(identifier)
        deleted = not (said.text or said.files)
        if not deleted and not (said.role == "user" and said.id in self._own):
            await self._send(line(said))

    async def _send(self, frame: dict[str, Any]) -> None:
        """Raises ConnectionError where the client is gone, TimeoutError where it takes nothing."""
        if self._ws.closed:
            raise ConnectionResetError
        text = json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
        # A stream may break off inside a character that JSON wrote as two halves.
        text = text.encode("utf-8", "replace").decode()
        async with asyncio.timeout(SEND_S):
            await self._ws.send_str(text)


class ChatSockets:
    """All open sockets, in bounded number."""

    def __init__(self, service: Service, door: Door) -> None:
        self._service = service
        self._door = door
        self._open: set[web.WebSocketResponse] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """`GET /chat/ws?chat=ID&after=SEQ`, and on the daemon's socket `?transport=terminal`."""
        address, sender = self._place(request)
        if address.transport not in self._service.transports:
            raise Problem(404, f"transports.{address.transport} is turned off in the config.")
        after = request.query.get("after") or "0"
        if not (after.isascii() and after.isdigit() and len(after) < 19):
            raise Problem(400, "after must be a whole number: the seq of the newest message that you have.")
        if len(self._open) >= SOCKETS:
            raise Problem(503, f"{SOCKETS} chats are open already.", "Close some, or try again later.")
        limit = frame_limit(self._service.config.limits.message_bytes)
        ws = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=limit, compress=False)
        self._open.add(ws)
        opened = False
        try:
            with contextlib.suppress(ConnectionError):  # the client is gone
                await ws.prepare(request)
                opened = True
                await ChatSocket(self._service, ws, lambda: abort(request), address, sender, int(after), self._holds(request)).run()
        finally:
            self._open.discard(ws)
        return ws if opened else web.Response()  # a socket that was never opened cannot be closed

    def _holds(self, request: web.Request) -> Callable[[], Awaitable[bool]]:
        """Whether the login that a socket was opened with holds, and means the same chat still."""
        before = self._door.known(request).visitor

        async def holds() -> bool:
            if before is None:
                return True
            await self._door.meet(request)
            now = self._door.visitor(request)
            return now is not None and (now.login, now.here) == (before.login, before.here)

        return holds

    async def close(self) -> None:
        """Tell all clients that the daemon goes away; they come back when it does."""
        await asyncio.gather(*(ws.close(code=WSCloseCode.GOING_AWAY) for ws in tuple(self._open)))

    def _place(self, request: web.Request) -> tuple[Address, str]:
        """Where the client speaks, and as whom."""
        caller = self._door.known(request)
        if request.query.get("transport", "web") == "terminal":
            if caller.user is None:
                raise Problem(400, "The terminal is reached through the daemon's socket only.")
            return Address("terminal", caller.user), caller.user
        return place(caller, request.query.get("chat"))


def place(caller: Caller, chat: str | None) -> tuple[Address, str]:
    """The chat of the page that a caller means by this name, and as whom they speak there. Nobody else's is among them. Raises Problem."""
    name = chat_id(chat or LOCAL)
    if caller.visitor is not None and not caller.visitor.here:
        own = page_name(caller.visitor.person)
        return Address("web", own, None if name == LOCAL else name), own
    if caller.visitor is None and not caller.owner:
        raise Problem(403, "Only clew's own user may use the chat page.")
    return Address("web", name), LOCAL


def chat_id(text: str) -> str:
    """`text` as the name of a web chat. Raises Problem."""
    if not CHAT.fullmatch(text):
        raise Problem(400, "chat must be 1 to 64 letters, digits, dots, dashes and underscores.")
    return text


def abort(request: web.Request) -> None:
    if isinstance(request.transport, asyncio.Transport):
        request.transport.abort()
