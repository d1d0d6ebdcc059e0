"""The console's page of documents: what is there, what could not be read, adding, removing, reading again, searching."""

from pathlib import Path
from typing import Annotated, Literal

from aiohttp import BodyPartReader, web
from pydantic import BaseModel, ConfigDict, Field

from clew.errors import UsageError
from clew.fetching import is_url
from clew.web.auth import Caller
from clew.web.console.frame import Frame, Paging, form, redirect
from clew.web.documents import DocumentBody, PassagesQuery
from clew.web.documents import Documents as Handlers
from clew.web.openapi import Call
from clew.web.wire import Problem, checked

PATH = "/console/documents"
SIZE = 50
"""Documents on one page."""
FOUND = 10
"""Passages that a search gives."""
REFUSED = 100
"""Files of watched folders that are named with what is wrong with them."""
UPLOADED = Path("/uploaded")
"""Where documents are said to come from that were uploaded: their own path is known to the browser alone."""

LONGEST_NAME = 200
"""Characters of an uploaded file's name, of which the end is kept."""

_Whose = Annotated[str, Field(max_length=512)]


class DocumentsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    page: Annotated[int, Field(ge=1, le=10_000)] = 1
    find: Annotated[str, Field(max_length=1000)] = ""


class Press(BaseModel):
    """add: what stands at `url`, for a person or a project, else the owner. again: read the document `id` again. remove: it goes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    do: Literal["add", "again", "remove"]
    id: Annotated[str, Field(max_length=64)] = ""
    url: Annotated[str, Field(max_length=4096)] = ""
    person: _Whose = ""
    project: _Whose = ""


class Documents:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._service = frame.service
        self._documents = frame.store.documents
        self._handlers = Handlers(frame.service)

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, PATH, self.documents)
        self._frame.post(app, PATH, self.press)
        self._frame.post(app, f"{PATH}/upload", self.upload)

    async def documents(self, request: web.Request, caller: Caller) -> web.Response:
        asked = checked(DocumentsQuery, request.query)
        paging = Paging(asked.page, SIZE, await self._documents.count())
        passages = []
        if find := asked.find.strip():
            passages = (await self._handlers.search_documents(Call(caller, {}, PassagesQuery(query=find, limit=FOUND), None)))["passages"]
        refused = self._service.watch.refused
        return await self._frame.drawn(
            request,
            "documents.html",
            documents=await self._documents.listing(None, SIZE, paging.start),
            paging=paging,
            find=find,
            passages=passages,
            refused=refused[:REFUSED],
            more=max(0, len(refused) - REFUSED),
            is_url=is_url,
            bytes=self._service.config.limits.attachment_bytes,
        )

    async def press(self, request: web.Request, caller: Caller) -> web.Response:
        """Do what a button says, through the API's own handlers."""
        pressed = await form(request, Press)
        if pressed.do == "remove":
            await self._handlers.remove_document(Call(caller, {"id": pressed.id}, None, None))
        elif pressed.do == "again":
            await self._again(pressed.id)
        else:
            if not is_url(pressed.url.strip()):
                raise UsageError("That is no address of the web.", hint="It begins with https://. Files are uploaded.")
            body = DocumentBody(source=pressed.url.strip(), person=pressed.person or None, project=pressed.project or None)
            await self._handlers.add_document(Call(caller, {}, None, body))
        return redirect(PATH)

    async def _again(self, identifier: str) -> None:
        """Fetch a document anew, for those whose it is. Raises ClewError."""
        document = await self._documents.find(identifier)
        if not is_url(document.source):
            raise UsageError(f"{document.name} was sent to clew, which cannot read it again.", hint="Upload it once more.")
        await self._service.library.add_url(document.scope, document.source)

    async def upload(self, request: web.Request, caller: Caller) -> web.Response:
        """Take in the file of a form."""
        name, content = await uploaded(request, self._service.config.limits.attachment_bytes)
        body = DocumentBody(source=str(UPLOADED / name)).model_copy(update={"content": content})
        await self._handlers.add_document(Call(caller, {}, None, body))
        return redirect(PATH)


async def uploaded(request: web.Request, most: int) -> tuple[str, bytes]:
    """(name, bytes) of the file in a form, which is its first field. most: bytes. Raises Problem."""
    if request.content_type != "multipart/form-data":
        raise Problem(400, "The body's type must be multipart/form-data.")
    try:
        part = await (await request.multipart()).next()
        if isinstance(part, BodyPartReader) and part.name == "file" and part.filename:
            name = Path(part.filename.encode("utf-8", "replace").decode()).name[-LONGEST_NAME:]
            return name, await _bounded(part, most)
    except ValueError:
        raise Problem(400, "The body is no form.") from None
    raise Problem(400, "No file was chosen.")


async def _bounded(part: BodyPartReader, most: int) -> bytes:
    """The bytes of a file. Raises Problem where they are more than `most`."""
    body = bytearray()
    while chunk := await part.read_chunk():
        body += chunk
        if len(body) > most:
            raise Problem(413, f"The file is larger than {most:,} bytes, which is the most (limits.attachment_bytes).")
    return bytes(body)
