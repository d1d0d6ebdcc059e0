"""What a compaction leaves behind: its row, with a report of what was kept, changed and dropped."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, tzinfo
from difflib import unified_diff
from functools import lru_cache
from typing import Any

from clew.context import ledger as ledgers
from clew.context.compression import Cut, Trigger
from clew.context.ledger import Ledger
from clew.context.prompt import Covered, message_tokens
from clew.context.revision import Report
from clew.context.tokens import estimate
from clew.context.view import Rendered, window
from clew.store import Compaction, ModelCall, ViewRows

EXTRACT = "extract"
"""Stands for the model and the prompt where a summary was made without either."""

NOTHING = "There is nothing to compact yet."


@dataclass(frozen=True, slots=True)
class Made:
    """A cut that was carried out, and what the summariser made of it.

    rows: what the window was made of. demoted, kept: its messages in front of the cut and behind it. shorten: rows of those kept that
    are one line from now on. seconds: how long it took. cost: dollars, None where no price is known. focus, instructions: what somebody
    asked of it.
    """

    rows: ViewRows
    cut: Cut
    demoted: tuple[Rendered, ...]
    kept: tuple[Rendered, ...]
    shorten: tuple[str, ...]
    ledger: Ledger
    report: Report
    prompt_version: str
    model: str
    seconds: float
    cost: float | None
    calls: tuple[ModelCall, ...]
    focus: str = ""
    instructions: str = ""


def began(rows: ViewRows, demoted: Sequence[Rendered]) -> float:
    """When the first message behind a summary of these was written (seconds since the epoch, UTC)."""
    before = rows.compaction
    first_at: float = json.loads(before.report)["first_at"] if before and before.text else demoted[0].rows[0].at
    return first_at


def summary_row(made: Made, identifier: str, now: float, zone: tzinfo, known: Collection[str]) -> Compaction:
    """The row of a revised summary. known: secrets of this installation, which pinned messages must not bring into it."""
    rows, before = made.rows, made.rows.compaction
    demoted = tuple(dict.fromkeys(row for message in made.demoted for row in message.rows))
    held = [*rows.pinned, *(row for row in demoted if row.id in rows.pins)]
    total = json.loads(before.report)["total"] if before and before.text else 0
    first_at = began(rows, made.demoted)
    text = ledgers.render(made.ledger, held, known, zone=zone, year=datetime.fromtimestamp(first_at, zone).year)
    shown = window([row for row in rows.messages if row.seq > made.cut.to_seq], shortened=rows.shortened.union(made.shorten)).messages
    report = {
        "total": total + len(demoted),
        "first_at": first_at,
        "last_at": demoted[-1].at,
        **asdict(made.report),
        "tokens_before": _tokens(before, (*made.demoted, *made.kept)),
        "tokens_after": estimate(text) + sum(map(message_tokens, shown)),
        "seconds": made.seconds,
        "cost": made.cost,
        "model": made.model,
        **{name: text for name, text in (("focus", made.focus), ("instructions", made.instructions)) if text},
    }
    return Compaction(
        id=identifier,
        session=rows.session,
        parent=before.id if before else None,
        from_seq=rows.to_seq + 1,
        to_seq=made.cut.to_seq,
        ledger=ledgers.to_json(made.ledger),
        text=text,
        trigger=made.cut.trigger,
        prompt_version=made.prompt_version,
        report=json.dumps(report, ensure_ascii=False),
        messages=len(made.kept) + 1,
        covered=len(made.demoted),
        created=now,
        held=tuple(row.id for row in held),
        model_call=made.calls[-1].id if made.calls else None,
        shortened=_shortened(rows, made.shorten, made.cut.to_seq),
    )


def shorten_row(rows: ViewRows, shorten: Sequence[str], trigger: Trigger, identifier: str, now: float) -> Compaction:
    """The row of a compaction that shortens these rows under the summary that stands."""
    before = rows.compaction
    messages = window(rows.messages, shortened=rows.shortened).messages
    shown = window(rows.messages, shortened=rows.shortened.union(shorten)).messages
    said = json.loads(before.report) if before else {"total": 0, "first_at": None, "last_at": None}
    report = {
        **{key: said[key] for key in ("total", "first_at", "last_at")},
        "rows": list(shorten),
        "tokens_before": _tokens(before, messages),
        "tokens_after": _tokens(before, shown),
    }
    return Compaction(
        id=identifier,
        session=rows.session,
        parent=before.id if before else None,
        from_seq=rows.to_seq + 1,
        to_seq=rows.to_seq,
        ledger=before.ledger if before else ledgers.to_json(()),
        text=before.text if before else "",
        trigger=trigger,
        prompt_version="",
        report=json.dumps(report, ensure_ascii=False),
        messages=len(shown) + bool(before and before.text),
        covered=0,
        created=now,
        held=before.held if before else (),
        kind="shorten",
        shortened=_shortened(rows, shorten, rows.to_seq),
    )


def _shortened(rows: ViewRows, more: Sequence[str], to_seq: int) -> tuple[str, ...]:
    wanted = rows.shortened.union(more)
    return tuple(row.id for row in rows.messages if row.seq > to_seq and row.id in wanted)


def _tokens(summary: Compaction | None, messages: Sequence[Rendered]) -> int:
    """Estimated tokens of a window."""
    return (estimate(summary.text) if summary else 0) + sum(map(message_tokens, messages))


def covered(compaction: Compaction) -> Covered:
    """What a compaction's summary stands for."""
    return _covered(compaction.report)


