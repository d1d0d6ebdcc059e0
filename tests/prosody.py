"""A real XMPP server on loopback for tests, with an archive and rooms. Nothing here imports clew."""

import grp
import os
import pwd
import shutil
import subprocess
from pathlib import Path

from tests.servers import HOST, Server, find_program

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


class Prosody(Server):
    """One server with a folder and a port of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        root = os.getuid() == 0
        # Prosody does not run as root.
        self._owner = (pwd.getpwnam("prosody").pw_uid, grp.getgrnam("prosody").gr_gid) if root else (os.getuid(), os.getgid())
        folder.chmod(0o755)
        (folder / "data").mkdir()
        self._config = folder / "prosody.cfg.lua"
        self._config.write_text(CONFIG.format(folder=folder, host=HOST, port=self.port))
        for path in (folder, folder / "data", self._config):
            os.chown(path, *self._owner)

    def register(self, *names: str) -> None:
        for name in names:
            command = self._as_owner("prosodyctl", "--config", str(self._config), "register", name, "localhost", PASSWORD)
            subprocess.run(command, check=True, capture_output=True)

    def _command(self) -> list[str]:
        return self._as_owner("prosody", "--config", str(self._config), "-F")

    def _as_owner(self, program: str, *arguments: str) -> list[str]:
        command = [find_program(program) or program, *arguments]
        if os.getuid() != 0:
            return command
        setpriv = shutil.which("setpriv") or "setpriv"
        return [setpriv, f"--reuid={self._owner[0]}", f"--regid={self._owner[1]}", "--clear-groups", *command]
