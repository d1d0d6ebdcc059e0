"""Where clew is reached: the daemon, its port, its public address."""

import asyncio
import socket
from collections.abc import Mapping, Sequence

import aiohttp

from clew.cli.client import running
from clew.cli.doctor.findings import Bounded, Finding
from clew.config import Config
from clew.errors import ClewError
from clew.web.auth import ANYWHERE, is_local

ASKED_S = 8.0
"""Seconds for an answer at the public address."""
LONGEST_ANSWER = 4096
HEALTHY = b'{"ok":true}'
"""What /healthz of a clew says."""
NO_DAEMON = "no daemon runs; `clew run` starts one"


async def daemon(config: Config) -> Sequence[Finding]:
    try:
        async with running(config) as client:
            if client is None:
                return [Finding("ok", NO_DAEMON)]
            status = await client.get("/api/v1/status")
    except ClewError as error:
        return [Finding("problem", error.message, error.hint or "clew status")]
    if status["reasons"]:
        return [Finding("problem", f"a daemon runs and is not ready: {'; '.join(status['reasons'])}", "its log says since when")]
    return [Finding("ok", "a daemon runs and is ready")]


async def port(config: Config) -> Sequence[Finding]:
    """Who can reach the port, and whether somebody else has it."""
    http = config.http
    where = f"{http.host}:{http.port}"
    if http.port and not await _runs(config) and not _is_free(http.host, http.port):
        names = f"choose another http.port; `ss -ltnp 'sport = :{http.port}'` names it"
        return [Finding("problem", f"{where} is in use by another program", names)]
    if is_local(http.host) or http.host == "localhost":
        return [Finding("ok", f"{where} is reached from this machine alone")]
    if (http.public_url or "").startswith("https:"):
        return [Finding("ok", f"{where} is reached by other machines, with the token, which https protects at {http.public_url}")]
    text = f"{where} is reached by other machines, and what they send, the token with it, can be read on the way"
    return [Finding("warning", text, "put a server with TLS in front, set http.public_url to its address, and http.host to 127.0.0.1")]


async def public_address(config: Config) -> Sequence[Finding]:
    """Whether the public address leads to this daemon."""
    url = config.http.public_url
    if url is None:
        return [Finding("ok", "none: links lead to this machine")]
    if not await _runs(config):
        return [Finding("ok", f"{url} is tried while a daemon runs")]
    command = "correct http.public_url, or the server in front of clew (docs/operation.md)"
    try:
        async with asyncio.timeout(ASKED_S):
            status, body = await _answer(f"{url.rstrip('/')}/healthz")
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        return [Finding("warning", f"{url} is not reached from here ({str(error)[:200] or type(error).__name__})", command)]
    if status != 200 or body != HEALTHY:
        return [Finding("warning", f"somebody answers at {url}, and it is not clew (status {status})", command)]
    return [Finding("ok", f"{url} leads to a clew")]


async def _answer(url: str) -> tuple[int, bytes]:
    async with aiohttp.ClientSession(trust_env=True) as session, session.get(url) as got:
        return got.status, await got.content.read(LONGEST_ANSWER)


async def _runs(config: Config) -> bool:
    try:
        async with running(config) as client:
            return client is not None
    except ClewError:
        return True


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("" if host in ANYWHERE else host, port))
            return True
        except PermissionError:
            return True  # below 1024: the service's user may be allowed to
        except OSError:
            return False


CHECKS: Mapping[str, Bounded] = {
    "port": Bounded(port),
    "public address": Bounded(public_address, ASKED_S + 5),
    "daemon": Bounded(daemon),
}
