"""`clew eval recall`: a folder scored, and the line protocol."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

SAID = {
    "boat": [("Ada", "We bought the old Dufour on Monday."), ("Bob", "Lovely, where does she lie?"), ("Ada", "In Laboe, berth 14.")],
    "bread": [("Ada", "The sourdough needs 14 hours in the fridge."), ("Bob", "And 40 minutes in the oven.")],
    "tyres": [("Cy", "Winter tyres are in the cellar."), ("Dee", "Behind the shelf, I hope.")],
}
CONVERSATIONS = {"boat": "one", "bread": "one", "tyres": "two"}
ASKED = [
    ("q1", "one", "single", "In which berth does the Dufour lie?", ["boat-1", "boat-3"]),
    ("q2", "one", "single", "How long does the sourdough stay in the fridge?", ["bread-1"]),
    ("q3", "two", "single", "Where are the winter tyres?", ["tyres-1"]),
    ("q4", "two", "adversarial", "Where are the summer sandals?", ["tyres-1"]),
]


def messages() -> list[dict[str, Any]]:
    return [
        {
            "conv": CONVERSATIONS[session],
            "session_id": session,
            "message_id": f"{session}-{seq}",
            "seq": seq,
            "role": "user",
            "speaker": speaker,
            "ts": f"2026-03-{day:02}T10:{seq:02}:00Z",
            "text": f"{speaker}: {text}",
        }
        for day, (session, said) in enumerate(SAID.items(), 1)
        for seq, (speaker, text) in enumerate(said, 1)
    ]


def written(folder: Path) -> Path:
    folder.mkdir()
    questions = [dict(zip(("qid", "conv", "category", "text", "evidence"), each, strict=True)) for each in ASKED]
    for name, rows in (("messages", messages()), ("questions", questions)):
        (folder / f"{name}.jsonl").write_text(lines(rows))
    return folder


def lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def called(*args: str, stdin: str = "", cwd: Path, more: str = "") -> tuple[int, str, str]:
    """(exit code, what it printed, what it said on stderr)."""
    config = cwd / "clew.yaml"
    config.write_text(f"data_dir: {cwd / 'data'}\n{more}")
    command = [sys.executable, "-c", "from clew.cli import main; main()", "eval", "recall", *args, "--config", str(config)]
    ended = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=100, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def test_a_folder_is_scored_by_conversation_and_together(tmp_path: Path) -> None:  # P31
    code, out, _ = called(str(written(tmp_path / "own")), "--json", cwd=tmp_path)
    measured = json.loads(out)
    assert code == 0
    assert (measured["messages"], measured["budget_chars"], measured["max_excerpts"]) == (7, 2000, 5)
    for mode in ("alone", "together"):
        assert measured[mode]["questions"] == 4
        assert measured[mode]["recalled"]["all"]["questions"] == 3  # those without an answer are apart
        assert measured[mode]["recalled"]["all"]["evidence"] == 1.0
        assert measured[mode]["cpu_ms"]["p50"] > 0
    assert not (tmp_path / "data").exists()  # nothing is written where clew lives


def test_the_table_says_the_same_and_nothing_of_the_text(tmp_path: Path) -> None:
    code, out, err = called(str(written(tmp_path / "own")), "--excerpts", "0", cwd=tmp_path)
    assert code == 0
    assert "7 messages, 2 conversations, 2,000 characters" in out
    assert [line.split()[:3] for line in out.splitlines() if line.startswith("all ")] == [["all", "3", "0.0"]] * 2
    assert "100.0 % without an answer" in out
    assert "Dufour" not in out + err


def test_the_configured_embedding_model_takes_part(tmp_path: Path) -> None:  # P31
    """The question shares its words with two messages, and its meaning with the later one of them."""
    folder = written(tmp_path / "own")
    said = {"admiral": "The Friday sitter in Laboe was painted.", "children": "The Friday sitter in Laboe looks after our children."}
    remarks = [
        {"conv": "one", "session_id": each, "message_id": each, "seq": 1, "speaker": "Eve", "ts": f"2026-03-1{day}T10:00Z", "text": text}
        for day, (each, text) in enumerate(said.items())
    ]
    asked = {"qid": "q", "conv": "one", "text": "the Friday sitter in Laboe for my kids", "evidence": ["children"]}
    (folder / "messages.jsonl").write_text(lines([*messages(), *remarks]))
    (folder / "questions.jsonl").write_text(lines([asked]))
    first = {}
    for more in ("", "embeddings: {provider: wordllama}"):
        code, out, err = called(str(folder), "--json", "--excerpts", "1", cwd=tmp_path, more=more)
        assert (code, err) == (0, "")
        first[more] = json.loads(out)["alone"]["recalled"]["all"]["first"]
    assert list(first.values()) == [0.0, 1.0]


def test_made_up_talk_is_put_around(tmp_path: Path) -> None:
    code, out, _ = called(str(written(tmp_path / "own")), "--among", "300", "--json", cwd=tmp_path)
    measured = json.loads(out)
    assert code == 0
    assert measured["messages"] == 307
    assert "alone" not in measured
    assert measured["together"]["recalled"]["all"]["questions"] == 3


def test_talk_of_other_conversations_is_put_around(tmp_path: Path) -> None:
    folder = written(tmp_path / "own")
    code, out, _ = called(str(folder), "--among", "300", "--of", "sentences", "--json", cwd=tmp_path)
    measured = json.loads(out)
    assert code == 0
    assert measured["together"]["questions"] == 4
    assert measured["together"]["recalled"]["all"]["evidence"] > 0.5
    (folder / "messages.jsonl").write_text(lines(each | {"conv": "one"} for each in messages()))
    (folder / "questions.jsonl").write_text(lines([{"qid": "q3", "conv": "one", "text": "Tyres?", "evidence": ["tyres-1"]}]))
    code, _, err = called(str(folder), "--among", "300", "--of", "sentences", cwd=tmp_path)
    assert code == 2
    assert "there is only one" in err


def test_questions_are_answered_line_by_line(tmp_path: Path) -> None:  # P31 P32
    ask = {"op": "recall", "session_id": "new", "text": "In which berth does the Dufour lie?", "budget_chars": 400, "top_n": 1}
    asked = [*({"op": "message", **each} for each in messages()), {"op": "prepare"}, ask, {**ask, "session_id": "boat"}]
    code, out, err = called("--jsonl", stdin=lines(asked), cwd=tmp_path)
    assert (code, err) == (0, "")
    ready, found, own = map(json.loads, out.splitlines())
    assert ready == {"ok": True}
    (hit,) = found["hits"]
    assert hit["message_id"] in {"boat-1", "boat-3"}
    assert "> Ada: In Laboe, berth 14." in hit["excerpt"]
    assert len(hit["excerpt"]) <= 400
    assert all(not hit["message_id"].startswith("boat") for hit in own["hits"])  # what is in view is not recalled


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ([], "questions.jsonl holds no questions that have an answer."),
        ([{"qid": "q4", "conv": "two", "category": "adversarial", "text": "Sandals?", "evidence": ["tyres-1"]}], "holds no questions"),
        ([{"qid": "q5", "conv": "three", "text": "Tyres?", "evidence": ["tyres-1"]}], "the conversation 'three' of q5 has no message"),
    ],
    ids=["none", "without an answer", "of no conversation"],
)
def test_a_folder_without_a_question_to_score_is_refused(tmp_path: Path, chosen: list[dict[str, Any]], said: str) -> None:
    folder = written(tmp_path / "own")
    (folder / "questions.jsonl").write_text(lines(chosen))
    code, out, err = called(str(folder), cwd=tmp_path)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("stdin", "said"),
    [
        ("{", "line 1: not JSON"),
        ('{"op": "forget"}', "line 1: op"),
        ('{"op": "message", "session_id": "s", "text": "x"}', "line 1: message_id"),
        (lines([{"op": "message", **messages()[0]}, {"op": "prepare"}, {"op": "message", **messages()[1]}, {"op": "prepare"}]), "boat"),
    ],
)
def test_a_line_that_is_none_is_named(tmp_path: Path, stdin: str, said: str) -> None:
    code, _, err = called("--jsonl", stdin=stdin, cwd=tmp_path)
    assert code == 2
    assert said in err
    assert "Traceback" not in err


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path / "own")
    assert called(cwd=tmp_path)[0] == 2
    assert "messages.jsonl" in called(str(tmp_path / "gone"), cwd=tmp_path)[2]
    (folder / "questions.jsonl").write_text(lines([{"qid": "q", "text": "?", "evidence": ["nowhere"]}]))
    code, _, err = called(str(folder), cwd=tmp_path)
    assert code == 2
    assert "nowhere" in err
