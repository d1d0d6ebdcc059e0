"""Fetching what stands at a public address of the web: for addresses that others wrote, so nothing inside the network is reached."""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from clew import __version__
from clew.errors import UsageError

MOST_REDIRECTS = 5
LONGEST_URL = 2000
PATIENCE = 30.0
"""Seconds for all of it, redirects included."""
AGENT = f"clew/{__version__}"

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""The addresses of a host name."""

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_V6 = ipaddress.ip_network("2000::/3")
_NO_MATTER_WHOSE = tuple(map(ipaddress.ip_network, ("2002::/16", "2001::/32", "192.88.99.0/24")))
"""6to4 and Teredo, which lead to any IPv4 address."""


class NotFetched(UsageError):
    """What stands there is not fetched, with the reason."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What stood at a URL, and where it was found in the end.

    media_type: in lower case, without parameters. charset: empty where none is named.
    """

    url: str
    media_type: str
    charset: str
    body: bytes


def is_public(address: IpAddress) -> bool:
    """Whether an address is one of the public Internet, whatever form it is written in."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or (ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None)
        if inner is not None:
            return is_public(inner)
        if address not in _GLOBAL_V6:
            return False
    if any(address in network for network in _NO_MATTER_WHOSE if network.version == address.version):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


async def resolved(host: str) -> list[str]:
    """The addresses of a host as the machine finds them. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class Fetcher:
    """Fetches from public hosts over http and https. Every host, that of each redirect too, is looked up once, its addresses are judged,
    and the connection goes to one of those that were judged.

    resolve, allowed: how hosts are looked up, and which addresses may be reached.
    """

    def __init__(self, resolve: Resolve = resolved, allowed: Callable[[IpAddress], bool] = is_public) -> None:
        self._resolve = resolve
        self._allowed = allowed

    async def fetch(self, url: str, most_bytes: int, patience: float = PATIENCE) -> Fetched:
        """What stands at `url`, at most `most_bytes` of it, within `patience` seconds. Raises NotFetched."""
        target = parsed(url)
        connector = aiohttp.TCPConnector(resolver=_Judged(self._resolve, self._allowed), use_dns_cache=False, force_close=True)
        try:
            async with (
                asyncio.timeout(patience),
                aiohttp.ClientSession(
                    connector=connector,
                    auto_decompress=False,
                    cookie_jar=aiohttp.DummyCookieJar(),
                    headers={"User-Agent": AGENT, "Accept-Encoding": "identity"},
                    timeout=aiohttp.ClientTimeout(total=None, connect=10.0),
                ) as session,
            ):
                return await self._followed(session, target, most_bytes)
        except TimeoutError:
            raise NotFetched(f"{shown(target)} did not answer within {patience:.0f} seconds.") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotFetched(f"{shown(target)} could not be fetched: {str(error) or type(error).__name__}.") from None

    async def _followed(self, session: aiohttp.ClientSession, target: URL, most_bytes: int) -> Fetched:
        for _ in range(MOST_REDIRECTS + 1):
            self._judge_literal(target)
            async with session.get(target, allow_redirects=False) as response:
                if response.status in (301, 302, 303, 307, 308) and (place := response.headers.get("Location")):
                    target = parsed(str(target.join(URL(place))))
                    continue
                if response.status != 200:
                    raise NotFetched(f"{shown(target)} answered with status {response.status}.")
                body = await _body(response, target, most_bytes)
                return Fetched(str(target), response.content_type.lower(), response.charset or "", body)
        raise NotFetched(f"{shown(target)} leads on more than {MOST_REDIRECTS} times.")

    def _judge_literal(self, target: URL) -> None:
        """An address in the URL itself is never looked up, so it is judged here."""
        try:
            address = ipaddress.ip_address((target.host or "").partition("%")[0])
        except ValueError:
            return
        if not self._allowed(address):
            raise _inside(target.host or "")


class _Judged(AbstractResolver):
    """Gives those addresses of a host that may be reached; the connection is made to exactly these."""

    def __init__(self, resolve: Resolve, allowed: Callable[[IpAddress], bool]) -> None:
        self._look_up = resolve
        self._allowed = allowed

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_UNSPEC) -> list[ResolveResult]:
        found = [ipaddress.ip_address(each.partition("%")[0]) for each in await self._look_up(host)]
        if not found:
            raise NotFetched(f"there is no host {host}.")
        if not all(map(self._allowed, found)):
            raise _inside(host)
        return [
            ResolveResult(
                hostname=host,
                host=str(each),
                port=port,
                family=socket.AF_INET if each.version == 4 else socket.AF_INET6,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for each in found
        ]

    async def close(self) -> None:
        pass


def is_url(text: str) -> bool:
    """Whether a text is meant as an address, which need not be one that is fetched."""
    return _ADDRESS.match(text) is not None


def parsed(url: str) -> URL:
    """An address of the web. Raises NotFetched where it is none that is fetched."""
    if len(url) > LONGEST_URL:
        raise NotFetched(f"an address of more than {LONGEST_URL:,} characters is not fetched.")
    try:
        target = URL(url)
        host = target.host
    except ValueError:
        raise NotFetched(f"{url!r} is no address of the web.") from None
    if target.scheme not in ("http", "https") or not host:
        raise NotFetched(f"{url!r} is no address of the web: only http and https are fetched.")
    if target.user is not None or target.password is not None:
        raise NotFetched(f"{shown(target)}: an address with a user or a password in it is not fetched.")
    return target.with_fragment(None)


def shown(target: URL) -> str:
    """An address as it is told of: without what may be secret in it."""
    return str(target.with_user(None).with_query(None).with_fragment(None))


def _inside(host: str) -> NotFetched:
    return NotFetched(
        f"{host} is no host of the public Internet, and others are not fetched from.",
        hint="What stands on a machine of your own can be saved as a file.",
    )


async def _body(response: aiohttp.ClientResponse, target: URL, most: int) -> bytes:
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise NotFetched(f"{shown(target)} answers in an encoding that was not asked for.")
    too_large = NotFetched(f"{shown(target)} is larger than {most / 2**20:,.0f} MiB.")
    if (response.content_length or 0) > most:
        raise too_large
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > most:
            raise too_large
    return bytes(body)
