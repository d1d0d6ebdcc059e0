"""The newest lines of the log: what is kept of them, how much, and what is found in them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from clew.cli.options import read
from clew.cli.run import _hide
from clew.config import Config
from clew.context.redact import redact
from clew.log_ring import CHARACTERS, LINES, LONGEST, MOST_VALUES, Ring, Wanted, recent
from clew.logging import Redact, setup

SECRET = "sunflower-and-marmalade-22"


@contextmanager
def logging_to_stderr(redactor: Redact) -> Iterator[structlog.typing.FilteringBoundLogger]:
    """The real log, as the daemon sets it up, put back afterwards."""
    root, before = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    setup("info", "json", redactor)
    yield structlog.get_logger()
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**before)


@pytest.fixture
def log() -> Iterator[structlog.typing.FilteringBoundLogger]:
    with logging_to_stderr(partial(redact, known=[SECRET])) as found:
        yield found


def test_what_is_logged_is_kept_as_it_is_written(
    log: structlog.typing.FilteringBoundLogger, capsys: pytest.CaptureFixture[str]
) -> None:  # P19, BO-099
    start = recent.newest
    log.debug("not.wanted")
    log.info("turn.finished", session="abc", calls=2, nested={"key": SECRET}, header=f"Bearer {SECRET}")
    logging.getLogger("library").warning("GET /bot%s/me", SECRET)
    try:
        raise ValueError(SECRET)
    except ValueError:
        log.exception("turn.failed")
    failed, library, finished = recent.lines(Wanted(after=start), 10)
    assert (finished.level, finished.event, finished.value("session"), finished.value("calls")) == ("info", "turn.finished", "abc", "2")
    assert (library.level, library.logger) == ("warning", "library")
    assert "Traceback" in failed.value("exception")
    assert SECRET not in f"{recent.lines(Wanted(), LINES)}{capsys.readouterr().err}"
    assert "[redacted" in library.event


def test_lines_are_found_by_level_event_and_session() -> None:
    ring = Ring()
    for number, (level, event) in enumerate((("info", "turn.started"), ("warning", "tool.failed"), ("error", "turn.failed"), ("odd", "x"))):
        ring.keep({"level": level, "event": event, "session": f"s{number}"})

    def found(**wanted: object) -> list[str]:
        return [line.event for line in ring.lines(Wanted(**wanted), 10)]  # type: ignore[arg-type]

    assert found() == ["x", "turn.failed", "tool.failed", "turn.started"]
    assert found(level="warning") == ["x", "turn.failed", "tool.failed"]
    assert found(event="TURN") == ["turn.failed", "turn.started"]
    assert found(session="s1") == ["tool.failed"]
    assert found(after=2) == ["x", "turn.failed"]
    assert found(before=3) == ["tool.failed", "turn.started"]
    assert [line.number for line in ring.lines(Wanted(), 2)] == [4, 3]


def test_only_the_newest_lines_are_kept_and_no_value_is_longer_than_it_may_be() -> None:
    ring = Ring()
    for number in range(LINES + 5):
        ring.keep({"event": f"e{number}"})
    lines = ring.lines(Wanted(), LINES + 5)
    assert [line.number for line in lines] == list(range(LINES + 5, 5, -1))
    ring.keep({"event": "long", **{f"k{number}": "x" * (LONGEST + 1) for number in range(MOST_VALUES + 1)}})
    [long] = ring.lines(Wanted(event="long"), 1)
    assert len(long.values) == MOST_VALUES
    assert {len(text) for _, text in long.values} == {LONGEST}
    for _ in range(2 * CHARACTERS // long.size):
        ring.keep({"event": "long", **dict(long.values)})
    kept = ring.lines(Wanted(), LINES)
    assert len(kept) == CHARACTERS // long.size
    assert kept[0].number == ring.newest


@given(st.lists(st.integers(min_value=0, max_value=LONGEST * MOST_VALUES), max_size=60))
def test_however_long_the_lines_are_together_they_stay_within_bounds(sizes: list[int]) -> None:
    ring = Ring()
    for size in sizes:
        ring.keep({"event": "x", **{f"k{at:02}": "x" * min(LONGEST, size - at * LONGEST) for at in range(-(-size // LONGEST))}})
    kept = ring.lines(Wanted(), LINES)
    assert sum(line.size for line in kept) <= CHARACTERS
    assert [line.number for line in kept] == list(range(len(sizes), len(sizes) - len(kept), -1))
    assert len(kept) == len(sizes) or sum(sizes) > CHARACTERS // 2


def test_a_secret_that_comes_with_a_reload_is_kept_out_from_then_on(
    tmp_path: Path, log: structlog.typing.FilteringBoundLogger, capsys: pytest.CaptureFixture[str]
) -> None:  # P19, BO-099
    def config(token: str) -> Config:
        (tmp_path / "clew.yaml").write_text(f"http: {{token: {token}}}\nlog: {{format: json}}\n")
        return read(tmp_path / "clew.yaml")

    known: set[str] = set()
    first = config("the-first-token")
    for token in ("the-second-token", "the-third-token"):
        _hide(first, known, config(token))
    log.info("example", of="the-first-token the-second-token the-third-token")
    written = capsys.readouterr().err + str(recent.lines(Wanted(), 1))
    assert written.count("[redacted") >= 6
    assert "-token" not in written
