"""Who is asking, and whether a browser asks on their behalf."""

import hmac
import ipaddress
import pwd
import socket
import struct
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import geteuid
from urllib.parse import urlsplit

from aiohttp import web

from clew.clock import Time
from clew.config import Config
from clew.store import Visitor
from clew.store.sql import SqlStore
from clew.web.logins import Logins, cookie_name
from clew.web.wire import Problem

TRIES = 10
TRIES_SECONDS = 900.0
"""Wrong tokens and links that one peer may send in a quarter of an hour."""
ALL_TRIES = 200
"""Those of all peers, beyond which no browser is logged in for the rest of it."""
PEERS = 1024
"""Peers whose wrong tokens are remembered; the one seen longest ago is forgotten first."""

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP")
SAFE = ("GET", "HEAD")
VISITOR = web.RequestKey("visitor", Visitor)
"""Where a request keeps whoever is logged in."""
ANYWHERE = {"0.0.0.0", "::", ""}  # noqa: S104 - compared with, not bound to


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking. user: the unix user behind a connection through the daemon's socket, None on TCP. visitor: whoever is logged in;
    None for the owner of this machine."""

    owner: bool
    user: str | None = None
    visitor: Visitor | None = None


@dataclass(slots=True)
class Tries:
    """Wrong tokens and links by peer, in a bounded table, and those of all. `steady`: seconds of a clock that never jumps."""

    steady: Callable[[], float] = time.monotonic
    _seen: OrderedDict[str, tuple[int, float]] = field(default_factory=OrderedDict)
    _all: tuple[int, float] = (0, 0.0)

    def wait(self, peer: str) -> float:
        """Seconds until `peer` may try again; 0: now."""
        return max(self._left(self._seen.get(network(peer), (0, 0.0)), TRIES), self._left(self._all, ALL_TRIES))

    def failed(self, peer: str) -> None:
        self._seen[network(peer)] = self._one_more(self._seen.pop(network(peer), (0, self.steady())))
        self._all = self._one_more(self._all)
        while len(self._seen) > PEERS:
            self._seen.popitem(last=False)

    def _left(self, counted: tuple[int, float], most: int) -> float:
        count, begun = counted
        left = begun + TRIES_SECONDS - self.steady()
        return left if count >= most and left > 0 else 0.0

    def _one_more(self, counted: tuple[int, float]) -> tuple[int, float]:
        count, begun = counted
        now = self.steady()
        return (1, now) if now - begun >= TRIES_SECONDS or not count else (count + 1, begun)


def network(peer: str) -> str:
    """Whoever has one address of IPv6 has the 2^64 beside it too."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def bare_host(netloc: str) -> str:
    """`host[:port]` in lower case, without the port that browsers leave out."""
    return netloc.lower().removesuffix(":80").removesuffix(":443")


def allowed_hosts(config: Config, local: str, port: int) -> frozenset[str]:
    """The values of `Host` that are meant for us, by DNS rebinding's measure.

    local: address at which the connection arrived; a name that only resolves to it is not enough. port: where it arrived.
    """
    literal = f"[{local}]" if ":" in local else local
    names = [*LOOPBACK_NAMES, literal, *([config.http.host] if config.http.host not in ANYWHERE else [])]
    public = urlsplit(config.http.public_url).netloc if config.http.public_url else ""
    return frozenset(bare_host(f"{name}:{port}") for name in names) | ({bare_host(public)} if public else set())


