"""Processes under measurement: their CPU time and memory, read from /proc."""

import os
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

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=60)
