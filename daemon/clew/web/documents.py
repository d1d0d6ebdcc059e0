"""Documents over the API."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field

from clew.context.notes import ScopeKind
from clew.errors import UsageError
from clew.fetching import is_url
from clew.service import Service
from clew.store.documents import Document
from clew.web.openapi import Call, Endpoint
from clew.whose import whose, within

BESIDE = 64 * 1024
"""Bytes of a body beside the document in it."""


class _Whose(BaseModel):
    """person: whose documents. project: a project of the config, or the address of a chat."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    person: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    project: Annotated[str, Field(min_length=1, max_length=512)] | None = None


class DocumentBody(_Whose):
    """source: an absolute path, whose content is sent, or a URL, which is fetched. They are the owner's unless a person or a project is
    named."""

    source: Annotated[str, Field(min_length=1, max_length=4096)]
    content: Base64Bytes | None = None


class DocumentsQuery(_Whose):
    limit: Annotated[int, Field(ge=1, le=100_000)] = 1000


class PassagesQuery(_Whose):
    """session: what its turns would find. address: what a turn there would find. Nothing named: in all documents."""

    query: Annotated[str, Field(min_length=1, max_length=1000)]
    session: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    address: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    limit: Annotated[int, Field(ge=1, le=60)] = 10


class Listed(BaseModel):
    documents: list[Document]


class Documents:
    """The handlers, and their routes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._store = service.store
        most = service.config.limits.attachment_bytes * 4 // 3 + BESIDE
        self.endpoints = (
            Endpoint("GET", "/documents", self.documents, "Documents, by name", Listed, DocumentsQuery),
            Endpoint("POST", "/documents", self.add_document, "Add a document", body=DocumentBody, body_bytes=most),
            Endpoint("GET", "/documents/search", self.search_documents, "Passages that answer a query", query=PassagesQuery),
            Endpoint("DELETE", "/documents/{id}", self.remove_document, "Remove a document", Document),
        )

    async def documents(self, call: Call) -> Any:
        where = await within(self._service.config, self._store, person=call.query.person, project=call.query.project)
        return {"documents": await self._store.documents.listing(where, call.query.limit)}

    async def add_document(self, call: Call) -> Any:
        body: DocumentBody = call.body
        kind: ScopeKind = "project" if body.project else "user"
        where = await whose(self._service.config, self._store, kind, person=body.person, project=body.project, session=None)
        scope = await self._store.documents.scope(where, kind)
        if body.content is None:
            if not is_url(body.source):
                raise UsageError("The content of a file has to be sent along.")
            return await self._service.library.add_url(scope, body.source)
        path = Path(body.source)
        if not path.is_absolute():
            raise UsageError(f"{body.source!r} is no absolute path.")
        return await self._service.library.add_file(scope, path, body.content)

    async def search_documents(self, call: Call) -> Any:
        asked: PassagesQuery = call.query
        where = await within(
            self._service.config,
            self._store,
            person=asked.person,
            project=asked.project,
            session=asked.session,
            address=asked.address,
        )
        return {"passages": await self._service.passages.search(where, asked.query, asked.limit)}

    async def remove_document(self, call: Call) -> Any:
        document = await self._store.documents.find(call.path["id"])
        if document.origin == "config":
            raise UsageError(f"{document.name} comes from a watched folder.", hint="Take it out of there, or out of docs.paths.")
        await self._store.documents.remove([document.id])
        return document
