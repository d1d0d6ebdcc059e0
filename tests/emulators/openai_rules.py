"""What a strict chat completions server refuses: shapes, and calls and results that are not paired."""

from __future__ import annotations

import re
from typing import Any

from .server import JsonObject, Rejected

LONGEST_NAME, LONGEST_ID = 64, 40
"""Characters of a tool's name and of a call's id."""
ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_ROLE_LIST = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"


def error_body(error: Rejected) -> JsonObject:
    """An error as all of these APIs write it."""
    shown = {"message": error.message, "type": error.type, "param": None, "code": None, **error.fields}
    details = shown.pop("details", {})
    return {"error": {**shown, **details}}


def check(body: JsonObject) -> None:
    """Refuse a request with a field missing, a message of a wrong shape, or a tool call that is not answered at once.

    Results must stand directly behind their call, in any order, each id once, as the strictest servers ask.
    """
    for name in ("messages", "model"):
        if name not in body:
            raise _refused(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
    messages = body["messages"]
    if not messages:
        raise _refused(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            "messages",
            "empty_array",
        )
    for index, message in enumerate(messages):
        _check_message(message, index)
    _check_pairs(messages)


def _refused(message: str, param: str, code: str | None = None) -> Rejected:
    return Rejected(message, fields={"param": param, "code": code})


def _check_message(message: JsonObject, index: int) -> None:
    role = message.get("role")
    if role not in ROLES:
        raise _refused(f"Invalid value: '{role}'. Supported values are: {_ROLE_LIST}.", f"messages[{index}].role", "invalid_value")
    for at, call in enumerate(message.get("tool_calls") or []):
        _check_call(call, f"messages[{index}].tool_calls[{at}]")
    if message.get("tool_calls") == []:
        raise _refused(
            f"Invalid 'messages[{index}].tool_calls': empty array. Expected an array with minimum length 1, but got an "
            "empty array instead.",
            f"messages[{index}].tool_calls",
            "empty_array",
        )
    if message.get("content") is None and not message.get("tool_calls"):
        raise _refused("Invalid value for 'content': expected a string, got null.", f"messages.[{index}].content")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        raise _refused(
            f"Missing required parameter: 'messages[{index}].tool_call_id'.",
            f"messages[{index}].tool_call_id",
            "missing_required_parameter",
        )


def _check_call(call: JsonObject, path: str) -> None:
    arguments: Any = call.get("function", {}).get("arguments")
    if not isinstance(arguments, str):
        kind = "object" if isinstance(arguments, dict) else type(arguments).__name__
        raise _refused(
            f"Invalid type for '{path}.function.arguments': expected a string, but got an {kind} instead.",
            f"{path}.function.arguments",
            "invalid_type",
        )
    if not re.fullmatch(r"[a-zA-Z0-9_-]+", call["function"].get("name", "")):
        raise _refused(
            f"Invalid '{path}.function.name': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'.",
            f"{path}.function.name",
            "invalid_value",
        )
    for name, value, most in (("function.name", call["function"]["name"], LONGEST_NAME), ("id", call["id"], LONGEST_ID)):
        if len(value) > most:
            raise _refused(
                f"Invalid '{path}.{name}': string too long. Expected a string with maximum length {most}, but got a string with length "
                f"{len(value)} instead.",
                f"{path}.{name}",
                "string_above_max_length",
            )


def _check_pairs(messages: list[JsonObject]) -> None:
    asked: list[str] = []
    open_ids: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            _check_result(message["tool_call_id"], asked, open_ids, index)
            open_ids.remove(message["tool_call_id"])
            continue
        _check_all_answered(open_ids, index)
        asked = [call["id"] for call in message.get("tool_calls") or []]
        open_ids = list(asked)
    _check_all_answered(open_ids, len(messages) - 1)


def _check_result(id_: str, asked: list[str], open_ids: list[str], index: int) -> None:
    if not asked:
        raise _refused(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
            f"messages.[{index}].role",
        )
    if id_ not in open_ids:
        raise _refused(
            f"Invalid parameter: 'tool_call_id' of '{id_}' not found in 'tool_calls' of previous message.",
            f"messages.[{index}].tool_call_id",
        )


def _check_all_answered(open_ids: list[str], index: int) -> None:
    if open_ids:
        raise _refused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_ids)}",
            f"messages.[{index}].role",
        )
