"""A real XMPP server on loopback for tests, with an archive and rooms. Nothing here imports clew."""

import contextlib
import grp
import os
import pwd
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

from tests.servers import HOST, START_DEADLINE_S, STOP_DEADLINE_S, find_program, free_port

PASSWORD = "the-password-of-the-tests"
MISSING = "prosody is not installed (apt-get install prosody): tests that need an XMPP server are skipped"

CONFIG = """
pidfile = "{folder}/prosody.pid"
data_path = "{folder}/data"
interfaces = {{ "{host}" }}
c2s_ports = {{ {port} }}
http_ports = {{}}
https_ports = {{}}
modules_enabled = {{ "roster"; "saslauth"; "disco"; "ping"; "mam"; "offline"; "carbons"; "presence"; "message"; "iq" }}
modules_disabled = {{ "s2s"; "tls"; "http" }}
allow_unencrypted_plain_auth = true
c2s_require_encryption = false
authentication = "internal_hashed"
default_archive_policy = true
archive_expires_after = "1w"
log = {{ info = "{folder}/log" }}
VirtualHost "localhost"
Component "rooms.localhost" "muc"
  modules_enabled = {{ "muc_mam" }}
  restrict_room_creation = false
  muc_room_locking = false
  muc_room_default_public_jids = true
  muc_room_default_persistent = true
  muc_log_by_default = true
"""


class Prosody:
    """One server with a folder and a port of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        root = os.getuid() == 0
        # Prosody does not run as root.
        self._owner = (pwd.getpwnam("prosody").pw_uid, grp.getgrnam("prosody").gr_gid) if root else (os.getuid(), os.getgid())
        folder.chmod(0o755)
        (folder / "data").mkdir()
        self._config = folder / "prosody.cfg.lua"
        self._config.write_text(CONFIG.format(folder=folder, host=HOST, port=self.port))
        for path in (folder, folder / "data", self._config):
            os.chown(path, *self._owner)
        self._process: subprocess.Popen[bytes] | None = None

    def register(self, *names: str) -> None:
        for name in names:
            command = self._as_owner("prosodyctl", "--config", str(self._config), "register", name, "localhost", PASSWORD)
            subprocess.run(command, check=True, capture_output=True)

    def start(self) -> None:
        with (self._folder / "out").open("ab") as out:
            self._process = subprocess.Popen(self._as_owner("prosody", "--config", str(self._config), "-F"), stdout=out, stderr=out)
        deadline = time.monotonic() + START_DEADLINE_S
        while not self._accepts():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError("prosody did not start:\n" + (self._folder / "out").read_text(errors="replace"))
            time.sleep(0.01)

    def stop(self) -> None:
        """Ended; connections break, the archive stays."""
        if self._process:
            self._process.terminate()
            self._process.wait(STOP_DEADLINE_S)
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _as_owner(self, program: str, *arguments: str) -> list[str]:
        command = [find_program(program) or program, *arguments]
        if os.getuid() != 0:
            return command
        setpriv = shutil.which("setpriv") or "setpriv"
        return [setpriv, f"--reuid={self._owner[0]}", f"--regid={self._owner[1]}", "--clear-groups", *command]

    def _accepts(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), timeout=1):
            return True
        return False
