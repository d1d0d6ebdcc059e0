"""The API's description, made from the one table of its routes."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode

import clew
from clew.web.auth import Caller

BASE = "/api/v1"


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the API. `path`: the variables of its path; `query` and `body`: the models that its route names, else None."""

    caller: Caller
    path: dict[str, str]
    query: Any
    body: Any


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A route of the API. `result`: the type of what `handler` returns, rendered as JSON. everybody: not for owners alone, but
    for each who is known, of what is theirs."""

    method: str
    path: str
    handler: Callable[[Call], Awaitable[Any]]
    summary: str
    result: Any = dict[str, Any]
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    body_bytes: int = 64 * 1024
    everybody: bool = False


class Failure(BaseModel):
    """What every error looks like. `hint` says what to do, and may be empty."""

    error: str
    hint: str


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """OpenAPI 3.1 of `endpoints`."""
    schemas: dict[str, Any] = {}
    failure = _content(Failure, schemas)
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        operation: dict[str, Any] = {
            "summary": each.summary,
            "operationId": each.handler.__name__,
            "parameters": [*_path_parameters(each.path), *_query_parameters(each.query)],
            "responses": {
                "200": {"description": "Done", "content": _content(each.result, schemas)},
                "default": {"description": "Not done", "content": failure},
            },
        }
        if each.body or each.method == "POST":
            # Without a body of this type a POST is refused: so no page of another site can send one.
            content = _content(each.body, schemas, "validation") if each.body else {"application/json": {"schema": {}}}
            operation["requestBody"] = {"required": True, "content": content}
        paths.setdefault(BASE + each.path, {})[each.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "clew", "version": clew.__version__},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }


def _content(kind: Any, schemas: dict[str, Any], mode: JsonSchemaMode = "serialization") -> dict[str, Any]:
    schema = TypeAdapter(kind).json_schema(ref_template="#/components/schemas/{model}", mode=mode)
    schemas.update(schema.pop("$defs", {}))
    return {"application/json": {"schema": schema}}


def _path_parameters(path: str) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)}", path)
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _query_parameters(query: type[BaseModel] | None) -> list[dict[str, Any]]:
    schema = query.model_json_schema() if query else {}
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": each} for name, each in schema.get("properties", {}).items()
    ]
