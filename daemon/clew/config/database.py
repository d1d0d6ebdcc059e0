"""`store` of the config: `sqlite`, or the address of a PostgreSQL database."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit

FILE = "sqlite"
"""What stands there for a file in the data directory."""
SCHEMES = ("postgresql", "postgres")
FORM = "postgresql://USER:PASSWORD@HOST/DATABASE"
SHORTEST_SECRET = 8
"""Characters of a password from which on it is looked for in texts too: a shorter one may be a word."""
_NAME = re.compile(r"[^\s/]{1,63}")


def is_shared(where: str) -> bool:
    """Whether `store` names a database that several daemons may share."""
    return where.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def fault(where: str) -> str | None:
    """What is wrong with `store`, in words that hold nothing of it; None where it is as it should be."""
    if where == FILE:
        return None
    if not is_shared(where):
        return f"must be {FILE}, or {FORM}"
    try:
        parts = urlsplit(where)
        _ = parts.port
    except ValueError:
        return f"cannot be read as {FORM}; what is : / ? # @ [ or ] in the password is written %3A %2F %3F %23 %40 %5B %5D"
    if "@" in parts.path + parts.query + parts.fragment or parts.fragment:
        return "has a / ? or # in the password, or in the user's name; write it %2F %3F %23"
    if not _NAME.fullmatch(unquote(parts.path.removeprefix("/"))):
        return f"must end with the name of a database: {FORM}"
    if "password" in parse_qs(parts.query):
        return f"has the password where it would be shown; put it in front of the host: {FORM}"
    return None


def passwords(where: str) -> frozenset[str]:
    """The passwords of the database and of the key that opens it, as they are and as they stand in the address; none where one may be a
    word."""
    if not is_shared(where):
        return frozenset()
    of_key = [option.partition("=")[2] for option in _options(where) if _is_secret(option)]
    forms = [(each, unquote(each)) for each in (urlsplit(where).password or "", *of_key)]
    return frozenset(form for both in forms if len(both[1]) >= SHORTEST_SECRET for form in both)


def shown(where: str) -> str:
    """The address of a database without its password and options."""
    parts = urlsplit(where)
    user, _, host = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    return f"{parts.scheme}://{name}@{host}{parts.path}" if name else f"{parts.scheme}://{host}{parts.path}"


def with_options(where: str) -> str:
    """The address of a database without its passwords, for other programs: with the options that say where the server is, and how sure."""
    query = "&".join(option for option in _options(where) if not _is_secret(option))
    return f"{shown(where)}?{query}" if query else shown(where)


def _options(where: str) -> list[str]:
    return urlsplit(where).query.split("&")


def _is_secret(option: str) -> bool:
    return unquote(option.partition("=")[0]) == "sslpassword"
