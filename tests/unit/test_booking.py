"""Jobs that people make: names, programs, templates, delays, pauses."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew import programs, scheduled
from clew.booking import checked, free_name, marked_name
from clew.config import Job
from clew.context.templates import fenced, rendered
from clew.errors import UsageError
from clew.timetable import LONGEST_PAUSE, delay, pause, span, words


@given(st.text(max_size=200), st.sets(st.text(max_size=10), max_size=5))
def test_every_prompt_gives_a_free_name(prompt: str, taken: set[str]) -> None:  # P45
    name = free_name(prompt, taken)
    assert name not in taken
    assert 1 <= len(name) <= 64
    assert free_name(prompt, {*taken, name}) != name


@given(st.text(max_size=100), st.text("ab", min_size=4, max_size=4))
def test_a_marked_name_is_free_and_fits(name: str, other: str) -> None:  # P45
    draws = iter((other, "cccc"))
    marked = marked_name(name, {f"{name[:59]}-{other}"}, lambda: next(draws))
    assert marked == f"{name[:59]}-cccc"
    assert len(marked) <= 64


@pytest.mark.parametrize("fields", [{"command": "true"}, {"condition": "true"}, {"prompt": "hi", "command": "true"}])
def test_people_name_no_programs(fields: dict[str, Any]) -> None:  # P45
    with pytest.raises(UsageError, match="in the config alone"):
        checked({"name": "x", "every": "1h", "deliver_to": "web:local", **fields})


@given(st.text(max_size=300), st.text(max_size=300))
def test_foreign_text_cannot_leave_its_fence(before: str, foreign: str) -> None:  # P34, P45
    text = rendered("{{last_reply}} and {{ date }} and {{other}}", {"last_reply": foreign, "date": before})
    assert text.count("⟦/last_reply⟧") == 1 + before.count("⟦/last_reply⟧")
    assert text.endswith(f"⟦/last_reply⟧ and {before} and {{{{other}}}}")
    assert "(nothing)" in fenced("last_reply", " ")


@given(st.text(max_size=20), st.floats(0, 4e9), st.floats(0.001, 1e6))
def test_a_delay_is_the_same_each_time_and_below_its_bound(name: str, instant: float, jitter: float) -> None:  # P45
    assert 0 <= delay(name, instant, jitter) < jitter
    assert delay(name, instant, jitter) == delay(name, instant, jitter)
    assert delay(name, instant, None) == 0.0


def test_pauses_double_up_to_six_hours() -> None:  # P45
    assert [pause(failures) / 60 for failures in range(6)] == [0, 1, 2, 4, 8, 16]
    assert pause(10_000) == LONGEST_PAUSE < 86_400
    assert [span(each) for each in (90.0, 3600.0, 5400.0, 172_800.0, 0.5)] == ["90s", "1h", "90m", "2d", "0.5s"]


def test_a_time_says_its_offset_and_zone() -> None:  # P45, BO-110
    assert scheduled.stamp(1_800_000_000.0, "America/New_York") == "2027-01-15 03:00 -05:00 America/New_York"


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("df -h", ["df", "-h"]),
        ("echo 'two words'", ["echo", "two words"]),
        (("printf", "%s", "$HOME; rm"), ["printf", "%s", "$HOME; rm"]),
        ("df | tail -1", ["/bin/sh", "-c", "df | tail -1"]),
        ("echo $HOME", ["/bin/sh", "-c", "echo $HOME"]),
        ("echo 'open", ["/bin/sh", "-c", "echo 'open"]),
        ("A=1 env", ["/bin/sh", "-c", "A=1 env"]),
        ("exit 1", ["/bin/sh", "-c", "exit 1"]),
        ("test -e /etc", ["test", "-e", "/etc"]),
    ],
)
def test_a_shell_is_used_only_where_it_is_needed(command: Any, argv: list[str]) -> None:  # P45
    assert programs.arguments(command) == argv


@pytest.mark.asyncio
async def test_a_programs_output_is_bounded() -> None:  # P45
    ended = await programs.run((sys.executable, "-c", "print('a' + 'x' * 100_000 + 'z')"), 60.0, {})
    assert ended.status == 0
    assert len(ended.output) < programs.OUTPUT_CHARS + 100
    assert ended.output.startswith("ax")
    assert ended.output.endswith("xz")


@pytest.mark.asyncio
async def test_a_program_that_never_stops_talking_is_ended() -> None:  # P45
    ended = await programs.run("yes", 60.0, {})
    assert len(ended.output) < programs.OUTPUT_CHARS + 100


@pytest.mark.asyncio
async def test_a_program_is_ended_with_all_that_it_started(tmp_path: Path) -> None:  # P45
    child = f"echo $$ > {tmp_path / 'child'}; sleep 600"
    ended = await programs.run(f"sh -c '{child}' & sleep 600", 1.0, {})
    assert ended.status is None
    number = int((tmp_path / "child").read_text())
    async with asyncio.timeout(20):
        while Path(f"/proc/{number}").exists() and "Z" not in Path(f"/proc/{number}/stat").read_text().split()[2]:
            await asyncio.sleep(0.02)


@pytest.mark.asyncio
async def test_a_program_gets_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:  # P19, P45
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    ended = await programs.run("env", 60.0, {"TZ": "UTC"})
    assert "TZ=UTC" in ended.output
    assert "sk-ant" not in ended.output


def test_a_prompt_may_name_what_there_is() -> None:  # P45
    Job.model_validate(
        {"name": "x", "every": "1h", "prompt": "{{date}} {{ time }} {{due}} {{job}} {{last_reply}} {{output}}", "deliver_to": "web:a"}
    )
    with pytest.raises(ValueError, match="names lastreply in double braces, and it may name: date, due, job"):
        Job.model_validate({"name": "x", "every": "1h", "prompt": "{{lastreply}}", "deliver_to": "web:a"})


@pytest.mark.parametrize(
    ("clock", "said"),
    [
        ({"cron": "30 8 * * 1-5"}, "At 08:30 on Monday through Friday"),
        ({"cron": "@daily"}, "At 00:00 every day"),
        ({"cron": "0 9 L * *"}, "At 09:00 on the last day of every month"),
        ({"cron": "0 9 * * fri#2"}, "At 09:00 on the second Friday of the month"),
        ({"every": "90m"}, "every 90m"),
        ({"at": "2027-03-01T08:30"}, "at 2027-03-01T08:30"),
    ],
)
def test_a_clock_is_told_in_words(clock: dict[str, str], said: str) -> None:
    assert words(checked({"name": "x", "prompt": "hi", "deliver_to": "web:local", **clock})) == said
