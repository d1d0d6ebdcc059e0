"""What a session's model sees: by part, with tokens, and when it is compacted next. The same words for a chat, the API and the terminal."""

from collections.abc import Iterator
from dataclasses import dataclass

from clew.boundaries import QUIET_WITHOUT_CACHE
from clew.budget import numbers
from clew.config import Agent as Settings
from clew.config.units import duration_text
from clew.context import view
from clew.model_call import TTL_SECONDS
from clew.prompting import Prompter
from clew.providers import Provider
from clew.store.sql import SqlStore


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the prompt. tokens: estimated, as its model was seen to count them. count: of what it is made of, None where that says
    nothing."""

    name: str
    tokens: int
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What is in the window, with nothing new said. tokens: of everything sent; window: the model's; threshold: above it the window is
    compacted, None where nothing is by itself. messages: those that count; at_messages: compacted from so many on. quiet: seconds of
    silence after which a window that is half full is compacted, None for never."""

    model: str
    tokens: int
    window: int
    parts: tuple[Part, ...]
    messages: int
    shortened: int
    pinned: int
    summarised: int
    at_messages: int | None
    threshold: int | None
    quiet: float | None


class Contents:
    """Measures windows. own: the session's own model."""

    def __init__(self, store: SqlStore, settings: Settings, prompter: Prompter, own: Provider) -> None:
        self._store = store
        self._settings = settings
        self._prompter = prompter
        self._own = own

    async def of(self, session: str) -> Seen:
        """What the model of a session sees when the next message comes."""
        rows = await self._store.view(session)
        limits = await self._own.limits()
        ratio = rows.ratio(self._own.name, self._own.model)
        shown = view.window(rows.messages, shortened=rows.shortened).messages
        measured = await self._prompter.measured(rows, shown, self._own, limits)
        settings = self._settings.compression
        bounds = numbers(self._own, limits, settings)
        counts = {"messages": len(shown), "tools": measured.tools}
        parts = tuple(Part(name, round(tokens * ratio), counts.get(name)) for name, tokens in measured.parts if tokens)
        return Seen(
            model=self._own.model or self._own.kind,
            tokens=sum(part.tokens for part in parts),
            window=limits.window,
            parts=parts,
            messages=len(shown),
            shortened=len(rows.shortened.intersection(row.id for row in rows.messages)),
            pinned=len(rows.pins),
            summarised=rows.to_seq,
            at_messages=settings.count_mark if settings.enabled else None,
            threshold=bounds.threshold if settings.enabled and settings.trigger_tokens != "off" else None,
            quiet=self._quiet() if settings.enabled else None,
        )

    def _quiet(self) -> float | None:
        after = self._settings.compression.quiet_after
        if after == "off":
            return None
        if after != "auto":
            return after
        return TTL_SECONDS[self._own.cache_ttl] if self._own.cache_ttl else QUIET_WITHOUT_CACHE


def told(seen: Seen) -> str:
    """What is in the window, a line for each part, and when it is compacted next."""
    return "\n".join(_lines(seen))


def _lines(seen: Seen) -> Iterator[str]:
    share = seen.tokens / seen.window if seen.window else 0.0
    yield f"My window holds about {seen.tokens:,} of {seen.window:,} tokens ({share:.0%}), as {seen.model} counts them:"
    for part in seen.parts:
        yield f"- {part.name}: {part.tokens:,}{_counted(part)}"
    yield ""  # else the last part goes on, where this is read as Markdown
    yield f"{seen.summarised} messages stand behind the summary." if seen.summarised else "Nothing was compacted here yet."
    kept = [f"{count} {what}" for count, what in ((seen.pinned, "pinned"), (seen.shortened, "shortened to a line")) if count]
    if kept:
        yield f"Of the messages: {', '.join(kept)}."
    yield _next(seen)


def _counted(part: Part) -> str:
    return f" ({part.count})" if part.count is not None else ""


def _next(seen: Seen) -> str:
    """When the next compaction comes."""
    if seen.at_messages is None:
        return "It is compacted by /compact, or where a request would not fit any more."
    when = [f"at {seen.at_messages} messages ({max(seen.at_messages - seen.messages, 0)} more)"]
    if seen.threshold is not None:
        when.append(f"above {seen.threshold:,} tokens")
    half = f"after {duration_text(seen.quiet)} of silence where it is half of that" if seen.quiet is not None else ""
    return f"The next compaction comes {' or '.join(when)}{f', or {half}' if half else ''}."
