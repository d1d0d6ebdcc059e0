"""A small set of documents with questions, each with the place that answers it; what is found of them, by words and by meaning too."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.context import documents
from clew.context.chunks import chunks
from clew.context.query import query
from clew.context.vectors import similarities
from clew.documents.markdown import markdown
from clew.embedders import BATCH, Embedder
from clew.passages import DEPTH, Nearest, Passages
from clew.store.documents import NewDocument
from clew.store.notes import Where
from clew.store.sql import SqlStore
from tests.unit.store_rows import NOW

FOLDER = Path(__file__).parent / "corpus" / "documents"
ADA = Where(person="ada")


@dataclass(frozen=True, slots=True)
class Question:
    """place: `file/heading` that answers it, empty for small talk and what no document answers."""

    ask: str
    place: str


@dataclass(frozen=True, slots=True)
class Score:
    """Shares of the questions: whose place is the first that a search finds, among the first three, and shown unasked in a prompt; and of
    those that no document answers the share that shows nothing."""

    first: float
    third: float
    shown: float
    silent: float


def questions() -> list[Question]:
    return [Question(**json.loads(line)) for line in (FOLDER / "questions.jsonl").read_text("utf-8").splitlines()]


async def fill(store: SqlStore) -> None:
    for path in sorted(FOLDER.glob("*.md")):
        contents = markdown(path.read_text("utf-8"))
        new = NewDocument(str(path), path.name, contents.title, "markdown", path.name, 1)
        await store.documents.put("user:ada", new, chunks(contents.sections), NOW)


async def by_meaning(store: SqlStore, embedder: Embedder) -> Nearest:
    """The ranking by an embedder: every passage compared with the question."""
    every = await store.documents.look_up(None, ["*"], 1)
    ids = list(range(1, every.total + 1))
    passages = (await store.documents.look_up(None, [], len(ids), nearest=ids)).passages
    told = [f"{passage.name} {passage.place}\n{passage.text}" for passage in passages.values()]
    vectors = [vector for start in range(0, len(told), BATCH) for vector in await embedder.embed(told[start : start + BATCH])]

    async def nearest(where: Where | None, text: str, limit: int) -> Sequence[int]:
        [asked] = await embedder.embed([text])
        alike = dict(zip(passages, similarities(asked, vectors), strict=True))
        return sorted(alike, key=lambda each: -alike[each])[:limit]

    return nearest


async def score(store: SqlStore, nearest: Nearest | None = None) -> Score:
    engine = Passages(store, 2000, nearest)
    asked = questions()
    ranks, shown, silent = [], 0, 0
    for each in asked:
        places = [f"{found.passage.name}/{found.passage.place.rpartition(' › ')[2]}" for found in await engine.search(ADA, each.ask, DEPTH)]
        _, relevant, _ = await engine._found(ADA, query(each.ask), each.ask, ())
        quoted = [f"{found.passage.name}/{found.passage.place.rpartition(' › ')[2]}" for found in documents.chosen(relevant)]
        if each.place:
            ranks.append(places.index(each.place) if each.place in places else DEPTH)
            shown += each.place in quoted
        else:
            silent += not quoted
    return Score(
        sum(rank == 0 for rank in ranks) / len(ranks),
        sum(rank < 3 for rank in ranks) / len(ranks),
        shown / len(ranks),
        silent / (len(asked) - len(ranks)),
    )
