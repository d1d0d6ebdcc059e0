"""Claude through the `claude` program that the operator has signed in to, as a bare model: text only, its own tools off.

Nothing of a prompt stands on a command line. The program's credentials are its own: clew neither reads nor handles them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import structlog
from pydantic import Field

from clew.config.settings import Settings as Section
from clew.plugins import Plugin
from clew.providers import Done, Event, Limits, ProviderError, Request, Timeouts, Ttl
from clew.providers.claude_wire import Asked, Reply, asked, parsed
from clew.providers.failures import safe, stalled
from clew.providers.lines import Lines
from clew.providers.sections import Waits

log = structlog.get_logger()

KIND = "claude_cli"
ANSWERS_S = 3.0
"""Seconds in which `claude auth status` must say that somebody is signed in; it takes about 0.6."""
MOST_ALIVE = 2
"""Processes at once; one takes 210 to 310 MB."""
IDLE_S = 300.0
"""Seconds after which a process that is not asked anything is ended. A new one is told the conversation anew and takes about 1 s more."""
GONE_S = 2.0
"""Seconds to wait for the end of a process that has closed its output."""
GRACE_S = 2.0
"""Seconds that a process has to end by itself: it may be writing down a renewed login."""
SYSTEM_FILE = "system.txt"
MAX_COMPLAINT = 2_000
"""Bytes of the end of a process's error output that are kept."""
DEFAULT_LIMITS = Limits(window=200_000, max_output=32_000)
"""Until the first answer tells; every current model has at least these."""

_PASSED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
    }
)
"""What a process sees of clew's environment. No API key, which would silently win over the plan, and no secret of a transport."""
_SET = {
    "CLAUDE_CODE_MAX_RETRIES": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",  # else `@/etc/passwd` in a message puts that file into the prompt, tools or not
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",  # what newer versions call it
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",  # a cut answer is tried again by clew, which takes the cut one back
    "CLAUDE_CODE_DISABLE_REFUSAL_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1",
    "DISABLE_AUTO_COMPACT": "1",  # what the model sees of a thread is clew's to decide
}
_STOPPED_BY_SIGNAL = (128 + signal.SIGINT, 128 + signal.SIGKILL, 128 + signal.SIGTERM)


class Settings(Section):
    """A model of a Claude plan. executable: a name on PATH, or a path. model: a name, or `sonnet`, `opus`, `haiku` for the newest."""

    model: Annotated[str, Field(pattern=r"^[^-\s]\S*$", max_length=200)] = "sonnet"
    executable: Annotated[str, Field(pattern=r"^[^-\x00][^\x00]*$", max_length=4096)] = "claude"
    timeouts: Waits = Waits()


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process, from clew's own."""
    passed = {name: value for name, value in env.items() if name in _PASSED or name.startswith(("LC_", "XDG_"))}
    return {**passed, **_SET}


