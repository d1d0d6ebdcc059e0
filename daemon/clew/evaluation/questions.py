"""Questions about earlier chats whose answers are known to stand in certain messages, and how many of those recall brings back."""

import json
import math
import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from clew.config import Recall
from clew.errors import UsageError
from clew.evaluation import crowd
from clew.evaluation.remembered import Hit, MeaningOf, Remark, Remembered, nothing

COVERED = 0.8
"""Share of a message's words that must stand in an excerpt for the message to count as brought back …"""
SLACK = 1.25
"""… within a stretch of so many times its length."""
APART = "adversarial"
"""Questions of this category have no answer; they are left out of the total."""
LONGEST_LINE = 4 * 2**20
ALL = "all"

_WORD = re.compile(r"\w+")
Line = TypeVar("Line", bound=BaseModel)


class Question(BaseModel):
    """`text` is asked in a new session; `evidence` are the messages that hold the answer."""

    qid: str
    conv: str = ""
    category: str = ""
    text: str
    evidence: Annotated[list[str], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Answer:
    """How one question went.

    evidence: share of its evidence that was brought back. first: the place of the first excerpt with some of it, from 1, None for
    none. sessions: share of the sessions of its evidence that an excerpt is of. chars: of all excerpts. cpu: seconds of this
    process, all threads together.
    """

    question: Question
    evidence: float
    first: int | None
    sessions: float
    excerpts: int
    chars: int
    cpu: float


def read(folder: Path) -> tuple[list[Remark], list[Question]]:
    """messages.jsonl and questions.jsonl of a folder. Raises UsageError where they are missing or wrong."""
    remarks, questions = lines(folder / "messages.jsonl", Remark), lines(folder / "questions.jsonl", Question)
    if all(question.category == APART for question in questions):
        raise UsageError(f"{folder / 'questions.jsonl'} holds no questions that have an answer.")
    known, conversed = {remark.message_id for remark in remarks}, {remark.conv for remark in remarks}
    if len(known) < len(remarks):
        raise UsageError(f"{folder / 'messages.jsonl'} holds two messages of one id.")
    for question in questions:
        if unknown := set(question.evidence) - known:
            raise UsageError(f"{folder / 'questions.jsonl'}: the evidence {min(unknown)} of {question.qid} is in no message.")
        if question.conv not in conversed:
            raise UsageError(f"{folder / 'questions.jsonl'}: the conversation {question.conv!r} of {question.qid} has no message.")
    return remarks, questions


def lines(path: Path, model: type[Line]) -> list[Line]:
    """The lines of a file of JSON lines. Raises UsageError."""
    if not path.is_file():
        raise UsageError(f"There is no {path}.", hint="docs/recall.md says what the folder has to hold.")
    with path.open("rb") as file:
        return [line(raw, model, f"{path}, line {number}") for number, raw in enumerate(file, 1) if raw.strip()]


def line(raw: bytes | str, model: type[Line], place: str) -> Line:
    """One line as a `model`. Raises UsageError that names the place."""
    if len(raw) > LONGEST_LINE:
        raise UsageError(f"{place}: longer than {LONGEST_LINE:,} bytes.")
    try:
        return model.model_validate(json.loads(raw))
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        raise UsageError(f"{place}: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: not JSON ({error}).") from None


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def covers(sought: Sequence[str], given: Sequence[str]) -> bool:
    """Whether `COVERED` of the words of a message stand in one stretch of an excerpt's words, each as often as it is counted."""
    needed = math.ceil(COVERED * len(sought) - 1e-9)
    if not sought or len(given) < needed:
        return False
    missing, got, stretch = Counter(sought), 0, max(len(sought), math.ceil(SLACK * len(sought)))
    for place, word in enumerate(given):
        missing[word] -= 1
        got += missing[word] >= 0
        if place >= stretch:
            gone = given[place - stretch]
            got -= missing[gone] >= 0
            missing[gone] += 1
        if got >= needed:
            return True
    return False


def judged(question: Question, hits: Sequence[Hit], said: Mapping[str, Remark], cpu: float) -> Answer:
    """How `hits` answer a question."""
    given = [words(hit.excerpt) for hit in hits]
    where = {
        message: next((place for place, excerpt in enumerate(given, 1) if covers(words(said[message].words), excerpt)), None)
        for message in question.evidence
    }
    found = [place for place in where.values() if place is not None]
    sessions = {said[message].session_id for message in question.evidence}
    touched = {said[hit.message_id].session_id for hit in hits if hit.message_id in said} & sessions
    return Answer(
        question,
        evidence=len(found) / len(where),
        first=min(found, default=None),
        sessions=len(touched) / len(sessions),
        excerpts=len(hits),
        chars=sum(len(hit.excerpt) for hit in hits),
        cpu=cpu,
    )


async def asked(
    remarks: Sequence[Remark], questions: Sequence[Question], limits: Recall, around: Iterable[Remark] = (), meaning_of: MeaningOf = nothing
) -> list[Answer]:
    """Ask all of `questions` of one store that holds all of `remarks`, and made-up talk around them."""
    said = {remark.message_id: remark for remark in remarks}
    answers = []
    async with Remembered.opened(meaning_of) as store:
        await store.add(chain(remarks, around))
        for question in questions:
            started = time.process_time()
            hits = await store.recall("", question.text, limits)
            answers.append(judged(question, hits, said, time.process_time() - started))
    return answers


async def asked_among(
    remarks: Sequence[Remark],
    questions: Sequence[Question],
    limits: Recall,
    count: int,
    kind: crowd.Kind,
    meaning_of: MeaningOf = nothing,
) -> list[Answer]:
    """Ask all of `questions` in a store with `count` messages of made-up talk. One half of the conversations is asked among sentences of
    the other half. Raises UsageError where there is one conversation only."""
    if kind == "words":
        return await asked(remarks, questions, limits, crowd.words(remarks, count), meaning_of)
    names = list(dict.fromkeys(remark.conv for remark in remarks))
    if len(names) < 2:
        raise UsageError("Talk made of sentences takes those of other conversations: there is only one.")
    answers: list[Answer] = []
    for half in (names[: len(names) // 2], names[len(names) // 2 :]):
        own = [remark for remark in remarks if remark.conv in half]
        others = [remark for remark in remarks if remark.conv not in half]
        about = [question for question in questions if question.conv in half]
        answers += await asked(own, about, limits, crowd.sentences(own, others, count), meaning_of)
    return answers


def conversations(remarks: Sequence[Remark], questions: Sequence[Question]) -> Iterator[tuple[list[Remark], list[Question]]]:
    """Each conversation with its questions."""
    for conv in dict.fromkeys(remark.conv for remark in remarks):
        about = [question for question in questions if question.conv == conv]
        if about:
            yield [remark for remark in remarks if remark.conv == conv], about


def figures(answers: Sequence[Answer]) -> dict[str, Any]:
    """What `answers` come to, by category and in all; shares from 0 to 1, CPU in milliseconds. One at least is not of `APART`."""
    categories = dict.fromkeys(answer.question.category for answer in answers)
    total = [answer for answer in answers if answer.question.category != APART]
    groups = {ALL: total} | {name: [answer for answer in answers if answer.question.category == name] for name in categories}
    cpu = sorted(answer.cpu * 1000 for answer in answers)
    return {
        "questions": len(answers),
        "recalled": {name: _shares(group) for name, group in groups.items()},
        "empty": fmean(answer.excerpts == 0 for answer in answers),
        "cpu_ms": {"p50": _quantile(cpu, 0.5), "p95": _quantile(cpu, 0.95)},
    }


def _shares(answers: Collection[Answer]) -> dict[str, float]:
    return {
        "questions": len(answers),
        "evidence": fmean(answer.evidence for answer in answers),
        "whole": fmean(answer.evidence == 1 for answer in answers),
        "first": fmean(answer.first == 1 for answer in answers),
        "any": fmean(answer.first is not None for answer in answers),
        "sessions": fmean(answer.sessions for answer in answers),
        "chars": fmean(answer.chars for answer in answers),
    }


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]