@lru_cache(maxsize=64)
def _covered(report: str) -> Covered:
    told = json.loads(report)
    return Covered(told["total"], told["first_at"], told["last_at"])


@dataclass(frozen=True, slots=True)
class Told:
    """The report of a stored compaction. Lists hold what `Report` says of entries; `rows`: ids of the rows that it shortened.

    focus, instructions: what somebody asked of it, empty where nobody did.
    """

    kept: list[dict[str, Any]]
    added: list[dict[str, Any]]
    changed: list[dict[str, Any]]
    dropped: list[dict[str, Any]]
    refused: list[dict[str, Any]]
    rows: list[str]
    tokens_before: int | None
    tokens_after: int | None
    model: str
    seconds: float | None
    cost: float | None
    focus: str = ""
    instructions: str = ""


def told(compaction: Compaction) -> Told:
    """What a compaction reports of itself. Of what an older clew did not write down yet nothing is said."""
    report = json.loads(compaction.report)

    def entries(key: str) -> list[dict[str, Any]]:
        return [each for each in report.get(key, ()) if isinstance(each, dict)]

    return Told(
        kept=entries("kept"),
        added=entries("added"),
        changed=entries("changed"),
        dropped=entries("dropped"),
        refused=entries("refused"),
        rows=report.get("rows", []),
        tokens_before=report.get("tokens_before"),
        tokens_after=report.get("tokens_after"),
        model=report.get("model", ""),
        seconds=report.get("seconds"),
        cost=report.get("cost"),
        focus=report.get("focus", ""),
        instructions=report.get("instructions", ""),
    )


def entry_line(change: Mapping[str, Any], most: int) -> str:
    """One entry of a report in words, its texts cut to `most` characters."""
    before = f" (was: {short(change['before'], most)})" if change.get("before") else ""
    why = f" (because {short(change['why'], most)})" if change.get("why") else ""
    return f"{str(change.get('kind', '')).replace('_', ' ')}: {short(str(change.get('text', '')), most)}{before}{why}"


def preview_words(demoted: int, kept: int, tokens_before: int, tokens_after: int, call_tokens: Sequence[int], cost: float | None) -> str:
    """What a compaction would do: the fields of a `Preview`."""
    if not demoted:
        return NOTHING
    price = f", for about ${cost:.4f}" if cost is not None else ""
    return (
        f"{_messages(demoted)} would go into the summary and {kept} stay: about {tokens_before:,} tokens now, at most {tokens_after:,}"
        f" then. The call reads about {call_tokens[0]:,} tokens and writes at most {call_tokens[1]:,}{price}."
    )


def outcome_words(state: str, messages: int, covered: int, error: str, note: str = "") -> str:
    """What a compaction that somebody asked for came to: the fields of an `Outcome`."""
    if state == "done":
        said = f"Compacted: {_messages(covered)} went into the summary; with it the window has {messages} now. Nothing was deleted."
        return f"{said} It was done without a model. {note}" if note else said
    said_of = {"nothing": NOTHING, "lost": "Another compaction was first; everything is in order."}
    return said_of.get(state, f"Compacting did not work: {error}. The conversation is as it was.")


def undone_words(kind: str, covered: int, shortened: int) -> str:
    """What came back when a compaction was undone. shortened: results that it had shortened."""
    back = _messages(covered) if kind == "summary" else f"{shortened} result{'' if shortened == 1 else 's'}"
    return f"Undone: {back} {'is' if back[:2] == '1 ' else 'are'} in my view again as they were."


def _messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"


def difference(before: str, after: str, names: tuple[str, str], context: int = 1) -> list[str]:
    """How a summary differs from the one before it: a unified diff with so many lines of context, empty where it does not."""
    return list(unified_diff(before.splitlines(), after.splitlines(), *names, n=context, lineterm=""))


def short(text: str, most: int) -> str:
    """`text` as one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
