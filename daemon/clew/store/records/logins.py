"""Browsers that are logged in, and the links with which they do."""

from dataclasses import dataclass
from typing import Literal

from clew.store.records.people import PersonRole


@dataclass(frozen=True, slots=True)
class Login:
    """A browser that is logged in. agent: what it calls itself. created, seen (to the hour), expires: seconds since the epoch."""

    id: str
    person: str
    called: str
    how: Literal["token", "link"]
    agent: str
    created: float
    seen: float
    expires: float


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whoever is behind a login that holds. mark: what it was sealed with. here: the page of this machine (`web:local`) is theirs."""

    login: str
    person: str
    called: str
    role: PersonRole
    mark: str
    seen: float
    here: bool


@dataclass(frozen=True, slots=True)
class NewLogin:
    """A login to be begun. hash: of what the browser keeps."""

    hash: str
    mark: str
    how: Literal["token", "link"]
    agent: str
    expires: float


@dataclass(frozen=True, slots=True)
class LoginLink:
    """A link to be given out, by the hash of what stands in it."""

    hash: str
    person: str
    expires: float


@dataclass(frozen=True, slots=True)
class LoggedOut:
    """All browsers of a person are logged out."""

    person: str
