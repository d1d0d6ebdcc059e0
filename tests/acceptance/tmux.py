"""A real terminal for tests: tmux, driven from outside."""

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import join
from typing import Self

DEADLINE_S = 15.0


class Tmux:
    """One terminal that runs a command, on a tmux server of its own. `columns` and `rows`: its size."""

    def __init__(self, folder: Path, command: Sequence[str], env: Mapping[str, str], columns: int = 100, rows: int = 50) -> None:
        number = len([*folder.glob("tmux-*.exit*")])  # a server that ends keeps its socket for a moment
        self._socket = str(folder / f"tmux-{number}.sock")
        self._ended = folder / f"tmux-{number}.exit"
        line = f"{join(command)}; echo $? > {self._ended}.new; mv {self._ended}.new {self._ended}; exec cat"
        size = ["-x", str(columns), "-y", str(rows)]
        self._run("-f", "/dev/null", "new-session", "-d", *size, "sh", "-c", line, env=env)
        self._run("set-option", "-g", "history-limit", "20000")

    def _run(self, *args: str, env: Mapping[str, str] | None = None, check: bool = True) -> str:
        done = subprocess.run(["tmux", "-S", self._socket, *args], capture_output=True, text=True, env=env, check=False)
        if check and done.returncode:
            raise RuntimeError(f"tmux {args[0]}: {done.stderr}")
        return done.stdout

    @property
    def text(self) -> str:
        """What stands in the terminal, the scroll-back too, wrapped lines joined."""
        return self._run("capture-pane", "-p", "-J", "-S", "-")

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names, such as `Enter`, `C-c`, `M-Enter`."""
        self._run("send-keys", *names)

    def type(self, text: str) -> None:
        self._run("send-keys", "-l", text)

    def paste(self, text: str) -> None:
        """Paste as terminals do: bracketed, where the program asked for it."""
        self._run("set-buffer", text)
        self._run("paste-buffer", "-p", "-d")

    def wait(self, wanted: str, times: int = 1) -> str:
        """The terminal's text once it holds `wanted` so many times. Raises TimeoutError with what it holds instead."""
        deadline = time.monotonic() + DEADLINE_S
        while (text := self.text).count(wanted) < times:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{wanted!r} did not appear:\n{text}")
            time.sleep(0.02)
        return text

    def exit_code(self) -> int:
        """The command's exit code, once it ended."""
        deadline = time.monotonic() + DEADLINE_S
        while not self._ended.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"it goes on:\n{self.text}")
            time.sleep(0.02)
        return int(self._ended.read_text())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._run("kill-server", check=False)
