"""`clew eval`: how well clew does its work, measured."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from clew.cli.options import asynchronous, config_option, json_option, log_to_stderr, settings
from clew.cli.output import harmless, plural, print_json, print_table
from clew.cli.reading import reading
from clew.clock import Time
from clew.config import Config, Recall
from clew.errors import ClewError, UsageError
from clew.evaluation import transcript as transcripts
from clew.evaluation.figures import ALL, figures
from clew.evaluation.key import CATEGORIES, guessed
from clew.evaluation.plot import plot
from clew.evaluation.replay import Run, replay
from clew.evaluation.transcript import Transcript
from clew.providers import Provider

if TYPE_CHECKING:
    from clew.evaluation.remembered import MeaningOf

TITLES = {"alone": "EACH ALONE", "together": "ALL TOGETHER"}
COLUMNS = (1, 5, 20)
"""Compactions passed, as they stand in the table."""


@click.group("eval")
def eval() -> None:
    """Measure how well clew keeps and finds what matters."""


@eval.command()
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
@click.option("--jsonl", metavar="FILE", is_flag=False, flag_value="-", help="One transcript; without FILE from stdin.")
@click.option("--session", metavar="ID", help="A stored session.")
@click.option("--thread", "threads", metavar="NAME", multiple=True, help="Only this one; may be repeated.")
@click.option("--provider", metavar="NAME", help="The summariser: a section of `providers`, or offline.")
@click.option("--compactions", type=click.IntRange(1, 1000), default=20, show_default=True, help="For each thread.")
@click.option("--plot", "picture", type=click.Path(path_type=Path, dir_okay=False), help="Write the drift as SVG.")
@click.option("--show", is_flag=True, help="Print what was lost and what is wrong, word for word.")
@config_option
@json_option
@asynchronous
async def compaction(
    folder: Path | None,
    jsonl: str | None,
    session: str | None,
    threads: tuple[str, ...],
    provider: str | None,
    compactions: int,
    picture: Path | None,
    show: bool,
    path: Path | None,
    as_json: bool,
) -> None:
    """Compact transcripts with the real code, and measure what survives: those that ship with clew, those in DIR, or your own.

    The table and the JSON hold counts, and nothing of what was said, unless --show asks for it.
    """
    config = settings(path)
    log_to_stderr(config, "error")
    chosen = _keyed(await _transcripts(config, folder, jsonl, session, threads))
    summariser = await _summariser(config, provider)
    try:
        if not (summariser.configured and await summariser.answers()):
            raise ClewError(f"the provider {summariser.name} does not answer.", hint="`clew doctor` says more.")
        runs = [await _run(each, summariser, config, compactions) for each in chosen]
    finally:
        await summariser.close()
    measured = figures(runs, summariser.name, summariser.model, config.agent.compression.summary_tokens)
    if picture is not None:
        picture.write_text(plot(measured), encoding="utf-8")
    if as_json:
        print_json(measured | ({"texts": [_texts(run) for run in runs]} if show else {}))
        return
    _print(measured)
    for run in runs if show else ():
        _print_texts(run)


async def _run(transcript: Transcript, summariser: Provider, config: Config, compactions: int) -> Run:
    if sys.stderr.isatty():  # with a model a thread takes minutes
        click.echo(f"compacting {harmless(transcript.name)} …", err=True)
    return await replay(transcript, summariser, config.agent.compression, compactions)


async def _transcripts(
    config: Config, folder: Path | None, jsonl: str | None, session: str | None, threads: Sequence[str]
) -> list[Transcript]:
    if sum(each is not None for each in (folder, jsonl, session)) > 1:
        raise UsageError("DIR, --jsonl and --session exclude each other.")
    if session is not None:
        async with reading(config) as store:
            row = await store.find_session(session)
            data = await store.export_session(row.id)
        return [transcripts.exported(row.id, data)]
    if jsonl is not None:
        with click.open_file(jsonl, "rb") as file:
            name = "stdin" if jsonl == "-" else Path(jsonl).stem
            return [transcripts.of_lines(name, transcripts.read_text(file, name).split("\n"))]
    if folder is None:
        return transcripts.shipped(threads)
    found = transcripts.in_folder(folder)
    if unknown := set(threads) - {each.name for each in found}:
        raise UsageError(f"There is no thread {min(unknown)!r} in {folder}.")
    return [each for each in found if not threads or each.name in threads]


def _keyed(chosen: Iterable[Transcript]) -> list[Transcript]:
    return [each if each.key else replace(each, key=guessed(each.messages)) for each in chosen]


async def _summariser(config: Config, name: str | None) -> Provider:
    """The configured summariser, or the provider of this name; `offline` is there without a section."""
    from clew.assembly import build_provider, providers_of  # only now: it brings the providers with it
    from clew.clock import Time
    from clew.plugins import registry

    if name is None:
        provider = providers_of(config, Time())[1]
    elif name in config.providers:
        provider = build_provider(config, name)
    elif name == "offline":
        kind = registry("clew.providers")["offline"]
        provider = kind.build("offline", kind.Config())
    else:
        raise UsageError(f"There is no provider {name!r}.", hint=f"Known are: {', '.join(sorted({*config.providers, 'offline'}))}.")
    await provider.prepare()
    return provider


def _print(measured: dict[str, Any]) -> None:
    passed = {count: measured["passed"].get(str(count)) for count in COLUMNS}
    columns = [each["survival"] if each else {} for each in (*passed.values(), measured["final"])]
    click.echo(f"{len(measured['threads'])} threads, {measured['messages']:,} messages, summarised by {measured['provider']}")
    print_table(
        ("SURVIVED", *(f"AFTER {count}" for count in COLUMNS), "IN THE END"),
        ((name, *(_share(column.get(name)) for column in columns)) for name in (*CATEGORIES, ALL)),
    )
    told = measured["final"]["speaker"]
    click.echo(f"\nspeakers in the end: {told['right']} right, {told['wrong']} wrong, {told['untold']} not named")
    click.echo("faults ever: " + ", ".join(f"{name} {count}" for name, count in measured["faults"].items()) + "\n")
    print_table(
        ("THREAD", "LANGUAGE", "MESSAGES", "COMPACTIONS", "FAILED", "SUMMARY TOKENS", "RATIO", "SURVIVED", "FAULTS"),
        (_thread_row(each) for each in measured["threads"]),
    )


def _share(found: dict[str, Any] | None) -> str:
    return f"{found['share'] * 100:.1f} % of {found['of']}" if found and found["of"] else ""


def _thread_row(thread: dict[str, Any]) -> tuple[object, ...]:
    last = thread["compactions"][-1] if thread["compactions"] else {}
    share = last.get("survival", {}).get(ALL)
    return (
        thread["thread"],
        thread["language"],
        thread["messages"],
        len(thread["compactions"]),
        thread["failed"],
        f"{last['tokens']:,}{'' if thread['within'] else ' (over)'}" if last else "",
        f"{last['ratio'] * 100:.0f} %" if last and last["ratio"] else "",
        "" if share is None else f"{share * 100:.1f} %",
        sum(thread["faults"].values()),
    )


def _texts(run: Run) -> dict[str, Any]:
    faults = dict.fromkeys(fault for snapshot in run.snapshots for fault in snapshot.score.faults)
    last = run.snapshots[-1] if run.snapshots else None
    return {
        "thread": run.transcript.name,
        "lost": list(last.lost) if last else [],
        "faults": [{"fault": fault, "what": what} for fault, what in faults],
        "summary": last.text if last else "",
    }


def _print_texts(run: Run) -> None:
    texts = _texts(run)
    click.echo(f"\n{harmless(texts['thread'])}")
    for quote in texts["lost"]:
        click.echo(f"  lost: {harmless(quote)}")
    for each in texts["faults"]:
        click.echo(f"  {each['fault']}: {harmless(each['what'])}")


@eval.command()
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
@click.option("--jsonl", is_flag=True, help="Speak JSON lines: messages and questions on stdin, excerpts on stdout.")
@click.option("--budget", metavar="CHARS", type=click.IntRange(0, 100_000), help="Instead of budget_chars.")
@click.option("--excerpts", type=click.IntRange(0, 100), help="Instead of max_excerpts.")
@click.option("--among", type=click.IntRange(0, 10_000_000), default=0, help="Add so many made-up messages around them.")
@click.option("--of", "kind", type=click.Choice(("words", "sentences")), default="words", show_default=True, help="What those are made of.")
@config_option
@json_option
@asynchronous
async def recall(
    folder: Path | None,
    jsonl: bool,
    budget: int | None,
    excerpts: int | None,
    among: int,
    kind: Literal["words", "sentences"],
    path: Path | None,
    as_json: bool,
) -> None:
    """Ask questions about earlier chats, and measure how much of what answers them recall brings back.

    DIR holds messages.jsonl and questions.jsonl. Each conversation is asked alone, then all of them in one store; with --among only so.
    """
    from clew.assembly import meaning_of  # only now: they bring the store with them
    from clew.evaluation import questions as asking

    if (folder is None) is not jsonl:
        raise UsageError("Name a folder, or --jsonl.")
    config = settings(path)
    log_to_stderr(config, "error")
    meant = partial(meaning_of, config, time=Time())
    if folder is None:
        await _answer_lines(meant)
        return
    own = config.agent.recall
    limits = Recall(
        budget_chars=own.budget_chars if budget is None else budget,
        max_excerpts=own.max_excerpts if excerpts is None else excerpts,
    )
    remarks, questions = asking.read(folder)
    parts = list(asking.conversations(remarks, questions))
    figures = {}
    if among:
        figures["together"] = asking.figures(await asking.asked_among(remarks, questions, limits, among, kind, meant))
    else:
        alone = [answer for part in parts for answer in await asking.asked(*part, limits, meaning_of=meant)]
        figures["alone"] = asking.figures(alone)
        if len(parts) > 1:
            figures["together"] = asking.figures(await asking.asked(remarks, questions, limits, meaning_of=meant))
    if as_json:
        print_json({"messages": len(remarks) + among, "budget_chars": limits.budget_chars, "max_excerpts": limits.max_excerpts} | figures)
        return
    click.echo(f"{len(remarks) + among:,} messages, {plural(len(parts), 'conversation')}, {limits.budget_chars:,} characters")
    for mode, each in figures.items():
        _print_recalled(TITLES[mode], each)


async def _answer_lines(meaning_of: "MeaningOf") -> None:
    """Messages, then questions, a JSON object each, on stdin; an answer to each question on stdout."""
    from clew.evaluation.questions import line
    from clew.evaluation.remembered import Asked, Remark, Remembered

    async with Remembered.opened(meaning_of) as store:
        waiting = []
        for number, raw in enumerate(sys.stdin, 1):
            asked = line(raw, Asked, f"line {number}")
            if asked.op == "message":
                waiting.append(line(raw, Remark, f"line {number}"))
                continue
            await store.add(waiting)
            waiting.clear()
            answer: dict[str, object] = {"ok": True}
            if asked.op == "recall":
                limits = Recall(budget_chars=asked.budget_chars, max_excerpts=asked.top_n)
                hits = await store.recall(asked.session_id, asked.text, limits)
                answer = {"hits": [{"message_id": hit.message_id, "excerpt": hit.excerpt} for hit in hits]}
            click.echo(json.dumps(answer, ensure_ascii=False))
            sys.stdout.flush()


def _print_recalled(title: str, measured: dict[str, Any]) -> None:
    click.echo("")
    print_table(
        (title, "QUESTIONS", "EVIDENCE", "ALL OF IT", "ANY OF IT", "IN THE FIRST", "SESSIONS", "CHARS"),
        (
            (
                name,
                each["questions"],
                *(f"{each[share] * 100:.1f} %" for share in ("evidence", "whole", "any", "first", "sessions")),
                f"{each['chars']:,.0f}",
            )
            for name, each in measured["recalled"].items()
        ),
    )
    cpu = measured["cpu_ms"]
    took = f"CPU {cpu['p50']:.1f} ms at the median, {cpu['p95']:.1f} ms at the 95th percentile"
    click.echo(f"{took}; {measured['empty'] * 100:.1f} % without an answer")
