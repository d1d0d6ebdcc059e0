"""The one redactor: credentials leave a text, everything else stays. Pure.

It stands at every door: what is summarised, noted, indexed, logged, recalled. The transcript keeps the original.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from urllib.parse import quote, quote_plus

from clew.context.credentials import without_credentials
from clew.context.telling import without_told

MIN_KNOWN = 4
"""Known secrets shorter than this many characters are not searched for: they would tear ordinary words apart."""

_OPEN = r"(?!\[redacted)"
_SCHEMES = "bearer|basic|token|bot|apikey|api-key"
_LONG_SCHEMES = "digest|oauth|aws4-hmac-sha256|negotiate|ntlm|hmac"
_ARGUMENTS = r"(?:(?!\[redacted)[^\n|;&]){0,120}?"
_PORT = r"[0-9]{1,5}(?:[/?#]|\Z)"

# Every quantifier is bounded or followed by nothing that could fail, so that a hostile text costs linear time. Each is tried only where
# one of its hints stands in the text, which most texts lack.
_STRUCTURES: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (kind, hints, re.compile(pattern, re.IGNORECASE))
    for kind, hints, pattern in (
        # user:password@host: to the last @ in front of a slash, else (a password with a slash in it) to the first
        ("password", ("://",), rf"(?P<head>://[^\s/@:?#\"'<>]{{0,100}}:)(?P<value>{_OPEN}[^\s/\"'<>]{{1,256}})(?=@)"),
        ("password", ("://",), rf"(?P<head>://[^\s/@:?#\"'<>]{{0,100}}:)(?P<value>(?!\[redacted|{_PORT})[^\s@\"'<>]{{1,256}})(?=@)"),
        ("token", ("://",), rf"(?P<head>://)(?P<value>{_OPEN}(?=[A-Za-z_-]{{0,64}}[0-9])[A-Za-z0-9_.~-]{{20,255}})(?=@)"),
        ("password", ("?", "&"), rf"(?P<head>[?&](?:pass|passwd|password|pwd)=)(?P<value>{_OPEN}[^\s&#\"'<>]{{3,}})"),
        (
            "credentials",
            ("?", "&"),
            r"(?P<head>[?&](?:(?:access|auth|id|refresh|session)_?token|token|api_?key|sig|signature|x-(?:amz|goog)-(?:signature|credential"
            rf"|security-token)|client_secret|secret)=)(?P<value>{_OPEN}[^\s&#\"'<>]{{8,}})",
        ),
        (  # one token after the scheme
            "credentials",
            ("authorization", "x-api-key", "x-auth-token", "private-token", "x-goog-api-key"),
            r"(?P<head>(?:authorization|x-api-key|x-auth-token|private-token|x-goog-api-key)\\?[\"']?[^\S\n]{0,4}[:=][^\S\n]{0,4}\\?[\"']?"
            rf"(?:(?:{_SCHEMES})[^\S\n]{{1,4}}|(?=[^\s0-9]{{0,64}}[0-9])))"
            rf"(?P<value>(?!\[redacted|[\"'\\]|(?:{_SCHEMES}|{_LONG_SCHEMES})\b)[^\s\"',\\]{{6,}})",
        ),
        (  # schemes of several parts
            "credentials",
            ("authorization",),
            r"(?P<head>authorization\\?[\"']?[^\S\n]{0,4}[:=][^\S\n]{0,4}\\?[\"']?(?:"
            rf"{_LONG_SCHEMES})[^\S\n]{{1,4}})(?P<value>{_OPEN}\S[^\n]{{5,}})",
        ),
        (
            "credentials",
            ("cookie",),
            rf"(?P<head>(?:set-)?cookie\\?[\"']?[^\S\n]{{0,4}}:[^\S\n]{{0,4}}\\?[\"']?)(?P<value>{_OPEN}[\w.-]{{1,100}}=[^\n\"'\\]{{4,}})",
        ),
        (
            "credentials",
            ("bearer", "basic"),
            r"(?P<head>\b(?:bearer|basic)[^\S\n]{1,4})(?P<value>(?=[A-Za-z+/_.~-]{0,64}[0-9=])[A-Za-z0-9+/_.~=-]{16,})",
        ),
        (  # curl -u name:password, but not docker run -u 1000:1000
            "password",
            ("-u", "-user"),
            r"(?P<head>(?<=\s)(?:-u|--(?:proxy-)?user)[\s=]{1,2})(?P<value>(?:\"[^\s\":]{1,64}:(?![0-9]{1,9}\")[^\n\"]{1,256}\""
            r"|'[^\s':]{1,64}:(?![0-9]{1,9}')[^\n']{1,256}'|[^\s:\"']{1,64}:(?!\[redacted|[0-9]{1,9}(?:\s|\Z))[^\s\"']{1,256}))",
        ),
        (
            "password",
            ("mysql", "mariadb"),
            rf"(?P<head>\b(?:mysql(?:dump|admin)?|mariadb(?:-dump)?)\b{_ARGUMENTS}\s-p)(?P<value>{_OPEN}[^\s-]\S{{3,255}})",
        ),
        (
            "password",
            ("sshpass", "docker login"),
            rf"(?P<head>\b(?:sshpass|docker login)\b{_ARGUMENTS}\s-p[^\S\n]?)(?P<value>{_OPEN}[^\s-]\S{{3,255}})",
        ),
    )
)


def redact(text: str, known: Collection[str] = ()) -> str:
    """`text` with every credential in it replaced by `[redacted]` or `[redacted: kind]`.

    `known` are secrets of this installation; they are replaced wherever they stand, also when URL-encoded. Ordinary ids, hashes,
    UUIDs, versions and numbers are left alone. Never fails; the time is linear in the length of the text.
    """
    text = without_credentials(_without_known(text, known))
    low = text.casefold()
    for kind, hints, pattern in _STRUCTURES:
        if any(map(low.__contains__, hints)):
            text = pattern.sub(_replaced(kind), text)
    return without_told(text)


def _without_known(text: str, known: Iterable[str]) -> str:
    forms = {form for secret in known if len(secret) >= MIN_KNOWN for form in _spellings(secret)}
    for form in sorted(forms, key=lambda form: (-len(form), form)):
        text = text.replace(form, "[redacted]")
    return text


def _spellings(secret: str) -> Iterator[str]:
    raw = secret.encode("utf-8", "surrogatepass")
    yield from (secret, quote(raw, safe=""), quote(raw), quote_plus(raw))


def _replaced(kind: str) -> Callable[[re.Match[str]], str]:
    return lambda match: f"{match['head']}[redacted: {kind}]"
