"""`clew chat` in a real terminal, as a person uses it."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from tests.acceptance.tmux import Tmux
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import echo, last_user_text, say
from tests.emulators.server import Stall

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed (apt-get install tmux)"),
]

CLEW = [sys.executable, "-c", "from clew.cli import main; main()"]
ENV = {key: value for key, value in os.environ.items() if key in ("PATH", "PYTHONPATH", "HOME")} | {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
KEYS = "Ctrl-D: end"
PASTED = "\n".join(f"line {number} 第{number}行 はい" for number in range(1, 31))


@pytest_asyncio.fixture
async def model() -> AsyncIterator[OpenAIEmulator]:
    async with OpenAIEmulator(script=echo) as server:
        yield server


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config that knows only the offline provider."""
    return written(tmp_path, "{none: {kind: offline}}")


def written(folder: Path, providers: str) -> Path:
    path = folder / "clew.yaml"
    path.write_text(f"data_dir: {folder / 'data'}\nhttp: {{port: 0}}\nproviders: {providers}\n")
    return path


def with_model(folder: Path, model: OpenAIEmulator) -> Path:
    return written(folder, f"{{local: {{kind: openai, base_url: '{model.base_url}', model: any, context_window: 32768}}}}")


def chat(config: Path, *args: str) -> Tmux:
    return Tmux(config.parent, [*CLEW, "chat", "--config", str(config), *args], {**ENV, "TERM": "xterm-256color"})


def clew(config: Path, *args: str) -> str:
    command = [*CLEW, *args, "--config", str(config)]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=ENV).stdout


@contextmanager
def daemon(config: Path) -> Iterator[subprocess.Popen[str]]:
    """A daemon that is ready."""
    command = [*CLEW, "run", "--config", str(config)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)
    assert process.stdout
    assert process.stdout.readline().startswith("clew is ready: http://127.0.0.1:")
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0


def said(config: Path, role: str = "user") -> list[str]:
    """What the messages of the newest session say."""
    session = json.loads(clew(config, "session", "list", "--json"))[0]["id"]
    messages = json.loads(clew(config, "session", "show", session, "--json"))["messages"]
    return [each["text"] for each in messages if each["role"] == role]


@pytest.mark.parametrize("running", [True, False], ids=["daemon", "alone"])
def test_a_talk_with_commands_that_goes_on_later(config: Path, running: bool) -> None:  # P3, P24
    with daemon(config) if running else open(os.devnull):
        with chat(config, "--title", "Garden talk") as screen:
            screen.wait(KEYS)
            assert "· Garden talk" in screen.text
            screen.type("Hello there")
            screen.keys("Enter")
            screen.wait("No model is configured")
            screen.type("/status")
            screen.keys("Enter")
            screen.wait("In view: 2 messages")
            screen.type("/compact")
            screen.keys("Enter")
            screen.wait("othing")
            screen.keys("C-d")
            assert screen.exit_code() == 0
        with chat(config, "--continue") as screen:
            shown = screen.wait("owner:")
            assert "· Garden talk" in shown
            assert "Hello there" in shown
            assert "No model is configured" in shown
            screen.wait("\n>")
            screen.keys("C-d")
            assert screen.exit_code() == 0
    (session,) = json.loads(clew(config, "session", "list", "--json"))
    assert (session["title"], session["messages"]) == ("Garden talk", 2)


@pytest.mark.asyncio
async def test_a_paste_during_a_turn_is_one_message_and_ctrl_c_stops_the_turn_only(tmp_path: Path, model: OpenAIEmulator) -> None:
    """BO-123"""
    stall = Stall(after=2)
    model.script = lambda body: stall if last_user_text(body).endswith("Begin") else say("quite done")
    config = with_model(tmp_path, model)

    def act(screen: Tmux) -> None:
        screen.paste(PASTED)
        screen.wait("line 30 第30行 はい")
        screen.keys("C-c")
        screen.wait("Stopped.")
        assert "quite done" not in screen.wait("line 30 第30行 はい")  # what was pasted is still there to be sent
        screen.keys("Enter")
        screen.wait("quite done")
        screen.keys("C-d")
        assert screen.exit_code() == 0

    with chat(config) as screen:
        await asyncio.to_thread(screen.wait, KEYS)
        screen.type("Begin")
        screen.keys("Enter")
        await asyncio.wait_for(stall.reached.wait(), 30)
        await asyncio.to_thread(act, screen)
    assert said(config) == ["Begin", PASTED]


