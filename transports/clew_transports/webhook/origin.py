"""Where replies may be sent to: origins that the config lists, compared in one written form. Pure."""

import re
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

MAX_URL_CHARS = 2000

_PORTS = {"http": 80, "https": 443}
_LABEL = "[A-Za-z0-9_-]{1,63}"
_PLACE = rf"(?P<host>{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:.]{{2,45}}\])(?::(?P<port>[0-9]{{1,5}}))?"
_ENTRY = re.compile(rf"(?:(?P<scheme>https?)://)?{_PLACE}", re.ASCII | re.IGNORECASE)
# No user, no fragment, no backslash, nothing beyond ASCII: what two parsers could read in two ways is not read at all.
_URL = re.compile(rf"(?P<scheme>https?)://{_PLACE}(?P<rest>[/?](?:(?![\\#])[!-~])*)?", re.ASCII | re.IGNORECASE)


class Origin(NamedTuple):
    """scheme and host in lower case; an IPv6 host in its shortest form, without brackets."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def origin(url: str) -> Origin:
    """Where `url` leads. Raises ValueError for what is not plainly written."""
    found = _URL.fullmatch(url) if len(url) <= MAX_URL_CHARS else None
    if not found:
        raise ValueError(f"must be http(s)://host[:port]/path of at most {MAX_URL_CHARS} ASCII characters, without user or fragment")
    return _origin(found["scheme"], found["host"], found["port"])


def origins(entry: str) -> frozenset[Origin]:
    """What one entry of the config allows: `host[:port]` by https, a loopback host by http too; `http://…` what it says.

    Raises ValueError.
    """
    found = _ENTRY.fullmatch(entry)
    if not found:
        raise ValueError("must be host, host:port, http://host:port or https://host:port, without a path")
    if found["scheme"]:
        return frozenset({_origin(found["scheme"], found["host"], found["port"])})
    safe, plain = (_origin(scheme, found["host"], found["port"]) for scheme in ("https", "http"))
    return frozenset({safe, plain}) if _is_loopback(safe.host) else frozenset({safe})


def _origin(scheme: str, host: str, port: str | None) -> Origin:
    scheme, host = scheme.lower(), host.lower()
    if host.startswith("["):
        host = str(IPv6Address(host[1:-1]))
    number = int(port) if port else _PORTS[scheme]
    if not 1 <= number <= 65535:
        raise ValueError("the port must be from 1 to 65535")
    return Origin(scheme, host, number)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
