"""Arguments that somebody else's JSON Schema describes."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

_NOT_CHECKED = frozenset({"pattern", "patternProperties", "format"})
"""Left to whoever wrote them: a pattern of theirs could hold us up for ever."""


class _Foreign(BaseModel):
    model_config = ConfigDict(extra="allow", protected_namespaces=())


def arguments_of(schema: Mapping[str, Any]) -> type[BaseModel]:
    """A model that takes what fits a JSON Schema. References are followed inside of it only, patterns and formats are not checked."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]
    from referencing import Registry

    validator = Draft202012Validator(_checkable(schema), registry=Registry())

    class Arguments(_Foreign):
        @model_validator(mode="before")
        @classmethod
        def _fits(cls, data: Any) -> Any:
            try:
                wrong = best_match(validator.iter_errors(data))
            except Exception as error:  # of a schema that is none, or leads out of itself
                raise ValueError(f"they cannot be checked ({type(error).__name__})") from None
            if wrong is not None:
                place = ".".join(map(str, wrong.absolute_path))
                raise ValueError(f"{place}: {wrong.message[:500]}" if place else wrong.message[:500])
            return data

    return Arguments


def _checkable(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {key: _checkable(value) for key, value in node.items() if key not in _NOT_CHECKED or isinstance(value, bool)}
    return [_checkable(each) for each in node] if isinstance(node, list) else node
