"""The e-mail transport: mails come from an IMAP folder, replies go by SMTP."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import structlog
from pydantic import AfterValidator, Field, SecretStr

from clew.config import Duration, Needed
from clew.plugins import Fault, Mistake, Plugin
from clew.transport import Address, Capabilities, Delivery, Host, Inbound, Part, Preview, PreviewRef, Refused, Route, Sent, Typing
from clew_transports.email import imap, replies, smtp
from clew_transports.email.messages import Reader, Trust, attachment
from clew_transports.email.setup import SETUP
from clew_transports.pace import kept_up
from clew_transports.reading import Malformed
from clew_transports.settings import Section, readable
from clew_transports.text import parts

PART_BYTES = 256 * 1024
"""The longest reply of one mail."""
LONGEST_PAUSE_S = 300.0

_ADDRESS = re.compile(r"[^@\s<>\",;:/]{1,64}@[A-Za-z0-9.-]{1,190}")

log = structlog.get_logger()


def _is_address(address: str) -> str:
    if address and not _ADDRESS.fullmatch(address):
        raise ValueError("must be an address like clew@example.org")
    return address.lower()


def _is_folder(folder: str) -> str:
    if not folder.isascii() or not folder.isprintable() or '"' in folder or "\\" in folder:
        raise ValueError("must be a folder's name in printable ASCII, as the IMAP server writes it")
    return folder


class Settings(Section):
    """clew's address, its mailbox and where it sends; whose word on a sender counts (see `Trust`)."""

    address: Annotated[str, Needed(), AfterValidator(_is_address)] = ""
    username: str | None = None
    password: SecretStr = SecretStr("")
    imap_host: Annotated[str, Needed()] = ""
    imap_port: Annotated[int, Field(ge=1, le=65535)] = 993
    imap_tls: bool = True
    folder: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_is_folder)] = "INBOX"
    smtp_host: Annotated[str, Needed()] = ""
    smtp_port: Annotated[int, Field(ge=1, le=65535)] = 465
    smtp_tls: smtp.Tls = "tls"
    smtp_login: bool = True
    authserv_id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    token: Annotated[SecretStr, Field(min_length=8, max_length=40)] | None = None
    trust_from: bool = False
    poll: Annotated[Duration, Field(ge=1.0, le=3600.0)] = 300.0


def unreachable(to: Address) -> str:
    """Why nothing can be sent to `to`; empty where it may."""
    fits = _ADDRESS.fullmatch(to.chat) and re.fullmatch(r"[0-9a-f]{16}", to.thread or "0" * 16)
    return "" if fits else "the chat must be an address like ada@example.org"


class EmailTransport:
    """`name` is the section's name in the config and the first part of its addresses. All times in seconds."""

    capabilities = Capabilities(limit=PART_BYTES, unit="bytes", markup="markdown", merges=True, unreachable=unreachable)

    def __init__(self, name: str, settings: Settings, *, first_pause: float = 2.0, clock: Callable[[], float] = time.time) -> None:
        self._name = name
        self._settings = settings
        self._first_pause = first_pause
        self._clock = clock
        token = settings.token.get_secret_value() if settings.token else ""
        self._reader = Reader(name, settings.address, Trust(settings.authserv_id or "", token, settings.trust_from))
        local, _, domain = settings.address.partition("@")
        self._reply_to = f"{local}+{token}@{domain}" if token else settings.address
        self._imap, self._smtp = _servers(settings)

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Raises what `host.accept` raises."""
        await kept_up(host, lambda: self._rounds(host), (imap.Unreached,), self._first_pause, LONGEST_PAUSE_S)

    def parts(self, text: str) -> list[Part]:
        return parts(text, PART_BYTES, "bytes")

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`: one part, a mail of its own."""
        if why := unreachable(delivery.address):
            raise Refused(f"{delivery.address}: {why}")
        part, to = delivery.parts[delivery.sent], delivery.address
        number = replies.number(delivery.id, part.index, to.thread, self._settings.address)
        mail = replies.mail(
            part.text,
            own=self._settings.address,
            reply_to=self._reply_to,
            to=to.chat,
            number=number,
            context=delivery.context,
            ts=delivery.ts,
        )
        await asyncio.to_thread(smtp.send, self._smtp, mail, self._settings.address, to.chat)
        return Sent(number, delivery.sent + 1)

    async def find(self, delivery: Delivery) -> Sent | None:
        """A mail server cannot be asked what it has sent."""
        return None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        return None

    def routes(self) -> Sequence[Route]:
        return ()

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        if not (found := re.fullmatch(r"([0-9]{1,10})\.([0-9]{1,10})\.([0-9]{1,3})", ref)):
            raise LookupError("no file of a mail")
        yield await asyncio.to_thread(self._file, *map(int, found.groups()))

    # Messages in -------------------------------------------------------------------------------------------------

    async def _rounds(self, host: Host) -> AsyncIterator[None]:
        """Read what is new, wait for more, for ever, in a thread that nothing else uses."""
        loop, mailbox = asyncio.get_running_loop(), None
        thread = ThreadPoolExecutor(1, thread_name_prefix=f"{self._name}.imap")
        try:
            mailbox = await loop.run_in_executor(thread, imap.Mailbox, self._imap)
            place = _Place.load(await host.cursor())
            if place is None or place.validity != mailbox.validity:
                place = await self._first(host, mailbox, place)
            while True:
                while mails := await loop.run_in_executor(thread, mailbox.after, place.uid, place.since):
                    place = await self._take(host, mails, place)
                    await loop.run_in_executor(thread, mailbox.seen, [mail.uid for mail in mails])
                host.report(True, self._settings.address)
                yield
                await loop.run_in_executor(thread, mailbox.wait, min(self._settings.poll, imap.IDLE_S))
        finally:
            if mailbox:
                mailbox.close()  # ends what the thread waits for
            thread.shutdown(wait=False)

    async def _first(self, host: Host, mailbox: imap.Mailbox, before: "_Place | None") -> "_Place":
        """Where to begin: at the very first start behind what is there; in a folder that was made anew with all that came since."""
        place = _Place(mailbox.validity, mailbox.next - 1, None) if before is None else _Place(mailbox.validity, 0, before.started)
        place = _Place(place.validity, place.uid, place.since, self._clock() if before is None else before.started)
        await host.accept([], str(place))
        return place

    async def _take(self, host: Host, mails: Sequence[imap.Mail], place: "_Place") -> "_Place":
        batch: list[Inbound] = []
        for mail in mails:
            try:
                read = self._reader.read(mail.raw, f"{place.validity}.{mail.uid}", whole=mail.whole)
            except Malformed as reason:
                read = str(reason)
            if isinstance(read, Inbound):
                batch.append(read)
            else:
                log.warning("inbox.rejected", transport=self._name, uid=mail.uid, reason=read)
        place = _Place(place.validity, mails[-1].uid, place.since, place.started)
        await host.accept(batch, str(place))
        return place

    def _file(self, validity: int, uid: int, index: int) -> bytes:
        mailbox = imap.Mailbox(self._imap)
        try:
            if mailbox.validity != validity:
                raise LookupError("the mail is not there any more")
            return attachment(mailbox.one(uid), index)
        finally:
            mailbox.close()


