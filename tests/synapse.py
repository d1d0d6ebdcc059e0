"""A real Matrix homeserver for tests: synapse, in a virtual environment of its own (`make .synapse/.stamp`), on SQLite. Nothing here
imports clew."""

import hashlib
import hmac
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

import aiohttp

from tests.servers import HOST, STOP_DEADLINE_S, free_port

PYTHON = Path(__file__).parents[1] / ".synapse" / "bin" / "python"
MISSING = "synapse is not installed (make .synapse/.stamp): tests that need a Matrix homeserver are skipped"
START_DEADLINE_S = 90.0
SERVER_NAME = "test.example"
SHARED_SECRET = "the registration secret of the tests"

_UNLIMITED = "{per_second: 100000, burst_count: 100000}"
_CONFIG = """
server_name: "{name}"
pid_file: "{directory}/pid"
listeners: [{{port: {port}, type: http, tls: false, bind_addresses: ["{host}"], resources: [{{names: [client]}}]}}]
database: {{name: sqlite3, args: {{database: "{directory}/homeserver.db"}}}}
media_store_path: "{directory}/media"
signing_key_path: "{directory}/signing.key"
registration_shared_secret: "{secret}"
macaroon_secret_key: "a secret of the tests"
form_secret: "another one"
bcrypt_rounds: 4
report_stats: false
trusted_key_servers: []
federation_domain_whitelist: []
presence: {{enabled: false}}
url_preview_enabled: false
max_event_delay_duration: null
rc_message: {unlimited}
rc_registration: {unlimited}
rc_joins: {{local: {unlimited}, remote: {unlimited}}}
rc_joins_per_room: {unlimited}
rc_invites: {{per_room: {unlimited}, per_user: {unlimited}, per_issuer: {unlimited}}}
rc_login: {{address: {unlimited}, account: {unlimited}, failed_attempts: {unlimited}}}
rc_media_create: {unlimited}
rc_key_requests: {unlimited}
"""


class Synapse:
    """One homeserver with a folder and a port of its own; what is in it survives `stop` and `start`."""

    host = HOST

    def __init__(self, directory: Path, port: int | None = None) -> None:
        if not PYTHON.exists():
            raise FileNotFoundError(MISSING)
        self.port = port or free_port()
        self._directory = directory
        self._config = directory / "homeserver.yaml"
        self._log = directory / "synapse.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._config.write_text(
            _CONFIG.format(name=SERVER_NAME, directory=directory, port=self.port, host=HOST, secret=SHARED_SECRET, unlimited=_UNLIMITED)
        )

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def log(self) -> str:
        """What it has logged so far, over all its starts."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def start(self) -> None:
        """Start it and return once it answers. Raises RuntimeError with its log if it does not."""
        if self._process is not None:
            raise RuntimeError("synapse is already running")
        command = [str(PYTHON), "-m", "synapse.app.homeserver", "-c", str(self._config)]
        if not (self._directory / "signing.key").exists():
            subprocess.run([*command, "--generate-keys"], check=True, capture_output=True, cwd=self._directory)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._directory)
        deadline = time.monotonic() + START_DEADLINE_S
        while not self._accepts():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"synapse did not start on port {self.port}:\n{self.log}")
            time.sleep(0.02)

    def _accepts(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/_matrix/client/versions", timeout=5):
                return True
        except OSError:
            return False

    def stop(self) -> None:
        """SIGTERM, and wait until it is gone. Nothing to do when it does not run."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """SIGKILL (kill -9), and wait until it is gone. Nothing to do when it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    async def register(self, http: aiohttp.ClientSession, name: str, password: str) -> dict[str, Any]:
        """A new account by the shared secret: what the homeserver answers, with `access_token`, `device_id` and `user_id`."""
        url = f"{self.url}/_synapse/admin/v1/register"
        async with http.get(url) as response:
            nonce = (await response.json())["nonce"]
        mac = hmac.new(SHARED_SECRET.encode(), "\0".join((nonce, name, password, "notadmin")).encode(), hashlib.sha1)
        body = {"nonce": nonce, "username": name, "password": password, "admin": False, "mac": mac.hexdigest()}
        async with http.post(url, json=body) as response:
            answer: dict[str, Any] = await response.json()
            assert response.status == 200, answer
            return answer
