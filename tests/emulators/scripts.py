"""Ready answers for both emulators. A script takes a request's body and returns content blocks and a stop reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from .server import Answer, JsonObject, Reply, Script

Test = Callable[[JsonObject], bool]


def last_user_text(body: JsonObject) -> str:
    """The first text block of the newest user message that has one; blocks behind it may be recalled notes."""
    for message in reversed(body["messages"]):
        if message["role"] == "user" and (texts := _texts(message)):
            return texts[0]
    return ""


def last_is_tool_result(body: JsonObject) -> bool:
    """Whether the request carries tool results back: its last message is one, or holds one."""
    last = body["messages"][-1]
    content = last.get("content")
    return last["role"] == "tool" or (isinstance(content, list) and any(part.get("type") == "tool_result" for part in content))


def say(text: str) -> Reply:
    """A plain text reply."""
    return Reply([{"type": "text", "text": text}])


def echo(body: JsonObject) -> Reply:
    """Reply `answer to: <last user text>`."""
    return say(f"answer to: {last_user_text(body)}")


def numbered(prefix: str = "reply") -> Script:
    """Reply `reply 1`, `reply 2` and so on."""
    count = 0

    def script(body: JsonObject) -> Reply:
        nonlocal count
        count += 1
        return say(f"{prefix} {count}")

    return script


def calls_tool(name: str, arguments: JsonObject, *, when: Test = lambda body: True, final: Script = echo) -> Script:
    """Call the tool once for a request that passes `when`; answer the request with its result by `final`."""
    count = 0

    def script(body: JsonObject) -> Answer | Awaitable[Answer]:
        nonlocal count
        if last_is_tool_result(body) or not when(body):
            return final(body)
        count += 1
        call = {"type": "tool_use", "id": f"toolu_{count:04d}", "name": name, "input": arguments}
        return Reply([call], "tool_use")

    return script


def summarises(is_summary: Test, summary: Script, *, otherwise: Script = echo) -> Script:
    """Answer the requests that `is_summary` recognises by one script and all others by another."""
    return lambda body: (summary if is_summary(body) else otherwise)(body)


def _texts(message: JsonObject) -> list[str]:
    content = message.get("content") or []
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if part.get("type") == "text"]
