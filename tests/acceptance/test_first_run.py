"""A newcomer's first minutes: `clew init` on a terminal, and the first message that it ends with."""

import asyncio
import json
import os
import pty
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.acceptance.harness import Daemon
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import say
from tests.emulators.telegram import TOKEN, TelegramEmulator

pytestmark = pytest.mark.asyncio

PROGRAM = str(Path(sys.executable).with_name("clew"))
KEY = "sk-ant-0123456789-of-the-test"
DEADLINE_S = 100.0


class Terminal:
    """A program on a terminal. `text`: what stands there, without line ends' \\r."""

    def __init__(self, process: asyncio.subprocess.Process, handle: int) -> None:
        self.process = process
        self.text = ""
        self._handle = handle
        self._read = 0
        self._grown = asyncio.Event()
        asyncio.get_running_loop().add_reader(handle, self._take)

    def _take(self) -> None:
        try:
            some = os.read(self._handle, 65536)
        except OSError:  # the other end is closed
            some = b""
        if not some:
            asyncio.get_running_loop().remove_reader(self._handle)
        self.text += some.decode("utf-8", "replace").replace("\r", "")
        self._grown.set()

    async def answer(self, question: str, line: str, end: str = "\n") -> None:
        """Wait for a question behind what was answered last, and answer it."""
        async with asyncio.timeout(DEADLINE_S):
            while question not in self.text[self._read :]:
                self._grown.clear()
                await self._grown.wait()
        self._read = len(self.text)
        os.write(self._handle, f"{line}{end}".encode())

    async def ended(self) -> int:
        async with asyncio.timeout(DEADLINE_S):
            return await self.process.wait()


@asynccontextmanager
async def terminal(folder: Path, *args: str, **environment: str) -> AsyncIterator[Terminal]:
    env = {"PATH": os.defpath, "HOME": str(folder), "LANG": "C.UTF-8", "TZ": "UTC", **environment}
    master, slave = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            PROGRAM, *args, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=folder, start_new_session=True, preexec_fn=_own_terminal
        )
        os.close(slave)
        yield Terminal(process, master)
        if process.returncode is None:
            process.kill()
            await process.wait()
    finally:
        asyncio.get_running_loop().remove_reader(master)
        os.close(master)


def _own_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # what a shell runs behind the scenes has it ignored


@pytest.mark.e2e
async def test_from_nothing_to_the_first_reply(tmp_path: Path) -> None:  # P46
    async with AnthropicEmulator(script=lambda body: say("Good morning, Ada."), api_key=KEY) as model, TelegramEmulator() as telegram:
        places = ("--set", f"claude.base_url={model.url}", "--set", f"telegram.base_url={telegram.url}", "--set", "telegram.prefix=!")
        async with terminal(tmp_path, "init", *places, ANTHROPIC_API_KEY=KEY) as screen:
            await screen.answer("Which [1]", "1")
            await screen.answer("The key for Claude", "")
            await screen.answer("Your name here", "ada")
            await screen.answer("Your time zone", "Europe/Berlin")
            await screen.answer("Names or numbers", "telegram")
            await screen.answer("The bot's token", "no token at all")
            await screen.answer("The bot's token", "1:wrong")
            await screen.answer("Your number at Telegram", "11")
            await screen.answer("What now", "2")
            await screen.answer("The bot's token", TOKEN)
            await screen.answer("Your number at Telegram", "11")
            await screen.answer("Write clew.yaml, and 2 secrets to clew.secrets?", "y")
            assert await screen.ended() == 0
            assert "must look like 123456789:AA" in screen.text
            assert "provider claude: claude-sonnet-5-5 answers" in screen.text
            assert "problem  transport telegram: Telegram does not know the token" in screen.text
            assert "ok       transport telegram: nothing is wrong with it" in screen.text
            assert "clew.yaml is written and loads. Next:" in screen.text  # and not a word of what was mended
            assert "Then, on telegram: open the chat with your bot" in screen.text
            assert not any(secret in screen.text for secret in (KEY, TOKEN))
        config, secrets = tmp_path / "clew.yaml", tmp_path / "clew.secrets"
        assert sorted(os.listdir(tmp_path)) == ["clew.secrets", "clew.yaml"]
        assert (secrets / "claude_api_key").read_text() == f"{KEY}\n"
        modes = [stat.S_IMODE(each.stat().st_mode) for each in (config, secrets, *secrets.iterdir())]
        assert modes == [0o600, 0o700, 0o600, 0o600]
        assert not any(secret in config.read_text() for secret in (KEY, TOKEN))
        config.write_text(config.read_text() + f"http: {{port: 0}}\ndata_dir: {tmp_path / 'data'}\nlog: {{format: json}}\n")
        daemon = Daemon(config, {}, transport="telegram")
        await daemon.start()
        try:
            telegram.say("Good morning!")
            await telegram.until(lambda: "Good morning, Ada." in telegram.texts())
        finally:
            await daemon.terminate()


