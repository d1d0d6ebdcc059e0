"""Arguments that somebody else's JSON Schema describes are checked in bounded time, and whatever the schema is."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from clew.tools.foreign import arguments_of


def fits(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as they are sent. Raises ValidationError."""
    return arguments_of(schema).model_validate(arguments).model_dump()


def doubling(levels: int, **more: Any) -> dict[str, Any]:
    """A schema of few lines that asks for 2 ** levels checks. more: stands in each of its parts."""
    parts: dict[str, Any] = {f"a{n}": {**more, "allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": parts | {f"a{levels}": {}}, "$ref": "#/$defs/a0"}


@pytest.mark.parametrize("more", [{}, {"$schema": "http://json-schema.org/draft-07/schema#"}])
def test_a_check_without_end_is_given_up(more: dict[str, Any]) -> None:
    assert fits(doubling(3), {}) == {}
    with pytest.raises(ValidationError, match="asks for too much"):
        fits(doubling(60, **more), {})


def test_each_check_has_its_steps_anew() -> None:
    arguments = arguments_of({"properties": {"x": {"items": {"type": "integer"}}}})
    for _ in range(5):
        assert arguments.model_validate({"x": [1] * 5_000}).model_dump()["x"]


def test_an_argument_may_have_the_name_of_a_keyword() -> None:
    schema = {
        "type": "object",
        "properties": {"pattern": {"type": "string", "pattern": "("}, "format": {"enum": ["pattern", {"format": 1}]}, "$schema": {}},
        "required": ["pattern"],
        "additionalProperties": False,
    }
    given = {"pattern": "*.txt", "format": {"format": 1}, "$schema": 1}
    assert fits(schema, given) == given
    with pytest.raises(ValidationError, match="'pattern' is a required property"):
        fits(schema, {})
    with pytest.raises(ValidationError, match="'other' was unexpected"):
        fits(schema, {"pattern": "x", "other": 1})


def test_names_that_only_a_pattern_allows_are_left_to_the_server() -> None:
    schema = {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}
    assert fits(schema, {"x-a": "b"}) == {"x-a": "b"}


def test_a_schema_that_is_nested_too_deeply_is_told() -> None:
    schema: dict[str, Any] = {}
    for _ in range(2_000):
        schema = {"properties": {"x": schema}}
    with pytest.raises(RecursionError):
        arguments_of(schema)


KEYWORDS = ["type", "properties", "required", "items", "allOf", "anyOf", "not", "$ref", "$defs", "enum", "minimum", "pattern", "if", "then"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS) | st.text(max_size=4), each, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(KEYWORDS), json_values, max_size=4), st.dictionaries(st.text(max_size=4), json_values, max_size=3))
def test_whatever_the_schema_is_a_check_ends_with_yes_or_a_reason(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    with contextlib.suppress(ValidationError):
        assert fits(schema, arguments) == arguments
