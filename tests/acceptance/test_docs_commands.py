"""The commands of README and docs do what they say: each is typed into a shell, page by page, beside a daemon that runs."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from tests import exports
from tests.docs_commands import Line, lines
from tests.integration.test_cli_daemon import ask_for_access, first_line, say_always, started

pytestmark = pytest.mark.e2e

BIN = Path(sys.executable).parent
CONFIG = """
data_dir: {folder}/data
http: {{port: 0, token: "a-token-of-enough-characters"}}
providers: {{none: {{kind: offline}}}}
agent: {{compression: {{keep_recent: 2}}}}
people:
  ada: {{role: owner, identities: ["mqtt:ada"]}}
  bob: {{role: member, identities: ["mqtt:bob"]}}
projects: {{garden: ["mqtt:ada/garden"]}}
transports: {{mqtt: {{enabled: true, port: 1}}}}
schedule: [{{name: briefing, cron: "30 8 * * *", prompt: hi, deliver_to: "mqtt:ada"}}]
"""
OTHERS = {
    "ANTHROPIC_API_KEY": "a model",
    "git": "a clone needs an address",
    "sudo": "changes the machine: tests/acceptance/test_install.py",
    "deploy/install.sh": "tests/acceptance/test_install.py",
    "systemctl": "a service manager",
    "journalctl": "a service manager",
    "podman": "a container engine: tests/unit/test_container.py",
    "docker": "a container engine: tests/unit/test_container.py",
    "cd": "into a checkout",
    "printf": "what docker reads",
    "make": "what CI does",
    "llama-server": "a model",
    "signal-cli": "needs a telephone number",
    "mosquitto_sub": "needs a broker: tests/acceptance/test_main_job.py",
    "mosquitto_pub": "needs a broker: tests/acceptance/test_main_job.py",
    "curl": "tests/integration/test_webhook.py, tests/integration/test_web_api.py",
    "body": "tests/integration/test_webhook.py",
    "now": "tests/integration/test_webhook.py",
    "signature": "tests/integration/test_webhook.py",
    "pip": "tests/integration/test_example_transport.py",
    "mkdir": "tests/integration/test_example_transport.py",
    "echo": "tests/integration/test_example_transport.py",
    "cat": "tests/integration/test_example_transport.py",
    ".venv/bin/python": "tests/integration/test_example_transport.py",
}
"""First words of lines that are not run here, and why, or who runs them."""
ELSEWHERE = {
    "docs/evaluation.md": "tests/integration/test_cli_eval.py",
    "docs/recall.md": "tests/integration/test_cli_eval_recall.py",
    "docs/extending.md": "tests/integration/test_example_transport.py",
    "docs/examples/clew-folder/README.md": "tests/integration/test_example_transport.py",
}
WORDS = {
    "7KQ2XMPN": "AAAAAA",
    "approve mqtt:ada": "approve mqtt:carol",
    "files__write mqtt:ada": "pay mqtt:eve",
    "/backup/": "{folder}/",
}
"""What stands in the place of a word of the docs."""
ENDS = {
    "clew doctor": (0, 1),  # a broker is named and none is there
    "clew session import talk.json": (2,),  # it is here already, and stays as it is
    "clew init": (2,),  # nobody is there to be asked
    "clew access logout 4k2m7q3xw5ab": (3,),  # nobody is logged in
    "clew run": (1,),  # one runs already, and says so
}
"""Exit codes other than 0."""


class World:
    """A daemon, and what the docs take for granted: a session that begins with k3v9, people who knocked, files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "CLEW_CONFIG": str(folder / "clew.yaml"), "HOME": str(folder)}
        (folder / "clew.yaml").write_text(CONFIG.format(folder=folder))
        (folder / "data").mkdir(mode=0o700)
        self.desk = folder / "desk"
        self.desk.mkdir()
        exports.zipped(self.desk / "export.zip", **{"conversations.json": [exports.chatgpt(*exports.BOILER, current="a1")]})
        (self.desk / "questions.txt").write_text("Is it Monday?\nAnd now?\n")

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.desk,
            env=self.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )

    def prepare(self) -> None:
        said = self.type("printf 'one\\nthe backup plan: Sunday\\nthree\\nfour\\n' | clew chat --json")
        self.session = json.loads(said.stdout.splitlines()[0])["session"]
        for command in (f"clew session compact {self.session}", f"printf 'five\\nsix\\nseven\\n' | clew chat --resume {self.session}"):
            done = self.type(command)
            assert done.returncode == 0, done.stderr

    def worded(self, command: str) -> str:
        for word, put in WORDS.items():
            command = command.replace(word, put.format(folder=self.folder))
        return command.replace("k3v9", self.session)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    asyncio.run(ask_for_access(made.folder / "data" / "clew.db"))
    say_always(made.folder / "data" / "clew.db")
    process = started(made.folder / "clew.yaml")
    try:
        assert first_line(process).startswith("clew is ready: ")
        made.prepare()
        yield made
    finally:
        process.terminate()
        process.communicate(timeout=60)


def first_word(line: Line) -> str:
    return line.command.split("=")[0].split()[0]


@pytest.mark.parametrize(
    ("page", "commands"),
    [
        pytest.param(page, list(found), id=page)
        for page, found in groupby((line for line in lines() if first_word(line) not in OTHERS), key=lambda line: line.page)
        if page not in ELSEWHERE
    ],
)
@pytest.mark.timeout(900)
def test_every_command_of_a_page_runs(world: World, page: str, commands: list[Line]) -> None:
    failed = []
    for line in commands:
        done = world.type(world.worded(line.command))
        allowed = next((codes for words, codes in ENDS.items() if line.command.startswith(words)), (0,))
        if done.returncode not in allowed or "Traceback" in done.stderr:
            failed.append(f"{line}\n{done.stdout}{done.stderr}({done.returncode})")
    assert not failed, "\n\n".join(failed)
