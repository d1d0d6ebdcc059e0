"""Runs in figures: counts and shares by category, and nothing of what was said."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from clew.evaluation.key import CATEGORIES
from clew.evaluation.replay import Run, Snapshot
from clew.evaluation.score import FAULTS, Verdict
from clew.messages import Usage

FATES = ("kept", "listed", "lost")
TOLD = ("right", "wrong", "untold")
ALL = "all"
"""Every category together."""


def figures(runs: Sequence[Run], provider: str, model: str, summary_tokens: int) -> dict[str, Any]:
    """What a measurement came to, ready for JSON.

    passed: by the number of compactions that an item has been through, counted from the one that took its message out of the window.
    after: by the number of compactions of a thread, all that is behind its cut; final: the same, at the last one of each thread.
    faults: each counted once for a thread, whenever it was in its summary.
    """
    most = max((len(run.snapshots) for run in runs), default=0)
    return {
        "provider": provider,
        "model": model,
        "prompt_version": next((run.prompt for run in runs if run.prompt), ""),
        "summary_tokens": summary_tokens,
        "messages": sum(len(run.transcript.messages) for run in runs),
        "passed": {str(count): _survival(_passed(runs, count)) for count in range(1, most + 1)},
        "after": {str(count): _survival(_after(runs, count)) for count in range(1, most + 1)},
        "final": _survival((run, verdict) for run in runs if run.snapshots for verdict in run.snapshots[-1].score.verdicts),
        "faults": _faults(runs),
        "threads": [_thread(run, summary_tokens) for run in runs],
    }


def _passed(runs: Iterable[Run], count: int) -> Iterator[tuple[Run, Verdict]]:
    """What became of each item that has been through `count` compactions, at the last of them."""
    for run in runs:
        since: dict[str, int] = {}
        for snapshot in run.snapshots:
            for verdict in snapshot.score.verdicts:
                first = since.setdefault(verdict.item.id, snapshot.number)
                if snapshot.number - first + 1 == count:
                    yield run, verdict


def _after(runs: Iterable[Run], count: int) -> Iterator[tuple[Run, Verdict]]:
    """What became of everything behind the cut of a thread at its compaction number `count`."""
    for run in runs:
        for snapshot in run.snapshots[count - 1 : count]:
            yield from ((run, verdict) for verdict in snapshot.score.verdicts)


def _survival(verdicts: Iterable[tuple[Run, Verdict]]) -> dict[str, Any]:
    counts = {name: {**dict.fromkeys(("of", *FATES), 0), "survived": 0} for name in (*CATEGORIES, ALL)}
    told = dict.fromkeys(TOLD, 0)
    for run, verdict in verdicts:
        survived = verdict.fate == "kept" or (verdict.fate == "listed" and not run.transcript.fits)
        told[verdict.told] += verdict.fate == "kept"
        for name in (verdict.item.category, ALL):
            counts[name]["of"] += 1
            counts[name][verdict.fate] += 1
            counts[name]["survived"] += survived
    shares = {name: {**each, "share": round(each["survived"] / each["of"], 4) if each["of"] else None} for name, each in counts.items()}
    return {"survival": shares, "speaker": told}


def _faults(runs: Iterable[Run]) -> dict[str, int]:
    ever = [{fault for snapshot in run.snapshots for fault in snapshot.score.faults} for run in runs]
    return {name: sum(fault == name for each in ever for fault, _ in each) for name in FAULTS}


def _thread(run: Run, summary_tokens: int) -> dict[str, Any]:
    usage = sum((snapshot.usage for snapshot in run.snapshots), Usage())
    return {
        "thread": run.transcript.name,
        "language": run.transcript.language,
        "messages": len(run.transcript.messages),
        "items": len(run.transcript.key),
        "fits": run.transcript.fits,
        "failed": run.failed,
        "within": all(snapshot.tokens <= summary_tokens for snapshot in run.snapshots),
        "input_tokens": usage.prompt,
        "output_tokens": usage.output,
        "faults": _faults([run]),
        "compactions": [_compaction(run, snapshot) for snapshot in run.snapshots],
    }


def _compaction(run: Run, snapshot: Snapshot) -> dict[str, Any]:
    found = _survival((run, verdict) for verdict in snapshot.score.verdicts)
    return {
        "number": snapshot.number,
        "upto": snapshot.upto,
        "tokens_before": snapshot.before,
        "tokens": snapshot.tokens,
        "ratio": round(snapshot.tokens / snapshot.before, 4) if snapshot.before else None,
        "entries": snapshot.score.entries,
        "seconds": snapshot.seconds,
        "survival": {name: each["share"] for name, each in found["survival"].items()},
        "speaker": found["speaker"],
        "faults": {name: snapshot.score.count(name) for name in FAULTS},
    }
