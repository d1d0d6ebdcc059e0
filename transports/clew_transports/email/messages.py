"""Mails as messages: who wrote them, to which conversation they belong, what of them is new. Pure."""

import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.errors import MessageError
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from email.utils import getaddresses
from html.parser import HTMLParser

from clew.transport import Address, Attachment, Inbound
from clew_transports.reading import Malformed

MESSAGE_ID, REFERENCES, SUBJECT = "message_id", "references", "subject"
"""Keys of `Inbound.context`: what a reply has to name."""

MAX_REFERENCES = 20
"""Mails of a conversation that a reply names: the first and the newest."""
MAX_ID_CHARS = 250
MAX_SUBJECT_CHARS = 200
MAX_PARTS = 100
TOO_LONG = "This mail is too long for me."

_ADDRESS = re.compile(r"[a-z0-9.!#$%&'*+=?^_`{|}~-]{1,64}@[a-z0-9.-]{1,190}")
_ID = re.compile(r"<[^<>\s]{1,240}>")
_OWN_ID = re.compile(r"<clew\.[^.@\s]+\.[0-9]+\.([0-9a-f]{16}|-)@")
_ROBOTS = re.compile(r"(?:mailer-daemon|postmaster|no-?reply|do-?not-?reply|bounces?)(?:[+-].*)?@")
_RECEIVERS = ("To", "Cc", "Delivered-To", "X-Original-To")
_BULK = frozenset({"bulk", "list", "junk", "auto_reply"})
_QUOTED = re.compile(
    r"^(?:>|On\b.{5,300}\bwrote:$|Am\b.{5,300}\bschrieb\b.{0,200}:$|Le\b.{5,300}\ba écrit\s?:$|El\b.{5,300}\bescribió:$"
    r"|-{2,}\s?(?:Original Message|Ursprüngliche Nachricht|Message d'origine)\s?-{2,}$|_{20,}$)",
)
_SIGNATURE = re.compile(r"^--\s?$")


