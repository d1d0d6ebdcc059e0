"""Browsers that log in: with the token or a link, and what they keep of it."""

import hmac
import secrets
from hashlib import sha256
from urllib.parse import urlsplit

from clew.access import hashed
from clew.clock import Time
from clew.config import Config
from clew.store import NewLogin, Visitor, logins
from clew.store.sql import SqlStore

LASTS = 30 * 24 * 3600
"""Seconds for which a browser stays logged in."""
LONGEST_AGENT = 120
"""Characters of what a browser calls itself that are kept."""
LONGEST_SECRET = 100
COOKIE = "clew_login"


def cookie_name(config: Config) -> str:
    """`__Host-`: browsers take it from clew's own page alone, not from one that shares its domain."""
    return f"__Host-{COOKIE}" if is_secure(config) else COOKIE


def is_secure(config: Config) -> bool:
    return urlsplit(config.http.public_url or "").scheme == "https"


class Logins:
    """Begins logins and says who is behind one."""

    def __init__(self, store: SqlStore, token: str, time: Time) -> None:
        self._store = store
        self._token = token
        self._time = time

    async def by_token(self, person: str, agent: str) -> str:
        """Log the owner in. Returns what their browser keeps."""
        secret, new = self._new("token", agent)
        await self._store.begin_login(person, new, self._time.wall())
        return secret

    async def by_link(self, link: str, agent: str) -> tuple[str, str] | None:
        """Log in by the secret of a link: (what the browser keeps, the person's name). None: it is none, or was used."""
        secret, new = self._new("link", agent)
        called = await self._store.redeem_login(hashed(link), new, self._time.wall())
        return (secret, called) if called is not None else None

    def _new(self, how: str, agent: str) -> tuple[str, NewLogin]:
        secret = secrets.token_urlsafe(32)
        digest = hashed(secret)
        shown = "".join(each for each in agent if each.isprintable())[:LONGEST_AGENT]
        return secret, NewLogin(digest, self._seal(digest), how, shown, self._time.wall() + LASTS)  # type: ignore[arg-type]  # one of two

    def _seal(self, digest: str) -> str:
        return hmac.new(self._token.encode(), f"clew login {digest}".encode(), sha256).hexdigest()

    async def visitor(self, secret: str) -> Visitor | None:
        """Whoever is behind what a browser keeps. None: nobody any more."""
        if not secret or len(secret) > LONGEST_SECRET:
            return None
        digest, now = hashed(secret), self._time.wall()
        found = await self._store.visitor(digest, now)
        if found is None or not hmac.compare_digest(found.mark, self._seal(digest)):
            return None
        if now - found.seen >= logins.SEEN_AGAIN:
            await self._store.login_seen(found.login, now)
        return found
