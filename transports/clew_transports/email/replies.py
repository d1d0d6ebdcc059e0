"""Replies as mails. Pure."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, formataddr

from markdown_it import MarkdownIt

from clew_transports.email.messages import MAX_REFERENCES, MESSAGE_ID, REFERENCES, SUBJECT

MAX_SUBJECT_CHARS = 78

# Off: HTML, which is text, and images, which a mail program would fetch from wherever the words of the model say.
_HTML = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])


def number(delivery_id: str, part: int, thread: str | None, own: str) -> str:
    """The Message-ID of a part: the same whenever it is sent again, and a reply to it tells its conversation."""
    return f"<clew.{re.sub(r'[^A-Za-z0-9_-]', '', delivery_id)}.{part}.{thread or '-'}@{own.rpartition('@')[2]}>"


def mail(text: str, *, own: str, reply_to: str, to: str, number: str, context: Mapping[str, str], ts: float) -> EmailMessage:
    """A reply in plain text and HTML, as an answer to the mail that `context` names. ts: seconds since the epoch.

    reply_to: where answers go, if that is not `own`.
    """
    message = EmailMessage()
    message["From"] = formataddr(("clew", own))
    message["To"] = to
    if reply_to != own:
        message["Reply-To"] = reply_to
    message["Subject"] = subject(context.get(SUBJECT), text)
    message["Date"] = format_datetime(datetime.fromtimestamp(ts, UTC))
    message["Message-ID"] = number
    if answered := context.get(MESSAGE_ID):
        earlier = context.get(REFERENCES, "").split()
        named = [*earlier[:1], *earlier[1:][-(MAX_REFERENCES - 2) :], answered]
        message["In-Reply-To"] = answered
        message["References"] = " ".join(dict.fromkeys(named))
    # So that no other program answers this one (RFC 3834).
    message["Auto-Submitted"] = "auto-replied" if answered else "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    message.set_content(text)
    message.add_alternative(f"<!doctype html><html><body>{_HTML.render(text)}</body></html>", subtype="html")
    return message


def subject(asked: str | None, text: str) -> str:
    """That of the mail that is answered; of a mail that answers none its first words."""
    if asked is not None:
        return asked if re.match(r"(?i)re:", asked) else f"Re: {asked}".strip()
    first = re.sub(r"[*_`#>|]", "", next((line for line in text.splitlines() if line.strip()), "")).strip()
    return first if len(first) <= MAX_SUBJECT_CHARS else first[: MAX_SUBJECT_CHARS - 1].rpartition(" ")[0] + " …"
