"""Long work: how far it is, how it ended, and how much of it is remembered."""

from itertools import count

import pytest

from clew.clock import Time
from clew.errors import UsageError
from clew.progress import MOST, Progress


def ticking() -> Progress:
    """Each look at its clock is a second later."""
    seconds = count(1)
    return Progress(Time(wall=lambda: float(next(seconds))))


def test_work_is_told_while_it_runs_and_when_it_is_done() -> None:
    progress = ticking()
    with progress.of("import", "messages", 5000) as work:
        assert work.told == "0 of 5,000 messages"
        work.at(1200)
        [shown] = progress.works
        assert (shown.state, shown.since, shown.ended, shown.told) == ("running", 1.0, None, "1,200 of 5,000 messages")
        work.at(5001, 5001)
    assert (shown.state, shown.ended, shown.told) == ("done", 2.0, "5,001 of 5,001 messages")
    with progress.of("backup", "pages") as work:
        work.at(7)
        assert work.told == "7 pages"
    assert progress.as_values()["backup"] == {
        "unit": "pages",
        "since": 3.0,
        "of": None,
        "done": 7,
        "state": "done",
        "ended": 4.0,
        "why": "",
    }


@pytest.mark.parametrize(
    ("error", "why"),
    [(UsageError("No.", hint="Do that."), "No. Do that."), (OSError("full"), "OSError: full"), (KeyboardInterrupt(), "it was stopped")],
)
def test_work_that_fails_says_why(error: BaseException, why: str) -> None:
    progress = ticking()
    with pytest.raises(type(error)), progress.of("import", "messages"):
        raise error
    [work] = progress.works
    assert (work.state, work.why) == ("failed", why)


def test_of_each_name_the_newest_is_remembered_and_what_runs_is_never_forgotten() -> None:
    progress = ticking()
    with progress.of("running", "things") as running:
        for number in [*range(MOST + 5), 0, 0]:
            with progress.of(f"n{number}", "things"):
                pass
        names = [work.name for work in progress.works]
    assert names[:2] == ["running", "n0"]
    assert len(names) == len(set(names)) == MOST
    assert running.state == "done"
