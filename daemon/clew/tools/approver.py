"""Whether a tool call may go ahead."""

from typing import Literal

from clew.config import Approver
from clew.tools import Tool

Decision = Literal["allow", "ask", "deny"]


def decide(tool: Tool, settings: Approver) -> Decision:
    """A named tool as the config says; else reading tools go ahead, and those that ask follow the mode."""
    if tool.name in settings.deny:
        return "deny"
    if tool.name in settings.allow or not tool.asks:
        return "allow"
    return settings.mode if settings.mode in ("allow", "deny") else "ask"
