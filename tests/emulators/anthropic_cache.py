"""Prompt caching of the Messages API as pure accounting: blocks, hash chain, markers, reads and writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

from .server import JsonObject, Rejected, Tok

Level = Literal["tools", "system", "messages"]
Marker = tuple[int, str]
"""Index of a block and the time to live, `5m` or `1h`, of the marker on it."""

TTL_SECONDS = {"5m": 300.0, "1h": 3600.0}
IMAGE_TOKENS = 1_568
DOCUMENT_TOKENS = 2_250
LOOKBACK = 20
MAX_MARKERS = 4


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a prompt: where it stands, what is hashed, its tokens, its marker, whether it can be marked."""

    level: Level
    path: str
    canonical: str
    tokens: int
    ttl: str | None
    eligible: bool


@dataclass(frozen=True, slots=True)
class Accounting:
    """What one request reads and writes; everything but indices and hashes is in tokens.

    `input` is what the request pays in full, so `read + created + input == total`. `prefixes` has one (hash,
    cumulative tokens) for each block. `longest_unexpired_prefix` is the best that any placement of markers could
    have read: the longest prefix of this request that an earlier call wrote and that has not expired.
    """

    read: int
    created_5m: int
    created_1h: int
    input: int
    total: int
    hit: int | None
    markers: tuple[Marker, ...]
    writes: tuple[Marker, ...]
    prefixes: tuple[tuple[str, int], ...]
    longest_unexpired_prefix: int

    @property
    def created(self) -> int:
        return self.created_5m + self.created_1h


@dataclass(slots=True)
class _Entry:
    ttl: str
    expires: float


class CacheStore:
    """The entries that earlier requests wrote, by prefix hash."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def live(self, prefix: str, now: float) -> bool:
        entry = self._entries.get(prefix)
        return entry is not None and now < entry.expires

    def commit(self, accounting: Accounting, started: float) -> None:
        """Refresh what was read and insert what was written; lifetimes count from the start of the request."""
        if accounting.hit is not None:
            marked = [index for index, _ in accounting.markers if index < accounting.hit]
            for index in [*marked, accounting.hit]:
                self._refresh(accounting.prefixes[index][0], started)
        for index, ttl in accounting.writes:
            self._entries[accounting.prefixes[index][0]] = _Entry(ttl, started + TTL_SECONDS[ttl])

    def _refresh(self, prefix: str, started: float) -> None:
        if self.live(prefix, started):
            entry = self._entries[prefix]
            entry.expires = max(entry.expires, started + TTL_SECONDS[entry.ttl])


def flatten(body: JsonObject, tok: Tok) -> list[Block]:
    """List the blocks of a request in the order in which they are hashed: tools, system, messages."""
    blocks = [_block("tools", f"tools.{i}", tool, "", tok) for i, tool in enumerate(body.get("tools") or [])]
    system = body.get("system")
    if system is not None:
        blocks += [_block("system", f"system.{i}", part, "", tok) for i, part in enumerate(as_blocks(system))]
    messages = body["messages"]
    last_user = max((i for i, message in enumerate(messages) if message["role"] == "user"), default=-1)
    for i, message in enumerate(messages):
        scoped = "clear_at" in message
        if scoped and i < last_user:
            continue
        for j, part in enumerate(as_blocks(message["content"])):
            blocks.append(_block("messages", f"messages.{i}.content.{j}", part, message["role"], tok, scoped))
    return blocks


def as_blocks(content: Any) -> list[JsonObject]:
    """A string is one text block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _block(level: Level, path: str, part: JsonObject, role: str, tok: Tok, scoped: bool = False) -> Block:
    shown = {key: value for key, value in part.items() if key != "cache_control"}
    kind = part.get("type")
    eligible = not scoped and kind not in ("thinking", "redacted_thinking") and part.get("text") != ""
    control = part.get("cache_control")
    return Block(
        level,
        path,
        role + json.dumps(shown, ensure_ascii=False, separators=(",", ":")),
        tool_tokens(part, tok) if level == "tools" else block_tokens(part, tok),
        control.get("ttl", "5m") if control else None,
        eligible,
    )


def tool_tokens(tool: JsonObject, tok: Tok) -> int:
    """Tokens of a tool definition: its name, its description and its schema as JSON."""
    return tok(str(tool.get("name"))) + tok(tool.get("description") or "") + tok(json.dumps(tool.get("input_schema")))


def block_tokens(part: JsonObject, tok: Tok) -> int:
    """Tokens of a content block; images and binary documents have a fixed size here."""
    match part.get("type"):
        case "text":
            return tok(part["text"])
        case "thinking":
            return tok(part["thinking"])
        case "tool_use":
            return tok(part["name"]) + tok(json.dumps(part["input"]))
        case "tool_result":
            return sum(block_tokens(inner, tok) for inner in as_blocks(part.get("content") or ""))
        case "image":
            return IMAGE_TOKENS
        case "document":
            source = part.get("source") or {}
            return tok(source["data"]) if source.get("type") == "text" else DOCUMENT_TOKENS
        case _:
            return tok(json.dumps(part))


