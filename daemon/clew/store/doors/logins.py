"""Browsers that are logged in, and links to log in with."""

from clew.store import Login, LoginLink, NewLogin, Visitor, logins
from clew.store.doors.opened import Opened


class LoginsDoor(Opened):
    """Browsers that are logged in, and links to log in with."""

    async def offer_login(self, link: LoginLink, now: float) -> None:
        """Give out a link that logs its person in, once."""
        await self._db.write(logins.offer, link, now)

    async def redeem_login(self, link: str, new: NewLogin, now: float) -> str | None:
        """Begin a login by the link with this hash: the person's name, None where the link is none."""
        return await self._db.write(logins.redeem, link, new, now)

    async def begin_login(self, person: str, new: NewLogin, now: float) -> None:
        await self._db.write(logins.begin, person, new, now)

    async def visitor(self, digest: str, now: float) -> Visitor | None:
        """Whoever is behind what a browser keeps, by its hash. None where no login holds."""
        return await self._db.read(logins.visitor, digest, now)

    async def login_seen(self, login: str, now: float) -> None:
        await self._db.write_relaxed(logins.seen, login, now)

    async def logins(self, now: float) -> list[Login]:
        """Browsers that are logged in, the one seen last first."""
        return await self._db.read(logins.listing, now)

    async def end_logins(self, *, login: str | None = None, person: str | None = None) -> int:
        """End a login, or all of a person's; all there are where neither is named. Returns how many."""
        return await self._db.write(lambda db: logins.end(db, login=login, person=person))
