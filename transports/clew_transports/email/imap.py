"""A mailbox by IMAP. Blocking: to be called in a thread of its own."""

import contextlib
import imaplib
import re
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CONNECT_S = 15.0
"""Seconds for a connection and for each answer."""
IDLE_S = 600.0
"""Seconds after which waiting for news is begun anew; servers end it after 30 minutes (RFC 2177)."""
MAX_BYTES = 30 * 1024 * 1024
"""The longest mail that is read whole."""

_NEWS = re.compile(rb"^(?:\* \d+ (?:EXISTS|RECENT)|\* BYE|\w+ (?:NO|BAD))", re.MULTILINE)


class Unreached(Exception):
    """The server was not reached, does not know the account, or broke off."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where mails come in. tls: False for none at all, on loopback."""

    host: str
    port: int
    tls: bool
    username: str
    password: str
    folder: str


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail in the folder. whole: False where `raw` is only its headers, for it is too long."""

    uid: int
    raw: bytes
    whole: bool


class Mailbox:
    """An open folder. `close` may be called from another thread to end whatever goes on."""

    def __init__(self, server: Server) -> None:
        """Raises Unreached."""
        with _told():
            if server.tls:
                context = ssl.create_default_context()
                self._imap: imaplib.IMAP4 = imaplib.IMAP4_SSL(server.host, server.port, ssl_context=context, timeout=CONNECT_S)
            else:
                self._imap = imaplib.IMAP4(server.host, server.port, timeout=CONNECT_S)
        try:
            with _told():
                self._imap.login(server.username, server.password)
                _good(self._imap.select(f'"{server.folder}"'))
                self.validity = int(self._number("UIDVALIDITY"))
                self.next = int(self._number("UIDNEXT"))
        except BaseException:
            self.close()
            raise

    def after(self, uid: int, since: float | None = None, most: int = 20) -> list[Mail]:
        """The next mails behind `uid`, in order. since: only those that came on that day or later, in seconds since the epoch."""
        with _told():
            criteria = ["UID", f"{uid + 1}:*"]
            if since is not None:
                criteria += ["SINCE", imaplib.Time2Internaldate(since)[1:12].strip()]
            found = _good(self._imap.uid("SEARCH", *criteria))
            uids = sorted(number for number in map(int, (found[0] or b"").split()) if number > uid)
            return [mail for each in uids[:most] if (mail := self._mail(each))]

    def one(self, uid: int) -> bytes:
        """The whole of a mail. Raises LookupError where there is none."""
        with _told():
            mail = self._mail(uid)
        if mail is None or not mail.whole:
            raise LookupError("the mail is not there any more")
        return mail.raw

    def seen(self, uids: list[int]) -> None:
        """Mark mails as read."""
        if uids:
            with _told():
                _good(self._imap.uid("STORE", ",".join(map(str, uids)), "+FLAGS.SILENT", r"(\Seen)"))

    def wait(self, seconds: float) -> None:
        """Until something changes in the folder, by IDLE where the server has it; `seconds` at most."""
        with _told():
            if "IDLE" not in self._imap.capabilities:
                ends = time.monotonic() + seconds
                while time.monotonic() < ends and self._imap.sock.fileno() >= 0:
                    time.sleep(min(1.0, seconds))
                _good(self._imap.noop())
                return
            self._idle(self._imap._new_tag(), seconds)

    def _idle(self, tag: bytes, seconds: float) -> None:
        """IDLE, read from the socket itself: what imaplib's file object had read ahead could not be waited for."""
        sock, said, ends = self._imap.sock, b"", time.monotonic() + seconds
        self._imap.send(tag + b" IDLE\r\n")
        while not _NEWS.search(said) and (left := ends - time.monotonic()) > 0:
            sock.settimeout(left)
            with contextlib.suppress(TimeoutError):
                said += self._received()
        sock.settimeout(CONNECT_S)
        self._imap.send(b"DONE\r\n")
        while not (ended := re.search(rb"^" + tag + rb" (\w+)", said, re.MULTILINE)):
            said += self._received()
        if ended[1] != b"OK":
            raise imaplib.IMAP4.abort("the server refuses IDLE")

    def _received(self) -> bytes:
        piece = self._imap.sock.recv(4096)
        if not piece:
            raise imaplib.IMAP4.abort("the server closed the connection")
        return piece

    def close(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            self._imap.shutdown()

    def _mail(self, uid: int) -> Mail | None:
        size = re.search(rb"RFC822\.SIZE (\d+)", _bytes(_good(self._imap.uid("FETCH", str(uid), "(RFC822.SIZE)"))))
        if size is None:
            return None
        whole = int(size[1]) <= MAX_BYTES
        parts = _good(self._imap.uid("FETCH", str(uid), "(BODY.PEEK[])" if whole else "(BODY.PEEK[HEADER])"))
        raw = next((part[1] for part in parts if isinstance(part, tuple)), None)
        return None if raw is None else Mail(uid, raw, whole)

    def _number(self, name: str) -> bytes:
        found = self._imap.response(name)[1][0]
        if not isinstance(found, bytes):
            raise imaplib.IMAP4.abort(f"the server does not tell {name}")
        return found


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """imaplib's errors as Unreached."""
    try:
        yield
    except ssl.SSLError as error:
        raise Unreached(f"the mailbox's certificate or TLS is wrong ({error.reason})") from None
    except (OSError, imaplib.IMAP4.error, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)[:200] or type(error).__name__
        raise Unreached(f"the mailbox does not answer: {why}") from None


def _good(answer: tuple[str, Any]) -> list[Any]:
    status, data = answer
    if status != "OK":
        raise imaplib.IMAP4.error(_bytes(data).decode("utf-8", "replace"))
    return list(data)


def _bytes(data: list[Any]) -> bytes:
    return b" ".join(part if isinstance(part, bytes) else part[0] for part in data if isinstance(part, bytes | tuple))