def chain(body: JsonObject, blocks: Iterable[Block], workspace: str) -> list[str]:
    """Hash of the prefix that ends at each block; what a level depends on besides its blocks is salted in."""
    salts: dict[Level, list[Any]] = {
        "tools": [],
        "system": [body.get("speed"), _any_part(body["messages"], _has_citations)],
        "messages": [
            body.get("tool_choice"),
            body.get("thinking"),
            (body.get("output_config") or {}).get("effort"),
            _any_part(body["messages"], lambda part: part.get("type") == "image"),
        ],
    }
    by_level: dict[Level, list[Block]] = {level: [] for level in get_args(Level)}
    for block in blocks:
        by_level[block.level].append(block)
    running = _digest(workspace, body["model"])
    hashes = []
    for level, members in by_level.items():
        running = _digest(running, level, json.dumps(salts[level]))
        for block in members:
            running = _digest(running, block.canonical)
            hashes.append(running)
    return hashes


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()


def _has_citations(part: JsonObject) -> bool:
    return bool((part.get("citations") or {}).get("enabled"))


def _any_part(messages: Iterable[JsonObject], test: Any) -> bool:
    return any(test(part) for message in messages for part in _parts(message["content"]))


def _parts(content: Any) -> Iterator[JsonObject]:
    for part in as_blocks(content):
        yield part
        if part.get("type") == "tool_result":
            yield from _parts(part.get("content") or "")


def resolve_markers(blocks: list[Block], automatic: JsonObject | None) -> list[Marker]:
    """The markers in force, ascending, the automatic one among them; more than four or a wrong order is refused."""
    markers = [(i, block.ttl) for i, block in enumerate(blocks) if block.ttl is not None]
    last = max((i for i, block in enumerate(blocks) if block.eligible), default=None)
    if automatic is not None and last is not None:
        markers = _with_automatic(markers, last, automatic.get("ttl", "5m"))
    if len(markers) > MAX_MARKERS:
        raise Rejected(f"A maximum of {MAX_MARKERS} blocks with cache_control may be provided. Found {len(markers)}.")
    for (_, earlier), (index, later) in pairwise(markers):
        if (earlier, later) == ("5m", "1h"):
            raise Rejected(
                f"{blocks[index].path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a "
                "ttl='5m' cache_control block. Note that blocks are processed in the following order: "
                "`tools`, `system`, `messages`."
            )
    return markers


def _with_automatic(markers: list[Marker], last: int, ttl: str) -> list[Marker]:
    there = dict(markers).get(last)
    if there is None:
        return sorted([*markers, (last, ttl)])
    if there != ttl:
        # The vendor documents the status, not the text.
        raise Rejected("cache_control.ttl: the last block already has a cache_control with a different ttl.")
    return markers


def account(
    blocks: list[Block],
    hashes: list[str],
    markers: list[Marker],
    store: CacheStore,
    now: float,
    *,
    minimum: int,
    lookback: int = LOOKBACK,
) -> Accounting:
    """Say what the request reads and writes, without changing the store.

    Every marker looks back over `lookback` blocks, itself the first, for an entry of an earlier request, the last
    marker first. Behind the hit each marker whose prefix has `minimum` tokens is written.
    """
    cumulative, total = [], 0
    for block in blocks:
        total += block.tokens
        cumulative.append(total)
    live = [store.live(prefix, now) for prefix in hashes]
    hit = _deepest_hit(markers, live, lookback)
    read = cumulative[hit] if hit is not None else 0
    behind = -1 if hit is None else hit
    writes = [(i, ttl) for i, ttl in markers if i > behind and cumulative[i] >= minimum]
    last_long = max((cumulative[i] for i, ttl in writes if ttl == "1h"), default=read)
    last = max((cumulative[i] for i, _ in writes), default=read)
    return Accounting(
        read=read,
        created_5m=last - last_long,
        created_1h=last_long - read,
        input=total - last,
        total=total,
        hit=hit,
        markers=tuple(markers),
        writes=tuple(writes),
        prefixes=tuple(zip(hashes, cumulative, strict=True)),
        longest_unexpired_prefix=max((c for c, is_live in zip(cumulative, live, strict=True) if is_live), default=0),
    )


def _deepest_hit(markers: list[Marker], live: list[bool], lookback: int) -> int | None:
    for marker, _ in reversed(markers):
        for index in range(marker, max(-1, marker - lookback), -1):
            if live[index]:
                return index
    return None
