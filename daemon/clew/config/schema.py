"""JSON Schema of the whole config file, the sections of plug-ins included; editors complete and check with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from clew.config.settings import Config


def schema(*, transports: Mapping[str, type[BaseModel]], providers: Mapping[str, type[BaseModel]]) -> dict[str, Any]:
    """The schema (draft 2020-12) for these kinds of transports and providers."""
    whole = Config.model_json_schema()
    definitions = whole.setdefault("$defs", {})
    for gone in ("ProviderSection", "TransportSection"):
        definitions.pop(gone, None)
    for group, models in (("providers", providers), ("transports", transports)):
        for kind, model in models.items():
            definitions[f"{group}.{kind}"] = _section(definitions, group, kind, model)
        whole["properties"][group] = _sections(group, list(models))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **whole, "title": "clew"}


def _section(definitions: dict[str, Any], group: str, kind: str, model: type[BaseModel]) -> dict[str, Any]:
    own = model.model_json_schema(ref_template=f"#/$defs/{group}.{kind}.{{model}}")
    for name, definition in own.pop("$defs", {}).items():
        definitions[f"{group}.{kind}.{name}"] = definition
    common: dict[str, Any] = {"kind": {"const": kind}}
    if group == "transports":
        common["enabled"] = {"type": "boolean", "default": True}
    return {**own, "properties": {**common, **own.get("properties", {})}, "additionalProperties": False}


def _sections(group: str, kinds: list[str]) -> dict[str, Any]:
    """A section may leave out `kind` only if its name is one."""
    references = {kind: {"$ref": f"#/$defs/{group}.{kind}"} for kind in kinds}
    named = {kind: {"if": {"required": ["kind"]}, "then": _any(references), "else": references[kind]} for kind in kinds}
    return {
        "type": "object",
        "properties": named,
        "additionalProperties": {"required": ["kind"], **_any(references)},
    }


def _any(references: dict[str, dict[str, str]]) -> dict[str, Any]:
    return {"anyOf": list(references.values())} if references else {"not": {}}
