"""A message of the Messages API as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .server import AnyFault, JsonObject, Malformed, StreamError, pieces


def event(payload: JsonObject) -> bytes:
    """One server-sent event, named by its payload's type; text stays UTF-8, so that it can be cut."""
    data = json.dumps(payload, ensure_ascii=False)
    return f"event: {payload['type']}\ndata: {data}\n\n".encode()


def message_events(message: JsonObject) -> list[bytes]:
    """All events of a message: start, a ping behind the first block start, blocks in small pieces, delta, stop."""
    usage = message["usage"]
    start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    start.pop("stop_details", None)
    events = [event({"type": "message_start", "message": start})]
    for index, part in enumerate(message["content"]):
        block = list(_block_events(index, part))
        events += [block[0], event({"type": "ping"}), *block[1:]] if index == 0 else block
    delta = {key: message[key] for key in ("stop_reason", "stop_sequence", "stop_details") if key in message}
    events.append(event({"type": "message_delta", "delta": delta, "usage": usage}))
    events.append(event({"type": "message_stop"}))
    return events


def _block_events(index: int, part: JsonObject) -> Iterator[bytes]:
    opened, deltas = _opened(part), list(_deltas(part))
    yield event({"type": "content_block_start", "index": index, "content_block": opened})
    for delta in deltas:
        yield event({"type": "content_block_delta", "index": index, "delta": delta})
    yield event({"type": "content_block_stop", "index": index})


def _opened(part: JsonObject) -> JsonObject:
    match part["type"]:
        case "text":
            return {**part, "text": ""}
        case "tool_use":
            return {**part, "input": {}}
        case "thinking":
            return {**part, "thinking": "", "signature": ""}
        case _:
            return part


def _deltas(part: JsonObject) -> Iterator[JsonObject]:
    match part["type"]:
        case "text":
            for piece in pieces(part["text"]):
                yield {"type": "text_delta", "text": piece}
        case "tool_use":
            # ASCII escapes, so that the cut pieces also end inside `\uXXXX`.
            for piece in ["", *pieces(json.dumps(part["input"]))]:
                yield {"type": "input_json_delta", "partial_json": piece}
        case "thinking":
            for piece in pieces(part["thinking"]):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": part["signature"]}


def with_fault(events: list[bytes], fault: AnyFault | None, request_id: str) -> list[bytes]:
    """Put an error event or an event that is not JSON into the stream, where the fault asks for one."""
    first_block = next((i for i, data in enumerate(events) if data.startswith(b"event: content_block_start")), 0)
    match fault:
        case StreamError():
            error = {"type": fault.type, "message": fault.message}
            kept = first_block + 1 if fault.after is None else fault.after
            return [*events[:kept], event({"type": "error", "error": error, "request_id": request_id})]
        case Malformed():
            broken = f"event: content_block_delta\ndata: {fault.body}\n\n".encode()
            return [*events[: first_block + 1], broken, *events[first_block + 1 :]]
        case _:
            return events