@dataclass(frozen=True, slots=True)
class Trust:
    """Whose word on a mail's sender counts.

    authserv_id: the name of the own mail server in Authentication-Results. token: a word behind the + of clew's address. anybody: the From
    line is enough, as on a closed network.
    """

    authserv_id: str = ""
    token: str = ""
    anybody: bool = False


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads mails to `own`, in lower case, for the transport `name`."""

    name: str
    own: str
    trust: Trust

    def read(self, raw: bytes, ref: str, *, whole: bool = True) -> Inbound | str:
        """The message in a mail, or why it is none for clew. ref: where the mail is. whole: False for the headers of one that is too long.

        Raises Malformed.
        """
        try:
            mail = BytesParser(policy=default).parsebytes(raw)
            return self._read(mail, raw, ref, whole)
        except (MessageError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise Malformed(f"a mail that cannot be read ({type(error).__name__})") from None

    def _read(self, mail: EmailMessage, raw: bytes, ref: str, whole: bool) -> Inbound | str:
        # Of two senders the mail server has vouched for one, and nobody knows for which.
        senders = getaddresses([_decoded(mail, "From")])
        if len(senders) != 1 or len(_all(mail, "From")) != 1:
            return "no sender, or several"
        name, sender = senders[0][0], senders[0][1].lower()
        if not _ADDRESS.fullmatch(sender):
            return "no sender"
        if why := self._robot(mail, sender):
            return why
        if not self._is_true(mail, sender):
            return "nobody vouches for the sender"
        number = _first(_ID, _raw(mail, "Message-ID")) or f"<{hashlib.sha256(raw).hexdigest()}@no.id>"
        earlier = _references(mail)
        subject = " ".join(_decoded(mail, "Subject").split())[:MAX_SUBJECT_CHARS]
        words = new_words(text_of(mail)) if whole else ""
        files = tuple(_files(mail, ref)) if whole else ()
        text = f"{subject}\n\n{words}".strip() if subject and not earlier else words
        return Inbound(
            external_id=f"{self.name}/{sender}/{number[:MAX_ID_CHARS]}",
            address=Address(self.name, sender.replace("/", "_"), _thread(number, earlier)),
            sender=sender,
            text=text,
            client_id=number[:MAX_ID_CHARS],
            sender_name=name[:200],
            sent_at=_date(mail),
            refused="" if whole else TOO_LONG,
            attachments=files,
            context={MESSAGE_ID: number, REFERENCES: " ".join(earlier), SUBJECT: subject},
        )

    def _robot(self, mail: EmailMessage, sender: str) -> str:
        """Why nobody is to be answered (RFC 3834); empty where somebody is."""
        if sender == self.own or _without_tag(sender) == self.own or _ROBOTS.match(sender):
            return "from a robot"
        if (_raw(mail, "Auto-Submitted") or "no").partition(";")[0].strip().lower() != "no":
            return "sent by a program"
        if _raw(mail, "Precedence").strip().lower() in _BULK or "List-Id" in mail or "X-Loop" in mail:
            return "from a list"
        if _raw(mail, "Return-Path") == "<>" or mail.get_content_type() == "multipart/report":
            return "a notice of delivery"
        return ""

    def _is_true(self, mail: EmailMessage, sender: str) -> bool:
        """Whether somebody vouches for the sender. Of several Authentication-Results only the first is of the own server for sure."""
        if self.trust.anybody:
            return True
        if self.trust.token:
            local, _, domain = self.own.partition("@")
            secret = f"{local}+{self.trust.token.lower()}@{domain}".encode()
            stated = [value for key in _RECEIVERS for value in _all(mail, key)]
            if any(hmac.compare_digest(address.lower().encode("utf-8", "replace"), secret) for _, address in getaddresses(stated)):
                return True
        results = _all(mail, "Authentication-Results")
        return bool(self.trust.authserv_id and results) and vouches(results[0], self.trust.authserv_id, sender.rpartition("@")[2])


def vouches(results: str, server: str, domain: str) -> bool:
    """Whether an Authentication-Results header (RFC 8601) is of `server` and says that DMARC passed for mails from `domain`.

    Much of what stands in it was chosen by whoever sent the mail: only the result of the method dmarc itself counts, and only a whole
    property of it.
    """
    first, *methods = (part.split() for part in _without_comments(results).split(";"))
    if not first or first[0].lower() != server.lower():
        return False
    verdicts = [each for each in methods if each and each[0].lower().partition("=")[0].partition("/")[0] == "dmarc"]
    if len(verdicts) != 1 or verdicts[0][0].lower().partition("=")[2] != "pass":
        return False
    stated = [each.lower().removeprefix("header.from=") for each in verdicts[0] if each.lower().startswith("header.from=")]
    return stated == [domain]


def _without_comments(text: str) -> str:
    """A structured header without its comments, which may be nested, and with an X for each quoted string."""
    kept, depth, quoted, escaped = [], 0, False, False
    for letter in " ".join(text.split()):
        if escaped:
            escaped = False
        elif letter == "\\" and (quoted or depth):
            escaped = True
        elif letter == '"' and not depth:
            quoted = not quoted
            kept.append("X" if quoted else "")
        elif letter == "(" and not quoted:
            depth += 1
        elif letter == ")" and depth and not quoted:
            depth -= 1
            kept.append(" ")
        elif not quoted and not depth:
            kept.append(letter)
    return re.sub(r"\s*=\s*", "=", "".join(kept))


def text_of(mail: EmailMessage) -> str:
    """The words of a mail: its plain text, else its HTML without the tags."""
    body = mail.get_body(("plain", "html"))
    if body is None:
        return ""
    content = body.get_content()
    text = content if isinstance(content, str) else ""
    return without_tags(text) if body.get_content_type() == "text/html" else text


def new_words(text: str) -> str:
    """`text` without the mail that it answers, if that stands below, and without the signature. What is quoted in between stays."""
    lines = text.replace("\r\n", "\n").split("\n")
    kept = next((lines[:place] for place, line in enumerate(lines) if _SIGNATURE.match(line)), lines)
    for place, line in enumerate(kept):
        below = [each for each in kept[place + 1 :] if each.strip()]
        if _QUOTED.match(line.strip()) and (not line.startswith(">") or all(each.startswith(">") for each in below)):
            kept = kept[:place]
            break
    return "\n".join(kept).strip() or text.strip()


def attachment(raw: bytes, index: int) -> bytes:
    """The file with that number in a mail. Raises LookupError."""
    try:
        part = list(_parts(BytesParser(policy=default).parsebytes(raw)))[index]
        content = part.get_payload(decode=True)
    except (IndexError, MessageError, ValueError, TypeError, AttributeError):
        content = None
    if not isinstance(content, bytes):
        raise LookupError("the mail has no such file")
    return content


class _Words(HTMLParser):
    """The text of HTML, with lines where blocks end."""

    BLOCKS = frozenset({"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "blockquote", "table"})
    UNSEEN = frozenset({"script", "style", "head", "title"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in self.UNSEEN
        if tag in self.BLOCKS:
            self.words.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in self.UNSEEN and self._unseen > 0
        if tag in self.BLOCKS:
            self.words.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.words.append(re.sub(r"\s+", " ", data))


def without_tags(html: str) -> str:
    parser = _Words()
    parser.feed(html)
    lines = [" ".join(line.split()) for line in "".join(parser.words).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _all(mail: EmailMessage, name: str) -> list[str]:
    """The values of a header as they stand in the mail: the library raises all kinds of errors for headers that are none."""
    return [str(value).strip() for key, value in mail.raw_items() if key.lower() == name.lower()]


def _raw(mail: EmailMessage, name: str) -> str:
    return next(iter(_all(mail, name)), "")


def _decoded(mail: EmailMessage, name: str) -> str:
    """A header in letters, as it stands in the mail if that cannot be."""
    try:
        return str(mail.get(name, ""))
    except (IndexError, ValueError, LookupError, AttributeError, TypeError):
        return _raw(mail, name)


def _references(mail: EmailMessage) -> tuple[str, ...]:
    found = _ID.findall(f"{_raw(mail, 'References')} {_raw(mail, 'In-Reply-To')}")
    unique = list(dict.fromkeys(each[:MAX_ID_CHARS] for each in found))
    return (*unique[:1], *unique[1:][-(MAX_REFERENCES - 1) :])


def _thread(number: str, earlier: tuple[str, ...]) -> str | None:
    """The conversation of a mail: that of a mail of clew's which it answers, else one for the first mail of all."""
    for each in earlier:
        if own := _OWN_ID.match(each):
            return None if own[1] == "-" else own[1]
    return hashlib.sha256((earlier[0] if earlier else number).encode("utf-8", "replace")).hexdigest()[:16]


def _parts(mail: EmailMessage) -> Iterator[EmailMessage]:
    for number, part in enumerate(mail.walk()):
        if number < MAX_PARTS and not part.is_multipart() and part.get_filename():
            yield part


def _files(mail: EmailMessage, ref: str) -> Iterator[Attachment]:
    for index, part in enumerate(_parts(mail)):
        content = part.get_payload(decode=True)
        size = len(content) if isinstance(content, bytes) else 0
        yield Attachment(str(part.get_filename())[:200], part.get_content_type()[:100], size, f"{ref}.{index}")


def _date(mail: EmailMessage) -> float | None:
    try:
        return float(mail["Date"].datetime.timestamp())
    except (AttributeError, TypeError, ValueError, OverflowError, LookupError):
        return None


def _without_tag(address: str) -> str:
    local, _, domain = address.partition("@")
    return f"{local.partition('+')[0]}@{domain}"


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[0] if found else ""
