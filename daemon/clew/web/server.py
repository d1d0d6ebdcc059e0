"""Where the app listens: the TCP port of the config and the socket in the data directory."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from clew.config import Config
from clew.errors import ClewError, ConfigError
from clew.service import Service
from clew.web.app import build
from clew.web.auth import ANYWHERE, is_local

SOCKET = "clew.sock"
SOCKET_PATH_BYTES = 107
"""What Linux allows for the path of a socket."""
GOODBYE_S = 5.0
"""Requests that still run at the end get this long."""
LINE_BYTES = 128 * 1024
"""The longest first line of a request: what is searched for stands in it, in up to twelve bytes a character."""


@dataclass(frozen=True, slots=True)
class Listening:
    """url: what to open in a browser. socket: path for programs on this machine. port: the TCP port, 0 where there is none."""

    url: str
    socket: Path
    port: int


@asynccontextmanager
async def serve(service: Service, *, tcp: bool = True) -> AsyncIterator[Listening]:
    """Listen while the block runs; without `tcp` on the socket only. Raises ClewError where that cannot be."""
    config = service.config
    runner = web.AppRunner(build(service), access_log=None, shutdown_timeout=GOODBYE_S, handle_signals=False, max_line_size=LINE_BYTES)
    await runner.setup()
    path = config.data_dir.expanduser() / SOCKET
    try:
        port = await _listen_tcp(runner, config) if tcp else 0
        await web.SockSite(runner, _unix_socket(path)).start()
        yield Listening(_url(config, port or config.http.port), path, port)
    finally:
        await runner.cleanup()
        with suppress(FileNotFoundError):
            path.unlink()


async def _listen_tcp(runner: web.AppRunner, config: Config) -> int:
    """Listen on the config's host and port. Returns the port. Raises ClewError."""
    host, port = config.http.host, config.http.port
    if not config.http.token and not (is_local(host) or host == "localhost"):
        raise ConfigError(f"http.host {host}: other machines could reach this without a secret", hint="Set http.token, or use 127.0.0.1.")
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        hint = "Does clew run already? Choose another http.port, or 0 for any that is free."
        raise ClewError(f"Cannot listen on {host}:{port}: {error.strerror or error}.", hint=hint) from error
    return int(runner.addresses[0][1])


def _unix_socket(path: Path) -> socket.socket:
    """A socket that only its user can connect to. What lies at `path` is left from a daemon that ended: the data directory is locked."""
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
        raise ClewError(f"{path}: the path of a socket has at most {SOCKET_PATH_BYTES} bytes.", hint="Choose a shorter data_dir.")
    with suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise ClewError(f"Cannot listen on {path}: {error.strerror}.") from error
    finally:
        os.umask(before)
    return listener


def _url(config: Config, port: int) -> str:
    """The address to open: the public one, else this machine's."""
    if config.http.public_url:
        return config.http.public_url.rstrip("/") + "/"
    host = "127.0.0.1" if config.http.host in ANYWHERE else config.http.host
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
