"""WordLlama's vectors, by the real package."""

import logging
import subprocess
import sys

import pytest

from clew.context.vectors import similarities
from clew.embedders import BATCH
from clew.embedders.wordllama import WordLlama
from clew.errors import ConfigError

HEAVY = ("wordllama", "numpy", "tokenizers", "sqlite_vec")


@pytest.mark.asyncio
async def test_texts_of_one_meaning_lie_near_each_other() -> None:  # P41
    embedder = WordLlama()
    kids, children, engine, empty = await embedder.embed(["my kids", "her children", "the engine of the boat", " "])
    near, far, none = similarities(kids, [children, engine, empty])
    assert near > far + 0.2
    assert (none, empty) == (0.0, b"")
    assert len(kids) == 256
    await embedder.close()


@pytest.mark.asyncio
async def test_a_text_has_one_vector_whatever_stands_beside_it() -> None:
    embedder = WordLlama()
    [alone] = await embedder.embed(["tea"])
    assert (await embedder.embed(["tea", "a much longer text about the harbour of Laboe and its boats"]))[0] == alone


@pytest.mark.asyncio
async def test_no_more_texts_than_a_call_may_have() -> None:
    with pytest.raises(ValueError, match=str(BATCH)):
        await WordLlama().embed(["x"] * (BATCH + 1))


@pytest.mark.asyncio
async def test_loading_it_leaves_the_log_as_it_was() -> None:
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    await WordLlama().prepare()
    assert (root.level, list(root.handlers)) == before


def test_its_version_names_the_package_and_the_weights() -> None:
    assert WordLlama().version.startswith("wordllama-0.4")


@pytest.mark.asyncio
async def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(ConfigError, match=r"wordllama is not there") as caught:
        await WordLlama().prepare()
    assert "clew[vectors]" in caught.value.hint


def test_nothing_heavy_is_imported_with_the_embedders() -> None:
    code = f"import sys, clew.embedders.wordllama, clew.embedders.endpoint; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
