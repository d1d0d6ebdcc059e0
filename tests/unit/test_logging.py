"""How lines of the log read at the other end."""

import json
import os
import subprocess
import sys

import pytest

LINES = """
import logging, structlog
from clew.logging import setup
setup("info", "auto", lambda text: text.replace("hunter2", "***"))
log = structlog.get_logger("clew.test")
log.info("daemon.ready", password="hunter2")
log.warning("outbox.retry")
logging.getLogger("somebody").error("two\\nlines")
"""


def lines(stream: str | None) -> list[str]:
    """What arrives of `LINES`. stream: what $JOURNAL_STREAM says; {} in it is this pipe."""
    reading, writing = os.pipe()
    about = os.fstat(writing)
    env = {key: value for key, value in os.environ.items() if key != "JOURNAL_STREAM"}
    if stream is not None:
        env["JOURNAL_STREAM"] = stream.format(f"{about.st_dev}:{about.st_ino}")
    subprocess.run([sys.executable, "-c", LINES], stderr=writing, env=env, check=True, timeout=60)
    os.close(writing)
    with open(reading) as arrived:
        return arrived.read().splitlines()


def test_the_journal_is_told_how_grave_a_line_is() -> None:
    info, warning, error = lines("{}")
    assert [line[:4] for line in (info, warning, error)] == ["<6>{", "<4>{", "<3>{"]
    assert json.loads(info[3:])["password"] == "***"  # P19
    assert json.loads(error[3:])["event"] == "two\nlines"


@pytest.mark.parametrize("stream", [None, "1:2"])
def test_others_read_plain_json(stream: str | None) -> None:
    assert [json.loads(line)["level"] for line in lines(stream)] == ["info", "warning", "error"]
