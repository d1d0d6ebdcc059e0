"""What `clew session import --from` says where it cannot begin."""

from pathlib import Path
from typing import Any

import pytest

from tests import exports
from tests.unit.test_cli import called


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--from", "claude"], 1, "is not the list of conversations of Claude's export"),
        (["--from", "whatsapp", "--timezone", "Mars/Olympus"], 2, "is no time zone"),
        (["--from", "icq"], 2, "icq"),
        (["--dry-run"], 2, "name one with --from"),
        (["--person", "ada"], 2, "name one with --from"),
    ],
)
def test_what_makes_no_sense_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, says: str
) -> None:
    config = exports.written(tmp_path / "clew.yaml", f"data_dir: {tmp_path / 'data'}\nproviders: {{none: {{kind: offline}}}}\n")
    content: Any = {"not": "a list"} if "claude" in arguments else [exports.chatgpt(*exports.BOILER, current="a1")]
    path = exports.written(tmp_path / "conversations.json", content)
    found, _, err = called(capsys, "session", "import", str(path), *arguments, "--config", str(config))
    assert (found, says in err, "Traceback" in err) == (code, True, False), err


def test_a_first_look_needs_no_daemon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = exports.written(tmp_path / "clew.yaml", f"data_dir: {tmp_path / 'data'}\n")
    path = exports.written(tmp_path / "result.json", exports.TELEGRAM_ALL)
    code, out, _ = called(capsys, "session", "import", str(path), "--from", "telegram", "--dry-run", "--config", str(config))
    assert (code, out) == (0, "3 conversations, 5 messages, from 2023-03-01 to 2023-04-02.\n")
    assert not (tmp_path / "data").exists()