def command(executable: str, model: str, system_file: Path) -> list[str]:
    """The command line that makes a bare model of the program: no tools, no settings of a folder, no saved sessions."""
    return [
        *(executable, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
        *("--include-partial-messages", "--model", model, "--system-prompt-file", str(system_file), "--tools", ""),
        *("--strict-mcp-config", "--setting-sources", "", "--disable-slash-commands", "--no-session-persistence"),
    ]


class Process:
    """A `claude` that is alive, in an empty private directory. key: names the conversation it holds; empty while it is asked."""

    def __init__(self, process: asyncio.subprocess.Process, home: Path, timeouts: Timeouts) -> None:
        self.key = ""
        self.idle: asyncio.TimerHandle | None = None
        self._last: asyncio.TimerHandle | None = None
        self._process = process
        self._home = home
        self._timeouts = timeouts
        self._complaint = b""
        self._input, output, self._errors = _pipes(process)
        self._lines = Lines(lambda: output.read(2**16), timeouts)
        self.over = asyncio.create_task(self._watch())

    @classmethod
    async def start(cls, executable: str, model: str, system: str, timeouts: Timeouts) -> Process:
        """Raises OSError if the program cannot be run."""
        home = Path(tempfile.mkdtemp(prefix="clew-claude-"))  # 0700
        try:
            (home / "cwd").mkdir()
            system_file = home / SYSTEM_FILE
            system_file.write_text(system, encoding="utf-8")
            process = await asyncio.create_subprocess_exec(
                *command(executable, model, system_file),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=home / "cwd",
                env=environment(os.environ),
                start_new_session=True,
            )
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        return cls(process, home, timeouts)

    async def ask(self, line: bytes, reply: Reply) -> AsyncGenerator[dict[str, Any], None]:
        """The lines of the answer to `line`, until `reply`, which the caller feeds, is complete. Raises ProviderError."""
        self._lines.restart()
        try:
            async with asyncio.timeout(self._timeouts.first_byte):
                self._input.write(line)
                await self._input.drain()
        except TimeoutError:
            raise stalled(self._timeouts.first_byte) from None
        except OSError:
            raise await self._gone(reply) from None
        async for answer in self._lines:
            yield parsed(answer)
            if reply.began and not self._lines.began:
                self._lines.began = True
                (self._home / SYSTEM_FILE).unlink(missing_ok=True)  # it is read once; a crash of clew leaves nothing of it
            if reply.complete:
                return
        raise await self._gone(reply)

    def end(self) -> None:
        """End it soon, with whatever it has started; `over` tells when it has."""
        if self.idle is not None:
            self.idle.cancel()
        if self._last is None:
            self._signal(signal.SIGTERM)
            self._last = asyncio.get_running_loop().call_later(GRACE_S, self._signal, signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def _watch(self) -> None:
        while chunk := await self._errors.read(2**12):
            self._complaint = (self._complaint + chunk)[-MAX_COMPLAINT:]
        await self._process.wait()
        if self._last is not None:
            self._last.cancel()
        shutil.rmtree(self._home, ignore_errors=True)

    async def _gone(self, reply: Reply) -> ProviderError:
        """The error of a process that ended before its answer did."""
        await asyncio.wait([self.over], timeout=GONE_S)
        code = self._process.returncode
        if reply.began or code is None or code < 0 or code in _STOPPED_BY_SIGNAL or not code:
            return ProviderError("cut", f"claude ended before its answer did (exit code {code})")
        complaint = safe(self._complaint.decode("utf-8", "replace"))
        return ProviderError("unavailable", f"claude does not run (exit code {code}): {complaint or 'it says nothing'}")


class ClaudeCli:
    """See `clew.providers.Provider`. `build(name, settings)` makes one for a section of the config.

    A process that has answered is kept for the next message of its conversation: it holds what was said before, so only the new
    message is sent. At most `MOST_ALIVE` live; the one that was idle longest makes room.
    """

    kind = KIND
    cache_ttl: Ttl | None = None
    max_tokens: Literal["auto"] = "auto"
    configured = True

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.model = settings.model
        self._executable = settings.executable
        self._timeouts = Timeouts(settings.timeouts.first_byte, settings.timeouts.between)
        self._limits = DEFAULT_LIMITS
        self._places = asyncio.Semaphore(MOST_ALIVE)
        self._starting = asyncio.Lock()
        self._alive: list[Process] = []
        """The one that was used last stands last."""
        self._watched: set[asyncio.Task[None]] = set()

    async def prepare(self) -> None:
        """Nothing is heavy: a process is started for a conversation."""

    async def answers(self) -> bool:
        """Whether the program is there and somebody is signed in. No model is asked."""
        program = self._program()
        return program is not None and await _signed_in(program)

    async def limits(self) -> Limits:
        return self._limits

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        question = asked(request)
        reply = Reply(self.model)
        async with self._places:
            async with self._starting:
                process, line = await self._process_for(question)
            done: Done | None = None
            try:
                async with aclosing(process.ask(line, reply)) as answers:
                    async for answer in answers:
                        self._note(answer)
                        for passed in reply.feed(answer):
                            yield passed
                done = self._judged(reply)
            except ProviderError as error:
                error.text_delivered = reply.text_delivered
                raise
            finally:
                if done is not None and done.blocks and done.stop == "end" and request.purpose == "reply":
                    self._keep(process, question.key_after(reply.text))
                else:  # whoever left the stream left it in an unknown state
                    self._end(process)
        yield done

    async def close(self) -> None:
        for process in list(self._alive):
            self._end(process)
        await asyncio.gather(*self._watched)

    def _program(self) -> str | None:
        return shutil.which(os.path.expanduser(self._executable))

    def _note(self, answer: dict[str, Any]) -> None:
        limit = answer.get("rate_limit_info")
        if answer.get("type") == "rate_limit_event" and isinstance(limit, dict) and limit.get("status") == "allowed_warning":
            log.warning("provider.limit_near", provider=self.name, limit=str(limit.get("rateLimitType")), resets=limit.get("resetsAt"))

    def _judged(self, reply: Reply) -> Done:
        failed = reply.failed(time.time())
        if failed is not None:
            raise failed
        self._limits = reply.limits() or self._limits
        return reply.done()

    async def _process_for(self, question: Asked) -> tuple[Process, bytes]:
        """The process that holds the conversation, else a new one, and what to tell it."""
        for process in self._alive:
            if process.key == question.key:
                self._take(process)
                return process, question.newest
        program = self._program()
        if program is None:
            raise ProviderError("unavailable", f"there is no program {self._executable}; install Claude Code or set `executable`")
        idle = [process for process in self._alive if process.key]
        if len(self._alive) >= MOST_ALIVE and idle:
            self._end(idle[0])
        try:
            process = await Process.start(program, self.model, question.system, self._timeouts)
        except OSError as error:
            raise ProviderError("unavailable", f"{program} cannot be run: {error.strerror}") from None
        self._alive.append(process)
        self._watched.add(process.over)
        process.over.add_done_callback(self._watched.discard)
        process.over.add_done_callback(lambda _: self._forget(process))
        return process, question.whole

    def _take(self, process: Process) -> None:
        process.key = ""
        if process.idle is not None:
            process.idle.cancel()

    def _keep(self, process: Process, key: str) -> None:
        self._forget(process)
        if process.over.done():
            return
        self._alive.append(process)
        process.key = key
        process.idle = asyncio.get_running_loop().call_later(IDLE_S, self._end, process)

    def _end(self, process: Process) -> None:
        process.end()
        self._forget(process)

    def _forget(self, process: Process) -> None:
        if process in self._alive:
            self._alive.remove(process)


def _pipes(process: asyncio.subprocess.Process) -> tuple[asyncio.StreamWriter, asyncio.StreamReader, asyncio.StreamReader]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("a process is asked through pipes")
    return process.stdin, process.stdout, process.stderr


async def _signed_in(program: str) -> bool:
    """What `claude auth status` says, within `ANSWERS_S`."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(program, "auth", "status"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",  # no project's settings
            env=environment(os.environ),
            start_new_session=True,
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(ANSWERS_S):
            output, _ = await process.communicate()
    except TimeoutError:
        return False
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode == 0 and parsed(output).get("loggedIn") is True


plugin = Plugin(KIND, Settings, ClaudeCli)
