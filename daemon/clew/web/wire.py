"""JSON in and out of requests, each way bounded and checked."""

import asyncio
import dataclasses
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from clew.errors import ClewError, NotFound, StoreError, UsageError

BODY_BYTES = 64 * 1024
"""The longest body of an ordinary request."""

SLICE_BYTES = 256 * 1024
"""JSON longer than this is read and written in a thread, so that the loop goes on."""

Model = TypeVar("Model", bound=BaseModel)


class Problem(Exception):
    """An answer that says what is wrong. `hint` says what to do."""

    def __init__(self, status: int, error: str, hint: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.hint = hint
        self.headers = dict(headers or {})

    def response(self) -> web.Response:
        return web.json_response({"error": self.error, "hint": self.hint}, status=self.status, headers=self.headers)


def problem_of(error: ClewError) -> Problem:
    """An error for people as an answer: 404 for what is not there, 400 for what makes no sense, 503 for the store's failure."""
    known = ((NotFound, 404), (UsageError, 400), (StoreError, 503))
    status = next((status for kind, status in known if isinstance(error, kind)), 500)
    return Problem(status, error.message, error.hint)


def plain(value: Any) -> Any:
    """Dataclasses, tuples and sets as what JSON has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(each) for each in value)
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


async def answer(value: Any, *, status: int = 200) -> web.Response:
    """`value` as JSON. Long values are rendered in a thread."""
    body = await asyncio.to_thread(_render, value)
    return web.Response(body=body, status=status, content_type="application/json")


def _render(value: Any) -> bytes:
    # Lone surrogates cannot be written as UTF-8; escaped they can.
    text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(plain(value), separators=(",", ":")).encode()


async def read_body(request: web.Request, limit: int) -> bytes:
    """The body, at most `limit` bytes. Raises Problem 413."""
    too_long = Problem(413, f"The body is longer than {limit} bytes.")
    if (request.content_length or 0) > limit:
        raise too_long
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > limit:
            raise too_long
    return bytes(body)


async def read_object(request: web.Request, limit: int = BODY_BYTES) -> dict[str, Any]:
    """The body as a JSON object; an empty body is an empty object. Raises Problem."""
    body = await read_body(request, limit)
    if not body.strip():
        return {}
    try:
        value = await asyncio.to_thread(json.loads, body) if len(body) > SLICE_BYTES else json.loads(body)
    except (ValueError, RecursionError):
        raise Problem(400, "The body is not JSON.") from None
    if not isinstance(value, dict):
        raise Problem(400, "The body is not a JSON object.")
    return value


async def read_model(request: web.Request, model: type[Model]) -> Model:
    """The body as `model`. Raises Problem that names the first field that does not fit."""
    return checked(model, await read_object(request))


def checked(model: type[Model], value: Mapping[str, Any]) -> Model:
    """`value` as `model`. Raises Problem 400."""
    try:
        return model.model_validate(dict(value))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or "body"
        raise Problem(400, f"{name}: {first['msg']}") from None
