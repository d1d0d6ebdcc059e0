"""Rules for tool calls: by name, by pattern, by the mode."""

from dataclasses import replace
from typing import Any, Literal

import pytest

from clew.config import Approver
from clew.tools.approver import decide
from tests.integration.engine import tool


async def nothing(context: object, note: str) -> str:
    return ""


READS = tool("files__read", nothing)
SENDS = replace(tool("send", nothing), asks=True)


@pytest.mark.parametrize(("mode", "decision"), [("ask", "ask"), ("allow", "allow"), ("deny", "deny"), ("pattern", "ask")])
def test_a_tool_that_changes_something_follows_the_mode_and_reading_goes_ahead(mode: Any, decision: str) -> None:
    assert decide(SENDS, {}, Approver(mode=mode)) == decision
    assert decide(READS, {}, Approver(mode=mode)) == "allow"


@pytest.mark.parametrize("mode", ["ask", "allow", "deny", "pattern"])
def test_a_name_in_the_config_decides_in_every_mode_and_deny_wins(mode: Literal["ask", "allow", "deny", "pattern"]) -> None:
    assert decide(SENDS, {}, Approver(mode=mode, allow=("send",))) == "allow"
    assert decide(SENDS, {}, Approver(mode=mode, allow=("send",), deny=("send",))) == "deny"
    assert decide(READS, {}, Approver(mode=mode, deny=("files__read",))) == "deny"


@pytest.mark.parametrize(
    ("rule", "arguments", "matches"),
    [
        ("se*", {}, True),
        ("s?nd", {}, True),
        ("files__*", {}, False),
        ("send(to=*@example.org)", {"to": "ada@example.org"}, True),
        ("send(to=*@example.org)", {"to": "ada@example.org.evil"}, False),
        ("send(to=*@example.org)", {"subject": "ada@example.org"}, False),
        ("send(to=*@example.org)", {"to": "ADA@EXAMPLE.ORG"}, False),
        ("send(copies=2)", {"copies": 2}, True),
        ('send(to=["ada"])', {"to": ["ada"]}, False),
        ("send(to=*(work)*)", {"to": "ada (work) x"}, True),
        ("send(", {}, False),
    ],
)
def test_patterns_name_tools_and_arguments(rule: str, arguments: dict[str, Any], matches: bool) -> None:
    assert decide(SENDS, arguments, Approver(mode="pattern", allow=(rule,))) == ("allow" if matches else "ask")
    assert decide(SENDS, arguments, Approver(mode="pattern", deny=(rule,))) == ("deny" if matches else "ask")


def test_a_pattern_is_only_a_name_in_the_other_modes() -> None:
    assert decide(SENDS, {}, Approver(mode="ask", allow=("*",))) == "ask"