class _Place:
    """How far the folder is read: of the folder as `validity` names it the mails up to `uid`. started: when clew first read it.

    since: mails that came before are not read, in a folder that was made anew. Seconds since the epoch.
    """

    def __init__(self, validity: int, uid: int, since: float | None, started: float = 0.0) -> None:
        self.validity, self.uid, self.since, self.started = validity, uid, since, started

    @classmethod
    def load(cls, cursor: str | None) -> "_Place | None":
        try:
            validity, uid, since, started = json.loads(cursor or "")
            return cls(int(validity), int(uid), None if since is None else float(since), float(started))
        except (ValueError, TypeError):
            return None

    def __str__(self) -> str:
        return json.dumps([self.validity, self.uid, self.since, self.started])


def _servers(settings: Settings) -> tuple[imap.Server, smtp.Server]:
    username, password = settings.username or settings.address, settings.password.get_secret_value()
    inward = imap.Server(settings.imap_host, settings.imap_port, settings.imap_tls, username, password, settings.folder)
    login = username if settings.smtp_login else ""
    return inward, smtp.Server(settings.smtp_host, settings.smtp_port, settings.smtp_tls, login, password)


async def _examine(name: str, settings: Settings) -> list[Fault]:
    """For `clew doctor`: both servers, and whether anybody vouches for senders."""
    inward, outward = _servers(settings)
    faults = []
    try:
        (await asyncio.to_thread(imap.Mailbox, inward)).close()
    except imap.Unreached as error:
        faults.append(Fault(str(error), f"check transports.{name}.imap_host, username and password"))
    if why := await asyncio.to_thread(smtp.check, outward):
        faults.append(Fault(why, f"check transports.{name}.smtp_host, smtp_tls and password"))
    if settings.trust_from:
        faults.append(Fault("trust_from is on: whoever writes somebody's address into From is that person", "use authserv_id", False))
    elif not (settings.authserv_id or settings.token):
        faults.append(Fault("nobody vouches for senders, so every mail is left alone", f"set transports.{name}.authserv_id or token"))
    return faults


def _mistakes(name: str, settings: Settings) -> Sequence[Mistake]:
    what = "password and mails go"
    inward = () if settings.imap_tls else readable(settings.imap_host, "imap_tls", what, "turn TLS on")
    outward = () if settings.smtp_tls != "none" else readable(settings.smtp_host, "smtp_tls", what, "set tls, or starttls")
    return (*inward, *outward)


def _sender(settings: Settings, text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise ValueError("must stand a mail address alone, such as ada@example.org")
    return text.lower()


def _account(settings: Settings) -> tuple[str, str]:
    box = settings.imap_host.lower(), str(settings.imap_port), settings.username or settings.address, settings.folder
    return "address", " ".join(box) if settings.imap_host else ""


def _build(name: str, settings: Settings) -> EmailTransport:
    return EmailTransport(name, settings)


plugin = Plugin("email", Settings, _build, _examine, _mistakes, _sender, _account, setup=SETUP)