def same_token(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def unix_user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def is_local(peer: str) -> bool:
    try:
        return ipaddress.ip_address(peer.partition("%")[0]).is_loopback
    except ValueError:
        return False


def connection(request: web.Request) -> socket.socket | None:
    """The socket that a request came by, None where it is gone."""
    return request.transport.get_extra_info("socket") if request.transport else None


def by_socket(request: web.Request) -> bool:
    """Whether a request came by the daemon's socket."""
    through = connection(request)
    return through is not None and through.family == socket.AF_UNIX


class Door:
    """Decides who is asking. It keeps nothing but the count of wrong tokens."""

    def __init__(self, config: Config, store: SqlStore, time: Time) -> None:
        self._config = config
        self._token = config.http.token.get_secret_value() if config.http.token else ""
        self.logins = Logins(store, self._token, time)
        self.tries = Tries(time.steady)
        self.cookie = cookie_name(config)

    @property
    def token_needed(self) -> bool:
        return bool(self._token)

    async def meet(self, request: web.Request) -> None:
        """Look up whose browser asks, for `caller`. A form that no page of ours is known to have sent brings nobody with it."""
        request.pop(VISITOR, None)
        if not self._token or by_socket(request) or (request.method not in SAFE and not _from_a_page(request)):
            return
        visitor = await self.logins.visitor(request.cookies.get(self.cookie, ""))
        if visitor is not None:
            request[VISITOR] = visitor

    def visitor(self, request: web.Request) -> Visitor | None:
        """Whoever is logged in, as they were when this was looked up last."""
        return request.get(VISITOR)

    def refusal(self, request: web.Request) -> str:
        """Why a request must not be heard at all, empty if it may: a foreign name for us, or another site's page behind it."""
        if by_socket(request):
            return ""
        hosts = self._hosts(request)
        if bare_host(request.headers.get("Host", "")) not in hosts:
            return "This name is not one that clew answers to. Set http.public_url to the address that you use."
        if not self._token and any(name in request.headers for name in FORWARDED):
            return "A proxy hands this on, and without http.token everybody behind it would be the owner. Set http.token."
        origin = request.headers.get("Origin")
        if origin is not None and bare_host(origin.partition("://")[2]) not in hosts:
            return "Another site's page asks this; only clew's own page may."
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and request.method not in ("GET", "HEAD"):
            return "Another site's page asks this; only clew's own page may."
        return ""

    def _hosts(self, request: web.Request) -> frozenset[str]:
        name = request.transport.get_extra_info("sockname") if request.transport else None
        address, port = (name[0], name[1]) if isinstance(name, tuple) else ("127.0.0.1", self._config.http.port)
        return allowed_hosts(self._config, address, port)

    def caller(self, request: web.Request) -> Caller | None:
        """Who is asking; None: nobody we know. Counts wrong tokens."""
        if by_socket(request):
            return self._peer(request)
        if not self._token:
            return Caller(owner=True) if is_local(request.remote or "") else None
        if (visitor := self.visitor(request)) is not None:
            return Caller(owner=visitor.role == "owner", visitor=visitor)
        return Caller(owner=True) if self._bearer(request.headers, request.remote or "") else None

    def known(self, request: web.Request) -> Caller:
        """Whoever is asking. Raises Problem where it is nobody we know."""
        caller = self.caller(request)
        if caller is None:
            raise unknown_caller(self)
        return caller

    def owner(self, request: web.Request) -> Caller:
        """The owner who is asking. Raises Problem where it is somebody else."""
        caller = self.known(request)
        if not caller.owner:
            who = "Only an owner" if caller.visitor else "Only the user that clew runs as, and root,"
            raise Problem(403, f"{who} may ask this.")
        return caller

    def _peer(self, request: web.Request) -> Caller | None:
        through = connection(request)
        if through is None:
            return None
        credentials = through.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        uid = struct.unpack("3i", credentials)[1]
        return Caller(owner=uid in (0, geteuid()), user=unix_user(uid))

    def _bearer(self, headers: Mapping[str, str], peer: str) -> bool:
        scheme, _, given = headers.get("Authorization", "").partition(" ")
        # Whoever has the token is let in whatever others at the same address (a proxy's) tried before.
        right = bool(self._token) and same_token(given.strip(), self._token)
        return scheme.lower() == "bearer" and (right or self.knows(given.strip(), peer))

    def knows(self, given: str, peer: str) -> bool:
        """Whether `given` is the token. A peer that was wrong too often is not listened to."""
        if not self._token or self.tries.wait(peer):
            return False
        if same_token(given, self._token):
            return True
        self.tries.failed(peer)
        return False


def _from_a_page(request: web.Request) -> bool:
    """Whether a page of our own sent a form, by the browser's word: the door has refused every foreign `Origin`."""
    return "Origin" in request.headers or request.headers.get("Sec-Fetch-Site") == "same-origin"


def from_own_page(request: web.Request) -> None:
    """That a page of our own sent a form. Raises Problem."""
    if not _from_a_page(request):
        raise Problem(403, "No page of clew's own asks this.", "Use the buttons of the console; programs use the API.")


def unknown_caller(door: Door) -> Problem:
    """What somebody whom the door does not know is told."""
    if door.token_needed:
        return Problem(401, "A token is needed.", "Send `Authorization: Bearer TOKEN` with http.token, or log in on the chat page.")
    return Problem(403, "Without http.token only this machine may ask.", "Set http.token in the config.")