@pytest.mark.asyncio
async def test_a_reply_is_shown_while_it_is_written(tmp_path: Path, model: OpenAIEmulator) -> None:
    stall = Stall(after=2)
    model.script = lambda body: stall
    with chat(with_model(tmp_path, model)) as screen:
        await asyncio.to_thread(screen.wait, KEYS)
        screen.type("Begin")
        screen.keys("Enter")
        await asyncio.wait_for(stall.reached.wait(), 30)
        assert "a reply that is cut" not in await asyncio.to_thread(screen.wait, "a re")
        stall.until.set()
        assert (await asyncio.to_thread(screen.wait, "a reply that is cut")).count("a reply that is cut") == 1
        screen.keys("C-d")
        assert await asyncio.to_thread(screen.exit_code) == 0


@pytest.mark.asyncio
async def test_what_the_model_says_cannot_drive_the_terminal(tmp_path: Path, model: OpenAIEmulator) -> None:
    model.script = lambda body: say("before \x1b]0;owned\x07\x1b[2J\x1b[31mafter\x1b[?1049h \rend")
    with chat(with_model(tmp_path, model)) as screen:
        await asyncio.to_thread(screen.wait, KEYS)
        screen.type("Begin")
        screen.keys("Enter")
        shown = await asyncio.to_thread(screen.wait, "before after end")
        assert KEYS in shown  # nothing was cleared
        screen.keys("C-d")
        assert await asyncio.to_thread(screen.exit_code) == 0


def test_keys_of_the_prompt(config: Path) -> None:
    with chat(config) as screen:
        screen.wait(KEYS)
        screen.wait("\n>")
        screen.type("never sent")
        screen.keys("C-c")  # at rest: clears the input
        screen.type("first")
        screen.keys("M-Enter")
        screen.type("second")
        screen.keys("Enter")
        screen.wait("No model is configured")
        screen.type("kept for later")
        screen.keys("C-d")
        assert screen.exit_code() == 0
    assert said(config) == ["first\nsecond"]
    history = config.parent / "data" / "terminal_history"
    assert "+kept for later" in history.read_text().splitlines()
    assert history.stat().st_mode & 0o777 == 0o600


def test_the_end_of_a_chat_names_the_session_that_goes_on(config: Path) -> None:
    with chat(config) as screen:
        screen.wait("\n>")
        for text, answer in (("the first one", "No model"), ("/new", "A new conversation begins"), ("the second one", "No model")):
            screen.type(text)
            screen.keys("Enter")
            screen.wait(answer)
            screen.wait("\n>")
        screen.keys("C-d")
        assert screen.exit_code() == 0
        shown = screen.text
    newest, first = json.loads(clew(config, "session", "list", "--json"))
    assert f"session {newest['id']}; `clew chat --continue` goes on with it" in shown
    assert f"session {first['id']};" not in shown


def test_what_was_sent_is_stored_however_fast_one_leaves(config: Path) -> None:
    with chat(config) as screen:
        screen.wait(KEYS)
        screen.wait("\n>")
        screen.type("in a hurry")
        screen.keys("Enter", "C-d")
        assert screen.exit_code() == 0
    with chat(config, "--continue") as screen:
        screen.wait("\n>")
        screen.wait("No model is configured")  # if there was no time for the reply, it comes now
        screen.keys("C-d")
        assert screen.exit_code() == 0
    assert said(config) == ["in a hurry"]


def test_a_chat_outlives_its_daemon(config: Path) -> None:
    with ExitStack() as stack:
        with daemon(config):
            screen = stack.enter_context(chat(config))
            screen.wait(KEYS)
            screen.type("before")
            screen.keys("Enter")
            screen.wait("No model is configured")
        screen.wait("the daemon went away")
        stack.enter_context(daemon(config))
        screen.wait("the daemon is back")
        screen.type("after")
        screen.keys("Enter")
        screen.wait("No model is configured", 2)
        screen.keys("C-d")
        assert screen.exit_code() == 0
    assert said(config) == ["before", "after"]
