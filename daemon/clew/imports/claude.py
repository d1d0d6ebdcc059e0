"""Claude's export: a zip with conversations.json, or that file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clew.imports import conversation as made
from clew.imports.conversation import Conversation, Said, Unreadable
from clew.imports.conversations_json import conversations
from clew.messages import Block, Role, Text, ToolResult

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}


def read(path: Path) -> Iterator[Conversation | Unreadable]:
    """Raises ExportError."""
    yield from conversations(path, "Claude", "name", _conversation)


def _conversation(told: Any) -> Conversation | None:
    at, messages = made.instant(told.get("created_at"), 0.0), list[Said]()
    for number, message in enumerate(told["chat_messages"]):
        at = made.instant(message.get("created_at"), at)
        messages += _said(str(message.get("uuid") or number), message, at)
    return Conversation(str(told["uuid"]), made.line(told.get("name")), tuple(messages)) if messages else None


def _said(key: str, message: Mapping[str, Any], at: float) -> Iterator[Said]:
    """A message; where tools answered in it, as the calls, their results, and what came behind them."""
    role = _ROLES.get(message["sender"])
    if role is None:
        return
    blocks = list(_blocks(message))
    if role == "user":
        if found := made.said(key, "user", [each for each in blocks if isinstance(each, Text)], at):
            yield found
        return
    part, number = list[Block](), 0
    for each in [*blocks, None]:
        is_result = isinstance(each, ToolResult)
        if part and (each is None or is_result != isinstance(part[-1], ToolResult)):
            kind: Role = "tool" if isinstance(part[-1], ToolResult) else "assistant"
            if found := made.said(f"{key}/{number}" if number else key, kind, part, at):
                yield found
            part, number = [], number + 1
        if each is not None:
            part.append(each)


def _blocks(message: Mapping[str, Any]) -> Iterator[Block]:
    content = made.items(message, "content")
    if not any(isinstance(each, Mapping) and each.get("type") in ("text", "tool_use", "tool_result") for each in content):
        yield Text(made.text(message.get("text")))
    last = ""
    for each in content:
        match each.get("type"):
            case "text":
                yield Text(made.text(each.get("text")))
            case "tool_use":
                last = str(each.get("id") or f"call-{each.get('name')}")
                yield made.call(last, each.get("name"), each.get("input") or {})
            case "tool_result":
                number = str(each.get("tool_use_id") or last)
                yield made.result(number, each.get("name"), _inner(each.get("content")), is_error=each.get("is_error") is True)
    for each in made.items(message, "attachments"):
        name = made.line(each.get("file_name"), 200) or "attachment"
        yield Text(f"[file {name}]\n{made.text(each.get('extracted_content'))}".strip())
    for each in made.items(message, "files"):
        yield Text(f"[file {made.line(each.get('file_name'), 200) or 'file'}]")


def _inner(content: Any) -> str:
    """The words of what a tool answered."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(each["text"]) for each in parts if isinstance(each, Mapping) and isinstance(each.get("text"), str))
