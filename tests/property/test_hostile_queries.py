"""Any text is a question: asked of a real store, it is answered without an error, and what comes back is a whole block.

CLEW_FUZZ_EXAMPLES: questions in all, 1,000 by default; `make soak` asks 100,000.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from datetime import UTC, date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from clew.context.query import query
from clew.context.recall import appendix, excerpts
from clew.context.repeats import without_repeats
from clew.recall import DEPTH
from clew.store import Scope, search
from clew.store.connection import Connection
from tests.databases import BOTH, databases
from tests.unit.store_rows import opened, turn

pytestmark = BOTH
EXAMPLES = int(os.environ.get("CLEW_FUZZ_EXAMPLES", "1000"))
CORPUS = [json.loads(line) for line in (Path(__file__).parents[1] / "corpus" / "hostile.txt").read_text("utf-8").splitlines()]
SAID = [
    "I don't drink coffee", "C++ and kube_proxy at /etc/nginx/nginx.conf:12", "明天下午三点在图书馆开会", "회의실은 3층에 있습니다",
    "サンプル会議の議事録", "Der Zahnarzttermin ist am 4. Dezember", "le café est fermé", "كتاب في المكتبة", "👩\u200d👩\u200d👧 🎉 party",
    "AND OR NOT NEAR",    "a" * 2000, "scope:x text:* day:none", "the boat lies at pier nine", "12:30 on 2026-12-04",
]  # fmt: skip
SYNTAX = ["AND", "OR", "NOT", "NEAR(", "day:", "text:*", "*", "^", '"', "''", "{", "}", "(", ")", "+", "-", "?", "\x00", "�"]
PLAIN = [
    "boat",
    "don't",
    "C++",
    "图书馆",
    "회의실",
    "2023年6月",
    "yesterday",
    "last",
    "next Friday",
    "a few weeks ago",
    "in 900 years",
    "9999-12-31",
]
WORDS = st.sampled_from([*SYNTAX, *PLAIN, *CORPUS])
QUESTIONS = st.one_of(
    st.lists(WORDS, max_size=30).map(" ".join), st.lists(WORDS, max_size=12).map("".join), st.text(max_size=120), st.sampled_from(SAID)
)


@pytest.fixture
def store(database: str, tmp_path: Path) -> Iterator[Connection]:
    async def fill() -> None:
        async with opened(tmp_path) as filled:
            for number, text in enumerate(SAID):
                await turn(filled, f"{number}", text, "noted", "ada")
                await turn(filled, f"g{number}", text, "noted", "team", sender="bob", direct=False)

    asyncio.run(fill())
    with databases.connected(tmp_path) as db:
        yield db


DAYS = st.sampled_from([date(2026, 3, 18), date.min, date.max])


@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(QUESTIONS, st.lists(QUESTIONS, max_size=1), st.booleans(), DAYS, st.integers(0, 2))
def test_any_question_is_answered(
    store: Connection, text: str, previous: list[str], sought: bool, today: date, whose: int
) -> None:  # P35, BO-034
    scope = (Scope(None), search.scope_of_chat(store, "desk:team"), search.scope_of_person(store, "ada"))[whose]
    found = search.search(store, scope, lambda words, total: query(text, previous, ["Ada"], words, total, today, sought=sought), DEPTH)
    assert (found.query is None) <= (found.scored == ())
    if found.query is None:
        return
    assert [each.score for each in found.scored] == sorted((each.score for each in found.scored), reverse=True)
    new = without_repeats(found.query, found.scored, [text, *previous])
    block = appendix(excerpts(found.query, new, max_excerpts=5, budget_chars=2000, zone=UTC), budget_chars=2000)
    assert len(block) <= 2000
    assert block.count("⟦") == block.count("⟧") in (0, 2)
