"""What the Messages API refuses, with its own words where they are known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .anthropic_cache import Block, as_blocks
from .anthropic_models import Model
from .server import JsonObject, Rejected

CLEAR_AT_BETA = "mid-conversation-system-clear-at-2026-08-21"
NO_SAMPLING_VERSION = "2026-10-21"

_TOP_LEVEL = frozenset(
    (
        "model",
        "messages",
        "max_tokens",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "stop_sequences",
        "metadata",
        "thinking",
        "output_config",
        "cache_control",
        "temperature",
        "top_p",
        "top_k",
        "speed",
        "service_tier",
        "diagnostics",
        "container",
        "context_management",
        "betas",
        "compaction",
        "inference_geo",
        "user_profile_id",
        "workspace_id",
    )
)
_PART_KEYS = {
    "text": frozenset(("type", "text", "cache_control", "citations")),
    "tool_use": frozenset(("type", "id", "name", "input", "cache_control", "caller", "toolset_name")),
    "tool_result": frozenset(("type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name")),
    "thinking": frozenset(("type", "thinking", "signature")),
    "redacted_thinking": frozenset(("type", "data")),
}
_REQUIRED: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "tool_use": {"id": str, "name": str, "input": dict},
    "tool_result": {"tool_use_id": str},
    "thinking": {"thinking": str, "signature": str},
}
_PREFIX_BOUND = (
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or "
    'set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block" to have the API remove it.'
)


def check_shape(body: JsonObject, headers: Mapping[str, str], model: Model, *, counting: bool) -> None:
    """Fields, messages, roles, contents, system messages and tool pairs, in this order."""
    _check_fields(body, counting)
    messages = body["messages"]
    if not messages:
        raise Rejected("messages: at least one message is required")
    _check_tools(body.get("tools") or [])
    _check_sampling(body, headers, model)
    first = messages[0]
    if first.get("role") == "assistant" and not _opens_with_compaction(first):
        raise Rejected('messages: first message must use the "user" role')
    for index, part in enumerate(as_blocks(body.get("system") or [])):
        _check_text(part, "system", f"system.{index}")
    for index, message in enumerate(messages):
        _check_message(message, index, final=index == len(messages) - 1)
    for index, message in enumerate(messages):
        if message["role"] == "system":
            _check_system_message(messages, index, headers, model)
        elif "clear_at" in message:
            raise _extra(f"messages.{index}.clear_at")
    _check_pairs(messages)


def check_end(body: JsonObject, model: Model, *, total: int, window: int, counting: bool) -> None:
    """Prefill, `max_tokens: 0` and lengths: what is checked after the markers. Sizes are in tokens."""
    if body["messages"][-1]["role"] == "assistant" and not model.prefill:
        raise Rejected("This model does not support assistant message prefill. The conversation must end with a user message.")
    if counting:
        return
    wanted = body["max_tokens"]
    if wanted == 0 and (body.get("stream") or body.get("thinking") or body.get("tool_choice")):
        # The vendor documents the conflict, not the text.
        raise Rejected("max_tokens: 0 cannot be combined with stream, thinking or tool_choice")
    if wanted > model.max_output:
        raise Rejected(
            f"max_tokens: {wanted} > {model.max_output}, which is the maximum allowed number of output tokens for {body['model']}"
        )
    if total > window:
        raise Rejected(f"prompt is too long: {total} tokens > {window} maximum")
    if model.strict_sum and total + wanted > window:
        raise Rejected(
            f"input length and `max_tokens` exceed context limit: {total} + {wanted} > {window}, decrease input "
            "length or `max_tokens` and try again"
        )


def check_thinking(blocks: list[Block], hashes: list[str], body: JsonObject) -> None:
    """Refuse a replayed thinking block whose signature is not the hash of the prefix before it."""
    parts = _parts_by_path(body)
    for index, block in enumerate(blocks):
        part = parts.get(block.path, {})
        if part.get("type") == "thinking" and (index == 0 or part.get("signature") != hashes[index - 1]):
            raise Rejected(f"{block.path}: {_PREFIX_BOUND}")


def _parts_by_path(body: JsonObject) -> dict[str, JsonObject]:
    return {
        f"messages.{i}.content.{j}": part
        for i, message in enumerate(body["messages"])
        for j, part in enumerate(as_blocks(message["content"]))
    }


def _extra(path: str) -> Rejected:
    return Rejected(f"{path}: Extra inputs are not permitted")


def _check_fields(body: JsonObject, counting: bool) -> None:
    kinds: dict[str, type] = {"model": str, "messages": list}
    if not counting:
        kinds["max_tokens"] = int
    for name, kind in kinds.items():
        if name not in body:
            raise Rejected(f"{name}: Field required")
        if not isinstance(body[name], kind) or isinstance(body[name], bool):
            raise Rejected(f"{name}: Input should be a valid {_KIND_NAMES[kind]}")
    if not counting and body["max_tokens"] < 0:
        raise Rejected("max_tokens: Input should be greater than or equal to 0")
    for name in body:
        if name not in _TOP_LEVEL:
            raise _extra(name)
    _check_control(body, "")


_KIND_NAMES: dict[type, str] = {str: "string", list: "list", int: "integer", dict: "dictionary"}


def _check_tools(tools: list[JsonObject]) -> None:
    names = [tool.get("name") for tool in tools]
    for index, tool in enumerate(tools):
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", str(tool.get("name"))):
            raise Rejected(f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if "type" not in tool and not isinstance(tool.get("input_schema"), dict):
            raise Rejected(f"tools.{index}.custom.input_schema: Field required")
        _check_control(tool, f"tools.{index}.")
    if len(set(names)) < len(names):
        raise Rejected("tools: Tool names must be unique.")


def _check_sampling(body: JsonObject, headers: Mapping[str, str], model: Model) -> None:
    refused = headers["anthropic-version"] >= NO_SAMPLING_VERSION or not model.sampling
    for name in ("temperature", "top_p", "top_k"):
        if name in body and refused:
            # The vendor documents the status, not the text.
            raise _extra(name)


def _opens_with_compaction(message: JsonObject) -> bool:
    parts = as_blocks(message.get("content") or [])
    return bool(parts) and parts[0].get("type") == "compaction"


def _check_message(message: JsonObject, index: int, *, final: bool) -> None:
    role = message.get("role")
    if role not in ("user", "assistant", "system"):
        raise Rejected(f"messages.{index}.role: Input should be 'user', 'assistant' or 'system'")
    if "content" not in message:
        raise Rejected(f"messages.{index}.content: Field required")
    for key in message:
        if key not in ("role", "content", "clear_at"):
            raise _extra(f"messages.{index}.{key}")
    content = message["content"]
    if not isinstance(content, str | list):
        raise Rejected(f"messages.{index}.content: Input should be a valid string or list")
    if not content:
        if final and role == "assistant":
            return
        raise Rejected(f"messages.{index}: all messages must have non-empty content except for the optional final assistant message")
    for at, part in enumerate(as_blocks(content)):
        _check_part(part, role, f"messages.{index}.content.{at}")
    if final and role == "assistant":
        _check_trailing_space(as_blocks(content)[-1])


def _check_trailing_space(part: JsonObject) -> None:
    text = part.get("text", "")
    if text != text.rstrip():
        raise Rejected("messages: final assistant content cannot end with trailing whitespace")


def _check_part(part: Any, role: str, path: str) -> None:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        raise Rejected(f"{path}.type: Field required")
    for name, expected in _REQUIRED.get(kind, {}).items():
        if name not in part:
            raise Rejected(f"{path}.{kind}.{name}: Field required")
        if not isinstance(part[name], expected):
            raise Rejected(f"{path}.{kind}.{name}: Input should be a valid {_KIND_NAMES[expected]}")
    for key in part:
        if key not in _PART_KEYS.get(kind, part):
            raise _extra(f"{path}.{kind}.{key}")
    _check_place(kind, role, path)
    _check_control(part, f"{path}.{kind}.")
    if kind == "tool_use" and not re.fullmatch(r"[a-zA-Z0-9_-]+", part["id"]):
        raise Rejected(f"{path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if kind == "tool_use" and not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", part["name"]):
        # The vendor's text differs from version to version: 200 characters in some.
        raise Rejected(f"{path}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if kind == "text":
        _check_text(part, "messages", path)
    if kind == "tool_result" and isinstance(part.get("content"), list):
        for inner in part["content"]:
            _check_text(inner, "messages", path)


def _check_place(kind: str, role: str, path: str) -> None:
    home = {
        "tool_use": "assistant",
        "thinking": "assistant",
        "redacted_thinking": "assistant",
        "tool_result": "user",
        "image": "user",
    }.get(kind, role)
    if home != role:
        raise Rejected(f"{path}: `{kind}` blocks can only be in `{home}` messages")


def _check_control(part: JsonObject, path: str) -> None:
    control = part.get("cache_control")
    if control is None:
        return
    if control.get("type") != "ephemeral":
        raise Rejected(f"{path}cache_control.type: Input should be 'ephemeral'")
    if control.get("ttl", "5m") not in ("5m", "1h"):
        raise Rejected(f"{path}cache_control.ephemeral.ttl: Input should be '5m' or '1h'")


def _check_text(part: JsonObject, level: str, path: str) -> None:
    if part.get("type") != "text":
        return
    if part["text"] == "" and part.get("cache_control"):
        raise Rejected(f"{path}.text: cache_control cannot be set for empty text blocks")
    if part["text"] == "":
        raise Rejected(f"{level}: text content blocks must be non-empty")
    if not part["text"].strip():
        raise Rejected(f"{level}: text content blocks must contain non-whitespace text")


def _check_system_message(messages: list[JsonObject], index: int, headers: Mapping[str, str], model: Model) -> None:
    if model.strict_sum:
        raise Rejected(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" '
            "as an input message role."
        )
    if not model.system_role:
        raise Rejected("role 'system' is not supported on this model")
    before = messages[index - 1]["role"] if index else None
    after = messages[index + 1]["role"] if index + 1 < len(messages) else "assistant"
    if before != "user" or after != "assistant":
        # The vendor documents the rule, not the text.
        raise Rejected(
            f"messages.{index}: a `system` message must follow a `user` message and be last or followed by an `assistant` message"
        )
    if "clear_at" not in messages[index]:
        return
    if CLEAR_AT_BETA not in headers.get("anthropic-beta", ""):
        raise _extra(f"messages.{index}.clear_at")
    if messages[index]["clear_at"] != "next_user_message":
        raise Rejected(f"messages.{index}.clear_at: Input should be 'next_user_message'")
    for at, part in enumerate(as_blocks(messages[index]["content"])):
        if part["type"] != "text":
            raise Rejected(f"messages.{index}.content.{at}: a turn-scoped `system` message can only hold text")
        if "cache_control" in part:
            raise _extra(f"messages.{index}.content.{at}.text.cache_control")


Located = tuple[int, int, JsonObject]
"""Index of a message, index of a block in it, and the block."""


def _merged(messages: list[JsonObject]) -> Iterator[tuple[str, list[Located]]]:
    """Consecutive messages of one role as one; system messages stand outside of the pairs."""
    role, parts = "", list[Located]()
    for index, message in enumerate(messages):
        if message["role"] == "system":
            continue
        if message["role"] != role:
            if parts:
                yield role, parts
            role, parts = message["role"], []
        parts += [(index, at, part) for at, part in enumerate(as_blocks(message["content"]))]
    if parts:
        yield role, parts


def _check_pairs(messages: list[JsonObject]) -> None:
    seen: set[str] = set()
    asked: dict[str, int] = {}
    for role, parts in _merged(messages):
        _check_answered(asked, parts)
        _check_results(asked if role == "user" else {}, parts)
        asked = {}
        for index, at, part in parts:
            if part["type"] != "tool_use":
                continue
            if part["id"] in seen:
                raise Rejected(f"messages.{index}.content.{at}: `tool_use` ids must be unique")
            seen.add(part["id"])
            asked[part["id"]] = index
    _check_answered(asked, [])


def _check_answered(asked: dict[str, int], parts: list[Located]) -> None:
    leading = set()
    for _, _, part in parts:
        if part["type"] != "tool_result":
            break
        leading.add(part["tool_use_id"])
    missing = [id_ for id_ in asked if id_ not in leading]
    if missing:
        raise Rejected(
            f"messages.{asked[missing[0]]}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
            "message."
        )


def _check_results(asked: dict[str, int], parts: list[Located]) -> None:
    answered = set()
    for index, at, part in parts:
        if part["type"] != "tool_result":
            continue
        id_ = part["tool_use_id"]
        if id_ not in asked:
            raise Rejected(
                f"messages.{index}.content.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id_}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if id_ in answered:
            raise Rejected(
                f"messages.{index}.content.{at}: each tool_use must have a single result. Found multiple `tool_result` "
                f"blocks with id: {id_}"
            )
        answered.add(id_)
