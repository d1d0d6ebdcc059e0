"""Real servers on loopback for tests. Nothing here imports clew."""

import contextlib
import shutil
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

HOST = "127.0.0.1"
START_DEADLINE_S = 20.0
STOP_DEADLINE_S = 20.0
SAVE_DEADLINE_S = 20.0
MOSQUITTO_MISSING = "mosquitto is not installed (apt-get install mosquitto): tests that need an MQTT broker are skipped"


def free_port() -> int:
    """A TCP port on loopback that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        port: int = sock.getsockname()[1]
        return port


def find_program(name: str) -> str | None:
    """Path of a program, looked up in the sbin folders too: Debian keeps brokers there, off a plain user's PATH."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


class Server(ABC):
    """A program with a folder and a port of its own, which starts in the foreground. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """How it is started."""

    def start(self) -> None:
        """Return once it takes connections. Raises RuntimeError with what it said if it does not."""
        with (self.folder / "out").open("ab") as out:
            self._process = subprocess.Popen(self._command(), stdout=out, stderr=out)
        deadline = time.monotonic() + START_DEADLINE_S
        while not self._accepts():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"{type(self).__name__} did not start:\n{(self.folder / 'out').read_text(errors='replace')}")
            time.sleep(0.01)

    def stop(self) -> None:
        """Ended as a service manager does it; what it has on disk stays."""
        if self._process:
            self._process.terminate()
            self._process.wait(STOP_DEADLINE_S)
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _accepts(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), timeout=1):
            return True
        return False


class Mosquitto:
    """One broker with a folder and a port of its own; sessions and queues survive ``stop``/``kill`` and ``start``.

    ``users`` maps user names to passwords (empty: anonymous access); ``acl`` is an ACL file; ``settings`` are further
    lines of mosquitto.conf.
    """

    host = HOST

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        *,
        users: Mapping[str, str] | None = None,
        acl: Path | None = None,
        settings: str = "",
    ) -> None:
        program = find_program("mosquitto")
        if program is None:
            raise FileNotFoundError(MOSQUITTO_MISSING)
        self._program = program
        self.port = port or free_port()
        self._config = directory / "mosquitto.conf"
        self._database = directory / "mosquitto.db"
        self._log = directory / "mosquitto.log"
        self._process: subprocess.Popen[bytes] | None = None
        lines = [
            f"listener {self.port} {HOST}",
            f"allow_anonymous {'false' if users else 'true'}",
            "persistence true",
            f"persistence_location {directory}/",
            # Changes are written in the broker's next round: a `kill` loses what is milliseconds old at most.
            "autosave_on_changes true",
            "autosave_interval 1",
            "user root",  # only matters to root: stay able to read the folder of the test
            "log_type all",
        ]
        if users:
            lines.append(f"password_file {self._write_passwords(directory, users)}")
        if acl is not None:
            # A copy, readable by its owner alone: newer brokers complain about anything wider.
            lines.append(f"acl_file {shutil.copy(acl, directory / 'acl')}")
        self._config.write_text("\n".join([*lines, settings, ""]))

    @staticmethod
    def _write_passwords(directory: Path, users: Mapping[str, str]) -> Path:
        path = directory / "passwords"
        path.touch(mode=0o600)
        for name, password in users.items():
            subprocess.run(["mosquitto_passwd", "-b", path, name, password], check=True, capture_output=True)
        return path

    @property
    def log(self) -> str:
        """What the broker has logged so far, over all its starts."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def start(self) -> None:
        """Start it and return once it takes connections. Raises RuntimeError with its log if it does not."""
        if self._process is not None:
            raise RuntimeError("mosquitto is already running")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([self._program, "-c", self._config], stdout=log, stderr=log)
        deadline = time.monotonic() + START_DEADLINE_S
        while not self._accepts():
            exited = self._process.poll() is not None
            if exited or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"mosquitto did not start on port {self.port}:\n{self.log}")
            time.sleep(0.005)

    def _accepts(self) -> bool:
        try:
            socket.create_connection((HOST, self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def wait_saved(self, payload: bytes) -> None:
        """Return once a queued or retained payload is on the broker's disk: from then on a ``kill`` does not lose it.

        A broker acknowledges a little earlier than that.
        """
        deadline = time.monotonic() + SAVE_DEADLINE_S
        while not (self._database.exists() and payload in self._database.read_bytes()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"mosquitto has not saved {payload[:60]!r} within {SAVE_DEADLINE_S} s")
            time.sleep(0.005)

    def stop(self) -> None:
        """SIGTERM, and wait until it is gone. Nothing to do when it does not run."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self._process = None

    def kill(self) -> None:
        """SIGKILL (kill -9), and wait until it is gone. Nothing to do when it does not run. See ``wait_saved``."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
