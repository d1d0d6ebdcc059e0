"""A message, its edits and its deletion come in any order, each as often as a platform likes: the same comes of them."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.store.sql import SqlStore
from clew.transport import Inbound
from tests.databases import BOTH
from tests.unit.store_rows import NOW, accept, inbound, opened

pytestmark = BOTH
MESSAGE = inbound("m", "as written")
EDITS = [
    inbound(f"m/e{number}", f"edit {number}", kind="edit", edits=MESSAGE.external_id, sent_at=NOW + number, direct=True)
    for number in range(3)
]
DELETION = inbound("m/d", "", sender="somebody", kind="delete", edits=MESSAGE.external_id)
arrivals = st.lists(st.sampled_from([*EDITS, DELETION]), max_size=6).flatmap(
    lambda others: st.permutations([MESSAGE, MESSAGE, *others, *others[:2]])
)


async def said(store: SqlStore) -> str | None:
    claimed = await store.claim_turn("me", NOW, 60, frozenset())
    return claimed.items[0].text if claimed and claimed.items else None


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(arrivals, st.booleans())
def test_what_is_answered_is_what_was_said_last(items: list[Inbound], together: bool) -> None:  # P42, BO-075
    async def run(folder: Path) -> None:
        async with opened(folder) as store:
            batches = [items] if together else [[item] for item in items]
            for batch in batches:
                await accept(store, *batch)
            edits = [item for item in EDITS if item in items]
            expected = edits[-1].text if edits else MESSAGE.text
            assert await said(store) == (None if DELETION in items else expected)
            await accept(store, *items)
            assert await store.claim_turn("me", NOW, 60, frozenset()) is None

    with tempfile.TemporaryDirectory() as name:
        asyncio.run(run(Path(name)))
