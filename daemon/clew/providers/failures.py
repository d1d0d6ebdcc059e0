"""What a failed model call means: one taxonomy for all servers. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import quote

from clew.providers import ErrorKind, ProviderError
from clew.providers.overflow import overflow_in

MAX_MESSAGE = 500
"""Characters of a server's own words that are kept, for the log."""

_SPENT_CODES = frozenset(
    {
        "enforced_spend_limit_reached",
        "insufficient_quota",
        "project_spend_limit_exceeded",
        "organization_spend_limit_exceeded",
        "credit_balance_exhausted",
        "billing_hard_limit_reached",
        "billing_error",
    }
)
_SPENT_WORDS = ("specified api usage limits", "credit balance is too low")
_UNSEEN = ("image input is not supported", "does not support image")
"""What llama.cpp answers, as a failure of its own, where a model has no eyes, and others like it."""
_KEY = re.compile(r"\b(?:sk|pk|key)-[\w*.\-]{4,}|(?i:\bbearer\s+)\S+")
_BY_TYPE: Mapping[str, ErrorKind] = {
    "overloaded_error": "overloaded",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "billing_error": "quota",
    "authentication_error": "auth",
    "permission_error": "auth",
    "invalid_request_error": "invalid",
    "not_found_error": "invalid",
}
_BY_STATUS: Mapping[int, ErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "server",
    409: "server",
    425: "server",
    429: "rate_limit",
    529: "overloaded",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """An error as a server told it. status: of HTTP, 200 for an error inside a stream. headers: lower-case names."""

    status: int
    message: str
    type: str = ""
    code: str = ""
    headers: Mapping[str, str] | None = None


def failure(answer: Answer, now: float, *, secret: str = "", text_delivered: bool = False) -> ProviderError:
    """The error that `answer` amounts to.

    now: seconds since the epoch, for a `retry-after` that is a date. secret: the key, taken out of the server's words.
    """
    words = f"{answer.type} {answer.code} {answer.message}"
    overflow = overflow_in(words) if answer.status not in (401, 402, 403, 429) else None
    kind = "overflow" if overflow else _kind(answer)
    headers = answer.headers or {}
    label = " ".join(part for part in (answer.type, answer.code) if part)
    return ProviderError(
        kind,
        safe(f"{answer.status}{f' {label}' if label else ''}: {answer.message}", secret),
        retry_after=retry_after(headers, now),
        text_delivered=text_delivered,
        tokens=overflow.tokens if overflow else None,
    )


def stalled(seconds: float) -> ProviderError:
    """The error of a server that said nothing for `seconds`."""
    return ProviderError("stall", f"no byte of the response for {seconds:g} s")


def _kind(answer: Answer) -> ErrorKind:
    message = answer.message.lower()
    if {answer.type, answer.code} & _SPENT_CODES or any(words in message for words in _SPENT_WORDS):
        return "quota"
    if answer.status in _BY_STATUS:
        return _BY_STATUS[answer.status]
    if any(words in message for words in _UNSEEN):
        return "invalid"
    if answer.status >= 500:
        return "overloaded" if answer.type == "overloaded_error" or "overloaded" in message else "server"
    if answer.status == 200:
        return _BY_TYPE.get(answer.type) or _BY_TYPE.get(answer.code, "server")
    return "invalid"


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds the server asks us to wait: `retry-after-ms`, or `retry-after` in seconds or as a date; else None."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> float | None:
    """A plain number that is not negative: no `nan`, no `inf`."""
    return float(text) if re.fullmatch(r"\s*[0-9]{1,12}(\.[0-9]{1,12})?\s*", text, re.ASCII) else None


def safe(text: str, secret: str = "") -> str:
    """`text` on one line, without the key (URL-encoded or not) or anything that looks like one, at most `MAX_MESSAGE` characters."""
    for form in (secret, quote(secret, safe=""), quote(secret)) if secret else ():
        text = text.replace(form, "***")
    return _KEY.sub("***", " ".join(text.split()))[:MAX_MESSAGE]
