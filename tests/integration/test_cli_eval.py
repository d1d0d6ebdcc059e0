"""`clew eval compaction`: what is measured, printed, written and kept to itself."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.messages import Text
from tests.integration.engine import engine

SECRET = "the spare key lies under the third flower pot"


def called(*args: str, stdin: str = "") -> tuple[int, str, str]:
    """(exit code, what it printed, what it said on stderr). A process of its own: the program sets up logging for good."""
    command = [sys.executable, "-c", "from clew.cli import main; main()", "eval", "compaction", *args]
    ended = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=100, check=False)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "clew.yaml"
    path.write_text(f"data_dir: {tmp_path / 'data'}\n")
    return str(path)


def lines(count: int) -> str:
    """A transcript of so many exchanges."""
    said = [each for n in range(count) for each in (("user", f"Note {n}: {SECRET}, never tell."), ("assistant", f"Kept, {n}."))]
    return "\n".join(json.dumps({"role": role, "text": text}) for role, text in said)


def test_a_thread_of_the_corpus_is_compacted_and_measured(config: str, tmp_path: Path) -> None:  # P50
    picture = tmp_path / "drift.svg"
    args = ("--thread", "voyage", "--provider", "offline", "--config", config, "--plot", str(picture))
    code, out, _ = called(*args, "--json")
    measured = json.loads(out)
    assert code == 0
    assert (measured["provider"], measured["model"], measured["summary_tokens"]) == ("offline", "offline", 1500)
    assert [each["thread"] for each in measured["threads"]] == ["voyage"]
    assert len(measured["threads"][0]["compactions"]) == 20
    assert set(measured["passed"]) == {str(count) for count in range(1, 21)}
    assert measured["passed"]["1"]["survival"]["all"]["of"] > 20
    assert "<svg" in picture.read_text()
    assert not (tmp_path / "data").exists()  # nothing is written where clew lives


def test_the_table_says_the_same(config: str) -> None:
    code, out, _ = called("--thread", "voyage", "--compactions", "2", "--config", config)
    assert code == 0
    assert re.search(r"^SURVIVED +AFTER 1 +AFTER 5 +AFTER 20 +IN THE END$", out, re.MULTILINE)
    assert re.search(r"^voyage +fr +334 +2 ", out, re.MULTILINE)


@pytest.mark.parametrize("as_json", [False, True])
def test_nothing_of_the_text_is_printed_unless_asked_for(config: str, tmp_path: Path, as_json: bool) -> None:  # P50
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine.jsonl").write_text(lines(30))
    flags = ["--json"] if as_json else []
    code, out, err = called(str(own), "--compactions", "3", "--config", config, "--provider", "offline", *flags)
    assert code == 0
    assert "mine" in out
    assert not [word for word in SECRET.split() if len(word) > 4 and word in out + err]
    code, out, _ = called(str(own), "--compactions", "3", "--config", config, "--provider", "offline", "--show", *flags)
    assert code == 0
    assert not as_json or SECRET in json.loads(out)["texts"][0]["summary"]


def test_a_transcript_comes_from_stdin(config: str) -> None:
    code, out, _ = called("--json", "--compactions", "2", "--config", config, "--jsonl", stdin=lines(20))
    assert code == 0
    assert json.loads(out)["threads"][0]["messages"] == 40


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--thread", "nope"], "no thread 'nope'"),
        (["--provider", "nope"], "no provider 'nope'"),
        (["nowhere"], "is no folder"),
        (["nowhere", "--session", "k3v9"], "exclude each other"),
    ],
)
def test_wrong_usage_is_2_and_says_what_there_is(config: str, args: list[str], said: str) -> None:
    code, out, err = called(*args, "--config", config)
    assert (code, out) == (2, "")
    assert said in err


def test_a_summariser_that_is_not_there_is_said_at_once(config: str) -> None:
    with Path(config).open("a") as file:
        file.write("providers:\n  gone: {kind: openai, base_url: 'http://127.0.0.1:9/v1', model: any}\n")
    code, out, err = called("--provider", "gone", "--config", config)
    assert (code, out) == (1, "")
    assert err == "clew: the provider gone does not answer.\n`clew doctor` says more.\n"


@pytest.mark.asyncio
async def test_a_session_of_ones_own_is_measured_and_left_alone(tmp_path: Path) -> None:
    said = [(role, (Text(f"Invoice R-20{n:02}: {SECRET}, never pay it twice."),)) for n in range(12) for role in ("user", "assistant")]
    async with engine(tmp_path) as world, world.running():
        session = await world.seed(*said)
    path = tmp_path / "clew.yaml"
    path.write_text(f"data_dir: {tmp_path}\n")
    before = (tmp_path / "clew.db").read_bytes()
    code, out, _ = called("--session", session[:6], "--provider", "offline", "--compactions", "2", "--config", str(path), "--json")
    assert code == 0
    measured: dict[str, Any] = json.loads(out)
    assert measured["threads"][0]["thread"] == session
    assert measured["final"]["survival"]["identifier"]["of"] > 0
    assert SECRET not in out
    assert (tmp_path / "clew.db").read_bytes() == before
