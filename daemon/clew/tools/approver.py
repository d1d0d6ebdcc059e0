"""Whether a tool call may go ahead."""

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

from clew.config import RULE, Approver
from clew.tools import Tool

Decision = Literal["allow", "ask", "deny"]


def decide(tool: Tool, arguments: Mapping[str, Any], settings: Approver) -> Decision:
    """A call that the config names as it says; else reading tools go ahead, and those that ask follow the mode.

    With the mode `pattern` an entry of the config is `tool` or `tool(argument=value)`, and `*`, `?`, `[…]` stand for any text in it.
    """
    named = _matches if settings.mode == "pattern" else _named
    if any(named(rule, tool, arguments) for rule in settings.deny):
        return "deny"
    if not tool.asks or any(named(rule, tool, arguments) for rule in settings.allow):
        return "allow"
    return settings.mode if settings.mode in ("allow", "deny") else "ask"


def _named(rule: str, tool: Tool, arguments: Mapping[str, Any]) -> bool:
    return rule == tool.name


def _matches(rule: str, tool: Tool, arguments: Mapping[str, Any]) -> bool:
    found = RULE.fullmatch(rule)
    if found is None or not fnmatchcase(tool.name, found["tool"]):
        return False
    if found["argument"] is None:
        return True
    return found["argument"] in arguments and fnmatchcase(_text(arguments[found["argument"]]), found["value"])


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
