"""Whatever is noted, in whatever order: nothing fails, the index agrees, and undoing goes all the way back."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.context.notes import Notes
from clew.store.notes import (
    By,
    DropAll,
    DropEntity,
    DropFact,
    DropPreference,
    DropRelation,
    Edit,
    PutEntity,
    PutFact,
    PutPreference,
    PutRelation,
    Where,
)
from tests.databases import BOTH
from tests.unit.store_rows import NOW, opened

pytestmark = BOTH
ADA = Where(person="ada")
HAND = By(hand=True)

names = st.one_of(st.sampled_from(["Ana", "ana ", "Bo", "C", "C++"]), st.text(max_size=8))
said = st.one_of(
    st.sampled_from(["lives in Lyon", "Lives in Lyon.", "moved to Oslo", "likes tea", "does not like tea", "age: 5", "age: 6"]),
    st.text(max_size=20),
)
kinds = st.one_of(st.sampled_from(["knows", "lives in", "lives_in", "works at"]), st.text(max_size=8))
expiries = st.one_of(st.none(), st.floats(NOW - 50, NOW + 50))
edits = st.one_of(
    st.builds(PutEntity, names, st.text(max_size=5)),
    st.builds(PutFact, names, said, expiries, st.lists(said, max_size=2).map(tuple)),
    st.builds(PutFact, names, said, expiries, st.just(())),
    st.builds(PutRelation, names, names, kinds),
    st.builds(PutPreference, names, said),
    st.builds(DropEntity, names),
    st.builds(DropFact, names, said),
    st.builds(DropRelation, names, names, kinds),
    st.builds(DropPreference, names),
    st.builds(DropAll),
)
steps = st.lists(st.tuples(st.lists(edits, min_size=1, max_size=4), st.floats(-100, 100)), max_size=10)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.text(max_size=10))
def test_any_history_can_be_undone_to_its_beginning(
    happened: list[tuple[list[Edit], float]], query: str
) -> None:  # P35, P39, P40, BO-104, BO-108
    async def run() -> None:
        with tempfile.TemporaryDirectory() as name:
            async with opened(Path(name)) as store:
                for number, (change, said_at) in enumerate(happened):
                    by = By("ada", at=NOW + said_at)
                    done = await store.notes.change(ADA, "user", change, by, NOW + number)
                    assert len(done) == len(change)
                    assert all(each.why for each in done if each.state == "refused")
                    known = await store.notes.listing(ADA, "user", NOW)
                    await store.notes.change(ADA, "user", change[-1:], by, NOW + number)
                    assert await store.notes.listing(ADA, "user", NOW) == known, "twice is once"
                    await store.notes.search(ADA, query, 10, NOW)
                assert await store.check() == []
                for each in await store.notes.changes(ADA, "user", 100):
                    await store.notes.undo(ADA, "user", each.number, HAND, NOW)
                assert await store.notes.listing(ADA, "user", NOW) == Notes()
                assert await store.check() == []

    asyncio.run(run())
