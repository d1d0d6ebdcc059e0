"""What a small window can afford: results of one message, and tools. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from clew.context.prompt import block_tokens
from clew.context.tokens import TOOL_PROMPT_TOKENS, estimate
from clew.context.view import ends
from clew.messages import ToolResult
from clew.request import ToolSpec

LINE_TOKENS = 60
"""Estimated tokens of the line that says that a result goes on."""
LEAST_CHARS = 200
"""Characters of a result that are always shown."""

LEFT_OUT_FIRST = (
    *("schedule_update", "schedule_delete", "schedule_list", "schedule_create"),
    "fetch_url",
    *("memory_delete_relations", "memory_delete_observations", "memory_delete_entities"),
    *("memory_create_relations", "memory_open_nodes", "memory_search_nodes", "memory_add_observations", "memory_create_entities"),
    *("document_search", "current_time"),
)
"""The order in which a small window goes without clew's own tools, behind those of plug-ins."""
NEVER_LEFT_OUT = frozenset({"session_search", "session_open"})
"""What was compacted is found and opened with these."""


def fitted(results: Sequence[ToolResult], limit: int, ratio: float = 1.0) -> tuple[ToolResult, ...]:
    """All results of one assistant message, those cut that together exceed `limit` tokens: each may take the same share.

    Only how much is shown changes; the text stays whole. ratio: tokens that the model counts for one of the estimate.
    """
    sizes = [round(ratio * block_tokens(replace(result, text=_seen(result, result.shown)))) for result in results]
    if sum(sizes) <= limit:
        return tuple(results)
    share = _share(sizes, limit)
    return tuple(_cut(each, size, share, ratio) if size > share else each for each, size in zip(results, sizes, strict=True))


def _share(sizes: Sequence[int], limit: int) -> int:
    """The largest share that each may take so that all together fit `limit`."""
    left, share = limit, 0
    for place, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - place)
        if size > share:
            return share
        left -= size
    return share


def _cut(result: ToolResult, size: int, share: int, ratio: float) -> ToolResult:
    room = max(share - round(ratio * LINE_TOKENS), 0)
    most = len(result.text) if result.shown is None else result.shown
    shown = min(max(most * room // size, LEAST_CHARS), most)
    while shown > LEAST_CHARS and ratio * estimate(_seen(result, shown)) > room:  # its ends may be denser than the rest
        shown = max(shown * 3 // 4, LEAST_CHARS)
    return replace(result, shown=shown) if shown < most else result


def _seen(result: ToolResult, shown: int | None) -> str:
    return result.text if shown is None else "".join(ends(result.text, shown))


def affordable(tools: Sequence[ToolSpec], base: str, limit: int) -> tuple[ToolSpec, ...]:
    """The tools that fit `limit` tokens beside the base prompt.

    While all of it does not fit, tools are left out: first those that clew does not name itself, the last by name first, then
    those of `LEFT_OUT_FIRST` in its order.
    """
    order = {name: place for place, name in enumerate(LEFT_OUT_FIRST)}
    others = sorted((tool for tool in tools if tool.name not in order and tool.name not in NEVER_LEFT_OUT), key=lambda tool: tool.name)
    optional = [*reversed(others), *sorted((tool for tool in tools if tool.name in order), key=lambda tool: order[tool.name])]
    kept, taken = list(tools), estimate(base) + TOOL_PROMPT_TOKENS + sum(map(_tokens, tools))
    for tool in optional:
        if taken <= limit:
            break
        kept.remove(tool)
        taken -= _tokens(tool)
    return tuple(kept)


def _tokens(tool: ToolSpec) -> int:
    return estimate(tool.name) + estimate(tool.description) + estimate(tool.schema)
