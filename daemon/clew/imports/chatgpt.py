"""ChatGPT's export: a zip with conversations.json, or that file.

Each conversation is a tree of nodes; what was said is the branch from its root to `current_node`. The others are questions and answers that
were edited or made anew.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clew.imports import conversation as made
from clew.imports.conversation import Conversation, Said, Unreadable
from clew.imports.conversations_json import conversations
from clew.messages import Text, ToolCall

_UNSAID = frozenset({"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context", "system_error"})
"""Kinds of content in which nobody says anything to anybody."""
_MEDIA = {"image_asset_pointer": "image", "audio_asset_pointer": "voice", "real_time_user_audio_video_asset_pointer": "voice"}


def read(path: Path) -> Iterator[Conversation | Unreadable]:
    """Raises ExportError."""
    yield from conversations(path, "ChatGPT", "title", _conversation)


def _conversation(told: Any) -> Conversation | None:
    number, at = str(told.get("conversation_id") or told["id"]), made.epoch(told.get("create_time"), 0.0)
    messages: list[Said] = []
    for key, message in branch(told["mapping"], told.get("current_node")):
        at = made.epoch(message.get("create_time"), at)
        if (found := _said(key, message, at, messages)) is not None:
            messages.append(found)
    return Conversation(number, made.line(told.get("title")), tuple(messages)) if messages else None


def branch(nodes: Mapping[str, Any], current: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """The messages from the root to the node `current`, by the ids of their nodes; to the newest leaf where there is no such node. A tree
    that leads in a circle ends where it begins again."""
    if current not in nodes:
        leaves = [key for key, node in nodes.items() if not node.get("children")]
        current = max(leaves, key=lambda key: made.epoch(made.member(nodes[key], "message").get("create_time"), 0.0), default=None)
    found: list[tuple[str, Mapping[str, Any]]] = []
    seen = set[str]()
    while current in nodes and current not in seen:
        seen.add(current)
        message = nodes[current].get("message")
        if isinstance(message, Mapping):
            found.append((current, message))
        current = nodes[current].get("parent")
    return found[::-1]


def _said(key: str, message: Mapping[str, Any], at: float, before: list[Said]) -> Said | None:
    role, content = message["author"]["role"], made.member(message, "content")
    hidden = made.member(message, "metadata").get("is_visually_hidden_from_conversation")
    if hidden or role not in ("user", "assistant", "tool") or content.get("content_type") in _UNSAID:
        return None
    words = _words(content)
    if role == "tool":
        return _answered(key, message, words, at, before) if words.strip() else None
    to = message.get("recipient") or "all"
    if role == "assistant" and to != "all":
        return made.said(key, "assistant", [made.call(key, to, {"input": words})], at)
    return made.said(key, "user" if role == "user" else "assistant", [Text(words)], at)


def _answered(key: str, message: Mapping[str, Any], words: str, at: float, before: list[Said]) -> Said | None:
    """What a tool answered to the call before it; words of its own where there was none."""
    calls = [block for each in before[-1:] for block in each.blocks if isinstance(block, ToolCall)]
    name = made.line(message["author"].get("name"), 64) or "tool"
    if not calls:
        return made.said(key, "assistant", [Text(f"[{name}] {words}")], at)
    return made.said(key, "tool", [made.result(calls[-1].id, calls[-1].name, words)], at)


def _words(content: Mapping[str, Any]) -> str:
    """The words of a content, and a line for each picture or recording in it."""
    pieces = [made.text(content.get("text")), made.text(content.get("result"))]
    for part in made.items(content, "parts"):
        if isinstance(part, str):
            pieces.append(made.text(part))
        elif isinstance(part, Mapping):
            kind = part.get("content_type")
            if kind == "audio_transcription":
                pieces.append(made.text(part.get("text")))
            elif kind in _MEDIA:
                pieces.append(f"[{_MEDIA[kind]}]")
    return "\n".join(each for each in pieces if each)
