"""A database of each release is brought up to date, and nothing in it is lost or changed."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.databases import SQLITE
from tests.released import FOLDER
from tests.unit.store_rows import opened, turn

RELEASES = sorted(path.name.removesuffix(".db.gz") for path in FOLDER.glob("*.db.gz"))

pytestmark = [pytest.mark.asyncio, SQLITE]


def missing(old: Any, new: Any, at: str = "") -> list[str]:
    """Where `new` does not say what `old` says; it may say more."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [each for key in old for each in missing(old[key], new.get(key), f"{at}.{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [each for n, (one, other) in enumerate(zip(old, new, strict=True)) for each in missing(one, other, f"{at}[{n}]")]
    return [] if old == new else [f"{at}: {old!r} became {new!r}"]


@pytest.mark.parametrize("release", RELEASES)
async def test_all_of_it_is_there_and_it_goes_on(release: str, tmp_path: Path) -> None:  # P2
    (tmp_path / "clew.db").write_bytes(gzip.decompress((FOLDER / f"{release}.db.gz").read_bytes()))
    before = json.loads((FOLDER / f"{release}.json").read_text())
    assert sum(len(each["messages"]) for each in before) > 30
    async with opened(tmp_path) as store:
        assert await store.check() == []
        for session in before:
            after = await store.export_session(session["session"]["id"])
            assert missing(session, after) == []
            assert await store.verify_session(session["session"]["id"]) == []
        await turn(store, "1", "and on it goes", "yes")
        assert await store.check() == []
