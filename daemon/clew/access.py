"""Who may talk to clew: what owners ask for in a chat, on the page or by the command line, and what all of them say of it."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import structlog

from clew.asking import Plan
from clew.errors import UsageError
from clew.store import AccessEffect, AccessRequest, Changed, Known, LoginLink, PersonRole, Reply, logins
from clew.store.sql import SqlStore
from clew.transport import Address

log = structlog.get_logger()

USAGE = (
    "/access [people | approve CODE [as NAME] [owner|member|guest] | deny CODE | role PERSON ROLE | rename PERSON [NAME] | remove PERSON"
    " | link PERSON IDENTITY | unlink IDENTITY]"
)
WELCOME = "I know you now. Write to me."
LINKED = "You are {} here too now: I know what you told me elsewhere, and there what you tell me here."
LOGIN = (
    "This opens the page for you, once and within {:.0f} minutes. Give it to nobody: whoever opens it and presses the button is you."
    " /logout ends it.\n{}"
)
LONGEST_NAME = 60
"""Characters of the name that strangers give themselves which are shown."""
ROLES: tuple[PersonRole, ...] = ("owner", "member", "guest")


def parse(words: str) -> AccessEffect:
    """What stands behind `/access`. Raises UsageError."""
    match words.split():
        case ["approve", key, *rest]:
            return _approval(key, rest)
        case ["deny", key]:
            return AccessEffect("deny", key)
        case ["role", *person, role] if person:
            return AccessEffect("role", " ".join(person), role=_role(role))
        case ["rename", person, *name]:
            return AccessEffect("rename", person, name=" ".join(name))
        case ["remove", *person] if person:
            return AccessEffect("remove", " ".join(person))
        case ["link", *person, identity] if person:
            return AccessEffect("link", " ".join(person), identity=identity)
        case ["unlink", identity]:
            return AccessEffect("unlink", identity)
    raise UsageError(f"It is written so: {USAGE}")


def _approval(key: str, rest: Sequence[str]) -> AccessEffect:
    words = list(rest)
    role: PersonRole = _role(words.pop().lower()) if words and words[-1].lower() in ROLES else "member"
    if not words:
        return AccessEffect("approve", key, role=role)
    if words[0] != "as" or len(words) < 2:
        raise UsageError("It is written so: /access approve CODE [as NAME] [owner|member|guest]")
    return AccessEffect("approve", key, role=role, name=" ".join(words[1:]))


def _role(word: str) -> PersonRole:
    found = next((role for role in ROLES if role == word), None)
    if found is None:
        raise UsageError(f"{word[:40]} is no role.", hint="Roles are owner, member and guest.")
    return found


async def prepared(store: SqlStore, effect: AccessEffect, plan: Plan, now: float) -> tuple[Changed, AccessEffect]:
    """What a change comes to, and the change with what others are told of it. Raises NotFound or UsageError."""
    changed = await store.plan_access(effect, now)
    notices = []
    for address, text in _notices(changed):
        parts, instant = plan(address, text)
        notices.append(Reply(address, text, parts, instant=instant))
    return changed, replace(effect, notices=tuple(notices))


def _notices(changed: Changed) -> list[tuple[Address, str]]:
    request = changed.request
    if changed.kind == "approve" and request.messages and request.state != "approved":
        return [(Address.parse(request.address), WELCOME)]
    return []


def told(changed: Changed) -> str:
    """What a change came to, in words."""
    called = changed.person.called if changed.person else changed.identity
    jobs = f" Their jobs are off ({changed.jobs})." if changed.jobs else ""
    match changed.kind:
        case "approve":
            named = f", called {changed.name}" if changed.name else ""
            return f"{changed.identity} may talk to clew now, as {changed.role}{named}."
        case "deny":
            return f"{changed.identity} may not talk to clew.{jobs}"
        case "role":
            return f"{called} is {changed.role} now."
        case "rename":
            return f"{called} is called {changed.name} now." if changed.name else f"{called} has no name of their own any more."
        case "remove":
            return f"{called} may not talk to clew any more: nothing of theirs is answered. What they wrote is kept.{jobs}"
        case "link":
            return f"{changed.identity} is {called} too now."
        case "unlink":
            return f"{changed.identity} is not {called} any more: clew does not know it.{jobs}"


def logged_out(count: int, called: str) -> str:
    """What logging out came to. called: who is not the one that is told."""
    browsers = "One browser" if count == 1 else f"{count or 'No'} browsers"
    return f"{browsers} {'was' if count == 1 else 'were'} logged out{f', of {called}' if called else ''}."


def hashed(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


def link_to(page: str, person: str, now: float) -> tuple[str, LoginLink]:
    """(a link that logs `person` in once, what the store keeps of it). page: the address of the page.

    The secret stands behind `#`, which no browser sends: it is in no server's log, and whoever looks at the link uses nothing up.
    """
    secret = secrets.token_urlsafe(32)
    return f"{page.rstrip('/')}/login/link#{secret}", LoginLink(hashed(secret), person, now + logins.LINK_LASTS)


def log_change(changed: Changed) -> None:
    """Write into the log whom a change lets in or keeps out."""
    identity = changed.identity or (changed.person.id if changed.person else "")
    event = {"approve": "access.paired", "link": "access.paired", "deny": "access.denied", "remove": "access.denied"}.get(changed.kind)
    if event == "access.denied":
        log.warning(event, identity=identity, how=changed.kind)
    else:
        log.info(event or "access.changed", identity=identity, how=changed.kind, role=changed.role)


def asked(request: AccessRequest, waiting: int) -> str:
    """What the owner is told of somebody who asks to be let in. waiting: requests that are open."""
    more = f" {waiting} wait in all: /access lists them." if waiting > 1 else ""
    return (
        f"{_who(request)} asks to talk to me. To let them in: /access approve {request.code} [as NAME] [owner|member|guest];"
        f" to turn them away: /access deny {request.code}. Nothing of what they write is kept or answered until then.{more}"
    )


def _who(request: AccessRequest) -> str:
    name = request.name if len(request.name) <= LONGEST_NAME else f"{request.name[: LONGEST_NAME - 1]}…"
    return f"{request.identity} (“{name}”)" if name else request.identity


def request_line(request: AccessRequest) -> str:
    times = "once" if request.messages == 1 else f"{request.messages} times"
    return f"{request.code}: {_who(request)} wrote {times}"


def person_line(known: Known, seen: str) -> str:
    """A person in a listing. seen: when they wrote last, in words."""
    named = f"{known.name} ({known.id})" if known.name else known.id
    accounts = ", ".join(f"{each.identity}{' (linked)' * (each.origin == 'linked')}" for each in known.identities) or "no account"
    return f"{named}, {known.role}: {accounts}; wrote last: {seen}"
