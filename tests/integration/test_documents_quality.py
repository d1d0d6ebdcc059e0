"""How well passages are found on a labelled set of our own: by words alone, and with a ranking by meaning beside it."""

from pathlib import Path

import pytest

from clew.embedders.wordllama import WordLlama
from tests.databases import BOTH, databases
from tests.documents_corpus import by_meaning, fill, questions, score
from tests.unit.store_rows import opened


@BOTH
@pytest.mark.asyncio
async def test_two_rankings_find_more_than_words_alone(tmp_path: Path) -> None:  # P41
    asked = questions()
    assert (len(asked), sum(not each.place for each in asked)) == (108, 40)
    async with opened(tmp_path) as store:
        await fill(store)
        words = await score(store)
        both = await score(store, await by_meaning(store, WordLlama()))
    print(f"words {words}\nboth  {both}")
    assert words.first >= (0.73 if databases.kind == "sqlite" else 0.70)
    assert words.third >= 0.82
    assert both.first >= words.first + 0.05
    assert both.third >= words.third + 0.05
    assert words.shown >= 0.55
    assert both.shown >= words.shown + 0.1
    assert words.silent == 1.0
    assert both.silent >= 0.95
