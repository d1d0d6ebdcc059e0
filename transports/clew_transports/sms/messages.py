"""What Twilio says of messages, by webhook and in its list, and how it signs the former. Pure."""

import base64
import hashlib
import hmac
from collections.abc import Collection, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

from yarl import URL

from clew.transport import Address, Attachment, Inbound
from clew_transports.reading import Malformed

MAX_MEDIA = 10
"""Files that one message holds at most."""
_PORTS = {"https": 443, "http": 80}


def signature(token: str, url: str, fields: Collection[tuple[str, str]]) -> str:
    """The X-Twilio-Signature of a POST of `fields` to `url`: HMAC-SHA1 over the address and the sorted fields, in base64."""
    signed = url + "".join(name + value for name, value in sorted(set(fields)))
    return base64.b64encode(hmac.new(token.encode(), signed.encode(), hashlib.sha1).digest()).decode()


def is_signed(stated: str, token: str, url: str, fields: Collection[tuple[str, str]]) -> bool:
    """Whether `stated` is the signature, of the address with its port or without: Twilio signs either."""
    found = [hmac.compare_digest(stated.encode(), signature(token, each, fields).encode()) for each in _spellings(url)]
    return any(found)


def of_post(fields: Collection[tuple[str, str]], name: str, number: str) -> Inbound | None:
    """The message that a webhook tells of, None if it is not for `number` or for Twilio only. Raises Malformed."""
    said = dict(fields)
    if "MessageSid" not in said or "From" not in said:
        raise Malformed("a request without MessageSid and From")
    if said.get("To") != number or "OptOutType" in said or "Body" not in said:
        return None
    files = tuple(_files([(said.get(f"MediaUrl{place}"), said.get(f"MediaContentType{place}")) for place in range(MAX_MEDIA)]))
    return _message(name, said["MessageSid"], said["From"], said["Body"], None, files)


def of_list(answer: Any, name: str, number: str) -> list[tuple[Inbound, bool]]:
    """The messages to `number` on a page of Twilio's list, and whether they have files, which it does not tell. Raises Malformed."""
    try:
        mine = [each for each in answer["messages"] if each["direction"] == "inbound" and each["to"] == number]
        return [(_listed(each, name), int(each["num_media"]) > 0) for each in mine]
    except (KeyError, TypeError, ValueError):
        raise Malformed("Twilio's list of messages is none") from None


def media(answer: Any, base: str) -> tuple[Attachment, ...]:
    """The files in Twilio's list of a message's media. base: the API's address. Raises Malformed."""
    try:
        return tuple(
            _files([(base + each["uri"].removesuffix(".json"), each["content_type"]) for each in answer["media_list"][:MAX_MEDIA]])
        )
    except (KeyError, TypeError, AttributeError):
        raise Malformed("Twilio's list of media is none") from None


def next_page(answer: Any) -> str:
    """The path of the next page of a list, empty behind the last."""
    path = answer.get("next_page_uri") if isinstance(answer, dict) else None
    return path if isinstance(path, str) and path.startswith("/") else ""


def is_sent(answer: Any, body: str) -> str:
    """The id of the message to somebody on a page of Twilio's list that says `body`, empty if there is none."""
    for each in answer.get("messages", ()) if isinstance(answer, dict) else ():
        if isinstance(each, Mapping) and str(each.get("direction", "")).startswith("outbound") and each.get("body") == body:
            return str(each.get("sid", ""))
    return ""


def _listed(each: Mapping[str, Any], name: str) -> Inbound:
    sent_at = parsedate_to_datetime(each["date_sent"] or each["date_created"]).timestamp()
    return _message(name, str(each["sid"]), str(each["from"]), str(each["body"]), sent_at, ())


def _message(name: str, sid: str, sender: str, text: str, sent_at: float | None, files: Sequence[Attachment]) -> Inbound:
    return Inbound(
        external_id=f"{name}/{sid}",
        address=Address(name, sender),
        sender=sender,
        text=text,
        client_id=sid,
        sent_at=sent_at,
        attachments=tuple(files),
    )


def _files(found: Sequence[tuple[str | None, str | None]]) -> Iterator[Attachment]:
    for url, mime in found:
        if url and mime:
            yield Attachment(mime.partition("/")[0][:50], mime[:100], 0, url[:2000])


def _spellings(url: str) -> tuple[str, str]:
    parsed = URL(url, encoded=True)
    host = parsed.host or ""
    port = parsed.explicit_port or _PORTS[parsed.scheme]
    rest = str(parsed.relative())
    return f"{parsed.scheme}://{host}{rest}", f"{parsed.scheme}://{host}:{port}{rest}"
