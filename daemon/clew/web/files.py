"""Files of the chat page: taken before their message, and shown to whoever may see the chat."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

from aiohttp import web

from clew.context.files import IMAGES
from clew.context.sniffing import LOOKED_AT, UNKNOWN, sniffed
from clew.errors import StoreError
from clew.inbox import named
from clew.service import Service
from clew.store.files.door import TooLarge
from clew.transport import Address, Attachment
from clew.web.auth import Door
from clew.web.chat import is_file_id, place
from clew.web.wire import Problem, answer

UPLOADED = "application/octet-stream"
"""The type of an upload's body: no form of another site's page can send it."""


class Files:
    """`POST /chat/files?chat=ID&name=NAME` takes the bytes of a file, `GET /chat/files/ID?chat=ID` gives them back."""

    def __init__(self, service: Service, door: Door) -> None:
        self._service = service
        self._door = door

    def mount(self, app: web.Application) -> None:
        app.router.add_post("/chat/files", self.take)
        app.router.add_get("/chat/files/{id}", self.give)

    async def take(self, request: web.Request) -> web.Response:
        address = self._place(request)
        if request.content_type != UPLOADED:
            raise Problem(400, f"The body's type must be {UPLOADED}.")
        most = self._service.config.limits.attachment_bytes
        if (request.content_length or 0) > most:
            raise _too_large(most)
        file = named(Attachment(request.query.get("name", ""), request.query.get("type", ""), 0, ""))
        store = self._service.store.files
        try:
            identifier = await store.upload(str(address), file.name, file.mime, _pieces(request), most, self._service.time.wall())
        except TooLarge:
            raise _too_large(most) from None
        except OSError as error:
            raise StoreError(f"The file cannot be stored ({error.strerror}).", hint="Is there room on the disk?") from None
        return await answer({"id": identifier, "name": file.name, "mime": file.mime})

    async def give(self, request: web.Request) -> web.StreamResponse:
        address = self._place(request)
        identifier = request.match_info["id"]
        kept = await self._service.store.files.at(str(address), identifier) if is_file_id(identifier) else None
        path = await self._service.store.files.path(kept.hash) if kept else None
        if kept is None or path is None:
            raise Problem(404, "There is no such file in this chat.")
        return await given(path, kept.name)

    def _place(self, request: web.Request) -> Address:
        """The chat that is asked about."""
        return place(self._door.known(request), request.query.get("chat"))[0]


async def given(path: Path, name: str) -> web.FileResponse:
    """A stored file as it is given to a browser: images are shown, everything else is saved, whatever it says that it is."""
    mime = await asyncio.to_thread(lambda: sniffed(_beginning(path)).mime)
    shown = mime in IMAGES
    headers = {
        "Content-Type": mime if shown else UNKNOWN,
        "Content-Disposition": f"{'inline' if shown else 'attachment'}; filename*=UTF-8''{quote(name, safe='', errors='replace')}",
    }
    return web.FileResponse(path, headers=headers)


async def _pieces(request: web.Request) -> AsyncIterator[bytes]:
    async for piece in request.content.iter_any():
        yield piece


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LOOKED_AT)


def _too_large(most: int) -> Problem:
    return Problem(413, f"A file has at most {most:,} bytes.", "`limits.attachment_bytes` in the config is the bound.")
