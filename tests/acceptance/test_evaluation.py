"""The published measurement of compaction is what the program measures."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.evaluation.key import CATEGORIES
from tests.emulators.summariser import MODES
from tests.evaluation_page import OFFLINE, PAGE, PICTURE, corpus_table, published

CLEW = [sys.executable, "-c", "from clew.cli import main; main()"]
TOLERANCE = 1.0
"""Percentage points by which a share may be below the published one, for what a random id decides."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The whole corpus, measured as a user does it."""
    config = tmp_path_factory.mktemp("evaluation") / "clew.yaml"
    config.write_text(f"data_dir: {config.parent / 'data'}\n")
    args = ["eval", "compaction", "--provider", "offline", "--json", "--config", str(config)]
    done = subprocess.run([*CLEW, *args], capture_output=True, text=True, check=True, timeout=500)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_every_thread_is_compacted_twenty_times(measured: dict[str, Any]) -> None:  # P50
    assert len(measured["threads"]) >= 12
    assert {len(each["compactions"]) for each in measured["threads"]} == {20}
    assert {each["failed"] for each in measured["threads"]} == {0}


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_the_page_promises_no_more_than_is_measured(measured: dict[str, Any]) -> None:  # P50
    shares, faults = published(PAGE.read_text("utf-8"))[OFFLINE]
    final = [measured["final"]["survival"][name]["share"] * 100 for name in (*CATEGORIES, "all")]
    assert all(found >= said - TOLERANCE for found, said in zip(final, shares, strict=True)), (final, shares)
    assert all(found <= said for found, said in zip(measured["faults"].values(), faults, strict=True)), (measured["faults"], faults)


def test_the_page_names_every_thread_and_every_bad_summariser() -> None:
    page = PAGE.read_text("utf-8")
    assert corpus_table() in page
    assert set(published(page)) == {OFFLINE, *MODES}
    assert re.search(rf"images/{PICTURE.name}", page)
    assert Path(PICTURE).read_text("utf-8").startswith("<svg")


def test_the_page_says_how_large_the_corpus_is() -> None:
    rows = [row.strip("| ").split(" | ") for row in corpus_table().splitlines()]
    messages, items = sum(int(row[3]) for row in rows), sum(int(row[4]) for row in rows)
    assert f"{messages:,} messages, {items} things that must survive" in PAGE.read_text("utf-8")
