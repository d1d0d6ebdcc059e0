"""What a validation error means in plain words, and which key was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic_core import ErrorDetails

from clew.config.yaml import Path, shown

_TEXTS = {
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text",
    "path_type": "must be text",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "mapping_type": "must be a section of `key: value` lines",
    "dict_type": "must be a section of `key: value` lines",
    "model_type": "must be a section of `key: value` lines",
    "model_attributes_type": "must be a section of `key: value` lines",
    "missing": "is missing",
    "none_required": "must be null",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be greater than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "too_long": "must have at most {max_length} entries",
    "too_short": "must have at least {min_length} entries",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "value_error": "{error}",
}
_WRONG_BOOLEANS = frozenset({"yes", "no", "on", "off", "y", "n"})


def wording(error: ErrorDetails, value: Any) -> str:
    """One error in plain words, without the value itself. `value`: the plain value at its place."""
    text = _TEXTS.get(error["type"])
    if text is None:
        message = error["msg"].removeprefix("Input should be ")
        return message if message == error["msg"] else f"must be {message}"
    message = text.format(**error.get("ctx", {}))
    if error["type"] == "literal_error":
        return message.replace("'", "")
    if error["type"] == "bool_type" and isinstance(value, str) and value.lower() in _WRONG_BOOLEANS:
        return "must be true or false; write true or false instead of yes, no, on, off"
    if error["type"] in ("string_type", "path_type") and isinstance(value, (int, float)):
        return "must be text; put it in quotes"
    return message


def annotations_at(annotation: Any, path: Path) -> Iterator[Any]:
    """The types that may stand at `path` below `annotation`."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from annotations_at(args[0], path)
    elif origin is Union or (origin is not None and origin.__name__ == "UnionType"):
        for each in args:
            yield from annotations_at(each, path)
    elif not path:
        yield annotation
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, info in annotation.model_fields.items():
            if path[0] in (info.alias or name, name):
                yield from annotations_at(info.annotation, path[1:])
    elif isinstance(origin, type) and args and issubclass(origin, (Mapping, Sequence)):
        yield from annotations_at(args[-1] if issubclass(origin, Mapping) else args[0], path[1:])


def keys_at(model: Any, path: Path) -> list[str]:
    """The keys that the section at `path` below `model` may have."""
    found = annotations_at(model, path)
    models = (each for each in found if isinstance(each, type) and issubclass(each, BaseModel))
    return [info.alias or name for each in models for name, info in each.model_fields.items()]


def secret_texts(model: type[BaseModel], data: Any) -> Iterator[str]:
    """Texts in `data` that stand where `model` has a secret."""
    for name, value in data.items() if isinstance(data, dict) else ():
        if isinstance(value, str) and SecretStr in annotations_at(model, (name,)):
            yield value


def unknown(model: type[BaseModel], path: Path, common: Sequence[str] = ()) -> tuple[str, str]:
    """Message and nearest valid key for the unknown key at `path` below `model`.

    `common`: keys that the section itself may have beside those of `model`.
    """
    key = str(path[-1])[:80]
    valid = [*(common if len(path) == 1 else ()), *keys_at(model, path[:-1])]
    near = difflib.get_close_matches(key, valid, 1)
    if near:
        return "unknown key", near[0]
    elsewhere = {shown(each): each[-1] for each in _all_keys(model, ())}
    same = [full for full, last in elsewhere.items() if difflib.SequenceMatcher(None, last, key).ratio() >= 0.8]
    if same:
        return "unknown key in this section", same[0]
    return f"unknown key; this section takes: {', '.join(valid) or 'no keys'}", ""


def _all_keys(annotation: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name in keys_at(annotation, ()):
        yield (*path, name)
        for below in annotations_at(annotation, (name,)):
            yield from _all_keys(below, (*path, name))
