"""One connection to an XMPP server by slixmpp, which is imported when it is needed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from xml.etree.ElementTree import Element

from clew_transports.xmpp.stanzas import CLIENT, MAM_RESULT, Stanza, archived, bare, error, live

CONNECT_S = 45.0
"""Seconds for connection, encryption, login and joining rooms."""
GOODBYE_S = 3.0
PAGE = 50
PLUGINS = ("xep_0030", "xep_0045", "xep_0059", "xep_0085", "xep_0199", "xep_0297", "xep_0313", "xep_0359")
MAX_WAITING = 10_000
"""Stanzas that wait to be read; when there are more the connection is given up, and the archive has them."""


class Offline(Exception):
    """Nothing was sent: there is no connection, or the server does not let clew in."""


class Silent(Exception):
    """Something was sent, and no answer came."""


@dataclass(frozen=True, slots=True)
class Account:
    """Where to connect, and as whom. host: None where the DNS says it."""

    jid: str
    password: str
    host: str | None
    port: int
    tls: bool
    rooms: tuple[str, ...]
    nick: str


class Connection:
    """An open session, with its rooms joined. Messages wait in order until `next` takes them."""

    def __init__(self, client: Any, account: Account, answer_s: float) -> None:
        self._client = client
        self._account = account
        self._answer_s = answer_s
        self._waiting: asyncio.Queue[Element | None] = asyncio.Queue(MAX_WAITING)
        self._errors: dict[str, str] = {}

    def heard(self, element: Element) -> None:
        """A message stanza came."""
        if element.find(MAM_RESULT) is not None:
            return  # an answer of an archive, which whoever asked reads
        if element.get("type") == "error":
            self._errors[element.get("id", "")] = " ".join(error(element))
            while len(self._errors) > PAGE:
                del self._errors[next(iter(self._errors))]
        elif self._waiting.full():
            self._client.abort()
        else:
            self._waiting.put_nowait(element)

    def ended(self) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self._waiting.put_nowait(None)

    async def next(self) -> Stanza:
        """The next message. Raises Offline when the connection has ended."""
        element = await self._waiting.get()
        if element is None:
            raise Offline("the connection to the server ended")
        return live(element, self._account.jid)

    async def look(self) -> None:
        """Raises Offline if the server does not answer."""
        try:
            await self._ping()
        except Silent as why:
            raise Offline(str(why)) from None

    async def say(self, to: str, text: str, kind: Literal["chat", "groupchat"], number: str) -> str:
        """Empty when the server has it, else the type and condition of its error. Raises Offline or Silent."""
        if not self._client.is_connected():
            raise Offline("there is no connection to the server")
        message = self._client.make_message(mto=to, mbody=text, mtype=kind)
        message["id"] = number
        message["origin_id"]["id"] = number
        message.send()
        await self._ping()
        return self._errors.pop(number, "")

    def typing(self, to: str, kind: Literal["chat", "groupchat"]) -> None:
        message = self._client.make_message(mto=to, mtype=kind)
        message["chat_state"] = "composing"
        message.send()

    def who(self, room: str, nick: str) -> str:
        """The real JID of an occupant, empty if the room hides it."""
        with contextlib.suppress(KeyError, TypeError, ValueError):
            return str(self._client.plugin["xep_0045"].get_jid_property(_jid(room), nick, "jid") or "")
        return ""

    async def has_archive(self) -> bool:
        info = await self._asked(self._client.plugin["xep_0030"].get_info(jid=_jid(self._account.jid), timeout=self._answer_s))
        return info is not None and "urn:xmpp:mam:2" in info["disco_info"]["features"]

    async def last(self, archive: str) -> str:
        """The id of the newest message of an archive, empty where there is none. archive: a room, or empty for clew's own."""
        async for stanza in self._archived(archive, reverse=True, total=1, rsm={"max": 1}):
            return stanza.number
        return ""

    async def archive(self, archive: str, after: str = "", since: float = 0.0, with_jid: str = "") -> AsyncIterator[Stanza]:
        """What an archive has behind an id, or since a time, oldest first. Nothing where there is no archive."""
        start = datetime.fromtimestamp(since, UTC) if since else None
        rsm: dict[str, Any] = {"max": PAGE} | ({"after": after} if after else {})
        partner = {"with_jid": _jid(with_jid)} if with_jid else {}
        async for stanza in self._archived(archive, rsm=rsm, start=start, **partner):
            yield stanza

    async def _archived(self, archive: str, **query: Any) -> AsyncIterator[Stanza]:
        from slixmpp.exceptions import IqError, IqTimeout

        where = {"jid": _jid(archive)} if archive else {}
        try:
            async for message in self._client.plugin["xep_0313"].iterate(**where, **query):
                if stanza := archived(message.xml, archive or self._account.jid):
                    yield stanza
        except IqError as refused:
            # No archive, or one that has forgotten the id, which is then read as far as it reaches.
            if refused.condition == "item-not-found" and query.get("rsm", {}).pop("after", None):
                async for stanza in self._archived(archive, **query):
                    yield stanza
        except IqTimeout:
            raise Offline("the archive does not answer") from None

    async def _ping(self) -> None:
        ping = self._client.plugin["xep_0199"].ping(timeout=self._answer_s)
        await self._asked(ping)

    async def _asked(self, question: Any) -> Any:
        """The answer, None for an error. Raises Silent."""
        from slixmpp.exceptions import IqError, IqTimeout

        asked = asyncio.ensure_future(question)
        gone = asyncio.ensure_future(self._client.disconnected)
        try:
            await asyncio.wait((asked, gone), return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                raise Silent("the connection broke before the answer")
            return asked.result()
        except IqError:
            return None
        except IqTimeout:
            raise Silent("no answer from the server") from None
        finally:
            asked.cancel()


@contextlib.asynccontextmanager
async def connected(account: Account, answer_s: float) -> AsyncIterator[Connection]:
    """A session, with its rooms joined. Raises Offline."""
    slixmpp = await asyncio.to_thread(_imported)
    client = slixmpp.ClientXMPP(f"{account.jid}/clew", account.password)
    _configure(client, account)
    connection = Connection(client, account, answer_s)
    client.register_handler(_everything(connection))
    started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    for event, why in (
        ("failed_all_auth", "the server does not know the account or its password"),
        ("connection_failed", "no connection to the server"),
        ("ssl_invalid_chain", "the server's certificate is wrong"),
        ("disconnected", "the server closed the connection"),
    ):
        client.add_event_handler(event, lambda _, why=why: _fail(started, why))
    client.add_event_handler("session_start", lambda _: _succeed(started))
    client.add_event_handler("disconnected", lambda _: connection.ended())
    try:
        async with asyncio.timeout(CONNECT_S):
            client.connect(account.host, account.port if account.host else None)
            await started
            for room in account.rooms:
                await client.plugin["xep_0045"].join_muc_wait(_jid(room), account.nick, maxstanzas=0, timeout=answer_s)
            client.send_presence()
        yield connection
    except TimeoutError:
        raise Offline("the server does not answer") from None
    except slixmpp.exceptions.IqError as refused:
        raise Offline(f"the server says {refused.condition}") from None
    except slixmpp.exceptions.PresenceError as refused:
        raise Offline(f"a room does not let clew in: {refused.condition}") from None
    finally:
        await _close(client)


async def _close(client: Any) -> None:
    client.cancel_connection_attempt()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GOODBYE_S):
            await asyncio.shield(client.disconnect(wait=1.0))
    client.abort()
    if filters := client._run_out_filters:  # what slixmpp leaves running
        filters.cancel()
        await asyncio.gather(filters, return_exceptions=True)


def _fail(started: asyncio.Future[None], why: str) -> None:
    if not started.done():
        started.set_exception(Offline(why))


def _succeed(started: asyncio.Future[None]) -> None:
    if not started.done():
        started.set_result(None)


def _imported() -> Any:
    try:
        import slixmpp
        import slixmpp.exceptions
    except ImportError:
        raise Offline("slixmpp is not installed: pip install 'clew[xmpp]'") from None
    return slixmpp


def _configure(client: Any, account: Account) -> None:
    for name in PLUGINS:
        client.register_plugin(name)
    client.auto_authorize, client.auto_subscribe = True, False
    if not account.tls:
        client.enable_direct_tls = client.enable_starttls = False
        client.enable_plaintext = True
        client.plugin["feature_mechanisms"].unencrypted_scram = True


def _everything(connection: Connection) -> Any:
    """A handler for each message, whatever is in it."""
    from slixmpp.xmlstream.handler import Callback
    from slixmpp.xmlstream.matcher import MatchXPath

    return Callback("clew", MatchXPath(f"{CLIENT}message"), lambda message: connection.heard(message.xml))


def _jid(jid: str) -> Any:
    from slixmpp import JID

    return JID(bare(jid))
