"""Processes under measurement: their CPU time, memory and open files, read from /proc."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path


class Measured:
    """A child process. Its CPU time counts every thread, in nanoseconds."""

    def __init__(self, *command: str, ready: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )
        if self.process.stdout is None:
            raise RuntimeError("no pipe")
        for line in self.process.stdout:
            if ready in line:
                return
        raise RuntimeError(f"{command} ended before it was ready")

    @property
    def cpu_ns(self) -> int:
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)

    @property
    def cpu_at_start_s(self) -> float:
        """User and system time so far, children waited for included, seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(each) for each in fields[11:15]) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    @property
    def open_files(self) -> list[str]:
        """What its file descriptors stand for: a path, `socket:[…]`, `pipe:[…]`, `anon_inode:…`."""
        found = []
        for each in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                found.append(os.readlink(each))
        return found

    @property
    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))

    def asked(self, number: signal.Signals) -> str:
        """The line that it says on stdout when it is sent a signal."""
        if self.process.stdout is None:
            raise RuntimeError("no pipe")
        self.process.send_signal(number)
        return self.process.stdout.readline().strip()

    def stop(self) -> None:
        self.process.terminate()
        with self.process:
            self.process.wait(timeout=60)
