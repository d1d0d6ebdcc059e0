"""Arguments that somebody else's JSON Schema describes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

MOST_STEPS = 10_000
"""Keywords of a schema that one check of arguments may come to: a schema of a few lines can ask for more than there is time for."""
_NOT_CHECKED = frozenset({"pattern", "patternProperties", "format", "$schema"})
"""Left to whoever wrote them: a pattern of theirs could hold us up for ever. (`$schema` names another set of rules for a part.)"""
_NAMED = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose keys are names of somebody's and no keywords."""
_VALUES = frozenset({"enum", "const", "default", "examples"})
"""Keywords in which no schema stands."""


class _Foreign(BaseModel):
    model_config = ConfigDict(extra="allow", protected_namespaces=())


class _TooLong(Exception):
    """A check takes more steps than it may."""


def arguments_of(schema: Mapping[str, Any]) -> type[BaseModel]:
    """A model that takes what fits a JSON Schema. References are followed inside of it only, patterns and formats are not checked.

    Raises RecursionError where it is nested too deeply.
    """
    check = _check_of(_checkable(schema))

    class Arguments(_Foreign):
        @model_validator(mode="before")
        @classmethod
        def _fits(cls, data: Any) -> Any:
            try:
                wrong = check(data)
            except _TooLong:
                raise ValueError("they cannot be checked: the tool's schema asks for too much") from None
            except Exception as error:  # of a schema that is none, or leads out of itself
                raise ValueError(f"they cannot be checked ({type(error).__name__})") from None
            if wrong is not None:
                place = ".".join(map(str, wrong.absolute_path))
                raise ValueError(f"{place}: {wrong.message[:500]}" if place else wrong.message[:500])
            return data

    return Arguments


def _check_of(schema: Any) -> Callable[[Any], Any]:
    """What gives the most telling error of a value, None for none, in at most `MOST_STEPS` steps. It raises _TooLong."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]
    from jsonschema.validators import extend  # type: ignore[import-untyped]
    from referencing import Registry

    steps = 0

    def counted(keyword: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
        def step(validator: Any, value: Any, instance: Any, part: Any) -> Iterator[Any]:
            nonlocal steps
            steps += 1
            if steps > MOST_STEPS:
                raise _TooLong
            yield from keyword(validator, value, instance, part) or ()

        return step

    counting = extend(Draft202012Validator, {name: counted(keyword) for name, keyword in Draft202012Validator.VALIDATORS.items()})
    validator = counting(schema, registry=Registry())

    def check(value: Any) -> Any:
        nonlocal steps
        steps = 0
        return best_match(validator.iter_errors(value))

    return check


def _checkable(node: Any, *, named: bool = False) -> Any:
    """A schema without what is not checked. named: the keys of `node` are names."""
    if isinstance(node, list):
        return [_checkable(each) for each in node]
    if not isinstance(node, Mapping):
        return node
    if named:
        return {name: _checkable(each) for name, each in node.items()}
    left_out = _NOT_CHECKED | ({"additionalProperties", "unevaluatedProperties"} if "patternProperties" in node else frozenset())
    return {key: value if key in _VALUES else _checkable(value, named=key in _NAMED) for key, value in node.items() if key not in left_out}