@pytest.mark.parametrize(("end", "code"), [("\x03", 130), ("\x04", 2)])
async def test_who_leaves_in_the_middle_leaves_nothing(tmp_path: Path, end: str, code: int) -> None:
    async with terminal(tmp_path, "init") as screen:
        await screen.answer("Which [", "")
        await screen.answer("Your name here", "ada")
        await screen.answer("Your time zone", "", end="\n")
        await screen.answer("Names or numbers", "webhook")
        await screen.answer("The secret that signs", "", end=end)
        assert await screen.ended() == code
        assert "Traceback" not in screen.text
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
async def test_a_terminal_that_is_closed_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    async with terminal(tmp_path, "init", "--provider", "none") as screen:
        await screen.answer("Your name here", "ada")
        await screen.answer("Your time zone", "", end="")
        assert len(os.listdir(tmp_path)) == 1
        screen.process.send_signal(number)
        assert await screen.ended() == 130
        assert "Traceback" not in screen.text
    assert os.listdir(tmp_path) == []


async def test_what_flags_say_and_cannot_be_is_asked_for(tmp_path: Path) -> None:
    flags = ("--provider", "none", "--owner", "ada", "--timezone", "UTC", "--transport", "webhook", "--set", "webhook.secret=short")
    async with terminal(tmp_path, "init", *flags) as screen:
        await screen.answer("Hosts that replies may be sent to", "127.0.0.1:9000")
        await screen.answer("The secret that signs", "")
        assert "transports.webhook.secret: can be guessed" in screen.text
        await screen.answer("Hosts that replies may be sent to, with commas (such as hooks.example.org; empty: none) [127.0.0.1:9000]", "")
        await screen.answer("Write clew.yaml, and 1 secret to clew.secrets?", "")
        assert await screen.ended() == 0
    assert len((tmp_path / "clew.secrets" / "webhook_secret").read_text()) == 49


async def test_a_config_makes_room_only_when_somebody_says_so(tmp_path: Path) -> None:
    (tmp_path / "clew.yaml").write_text("# mine\n")
    async with terminal(tmp_path, "init") as screen:
        await screen.answer("is there already. Make a new one, and keep that as clew.yaml.old?", "")
        assert await screen.ended() == 2
    assert (tmp_path / "clew.yaml").read_text() == "# mine\n"
    async with terminal(tmp_path, "init") as screen:
        await screen.answer("is there already. Make a new one", "y")
        await screen.answer("Which [", "")
        await screen.answer("Your name here", "")
        await screen.answer("Your time zone", "")
        await screen.answer("Names or numbers", "")
        await screen.answer("Write clew.yaml?", "")
        assert await screen.ended() == 0
    assert (tmp_path / "clew.yaml.old").read_text() == "# mine\n"
    assert "made by `clew init`" in (tmp_path / "clew.yaml").read_text()


@pytest.mark.e2e
async def test_the_doctor_finds_no_problem_afterwards(tmp_path: Path) -> None:
    async with AnthropicEmulator(script=lambda body: say("yes"), api_key=KEY) as model:
        env = {"PATH": os.defpath, "HOME": str(tmp_path), "ANTHROPIC_API_KEY": KEY, "STATE_DIRECTORY": str(tmp_path / "data")}

        async def ran(*args: str) -> tuple[int | None, str]:
            process = await asyncio.create_subprocess_exec(PROGRAM, *args, stdout=asyncio.subprocess.PIPE, env=env, cwd=tmp_path)
            said, _ = await process.communicate()
            return process.returncode, said.decode()

        assert (await ran("init", "--yes", "--set", f"claude.base_url={model.url}"))[0] == 0
        code, said = await ran("doctor", "--fix", "--json")
        found = {f"{each['check']} {each['of']}".strip(): each for each in json.loads(said)}
        assert (code, found["provider claude"]["level"], found["data folder"]["level"]) == (0, "ok", "ok")
        assert "answers (" in found["provider claude"]["text"]
