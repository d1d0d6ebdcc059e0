"""The one redactor: credentials leave a text, everything else stays. Pure.

It stands at every door: what is summarised, noted, indexed, logged, recalled. The transcript keeps the original.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache

from clew.context.credentials import without_credentials
from clew.context.telling import without_told

MIN_KNOWN = 4
"""Known secrets shorter than this many characters are not searched for: they would tear ordinary words apart."""

_LETTERS = re.compile("[A-Za-z0-9]+")
_ALIKE = re.compile(r"(.)\1*", re.DOTALL)
_NAMED = {"&": ("amp",), "<": ("lt",), ">": ("gt",), '"': ("quot",), "'": ("apos",)}
_ESCAPED = {"\n": ("n",), "\r": ("r",), "\t": ("t",)}
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

    `known` are secrets of this installation; they are replaced wherever they stand, also as URLs, JSON or HTML write
    them. Ordinary ids, hashes, UUIDs, versions and numbers are left alone. Never fails; the time is linear in the length of the text.
    """
    text = without_credentials(_without_known(text, known))
    low = text.casefold()
    for kind, hints, pattern in _STRUCTURES:
        if any(map(low.__contains__, hints)):
            text = pattern.sub(_replaced(kind), text)
    return without_told(text)


def _without_known(text: str, known: Iterable[str]) -> str:
    for secret in sorted({secret for secret in known if len(secret) >= MIN_KNOWN}, key=lambda secret: (-len(secret), secret)):
        hint, written = _written(secret)
        if hint in text:
            text = written.sub("[redacted]", text)
    return text


@lru_cache(maxsize=1024)
def _written(secret: str) -> tuple[str, re.Pattern[str]]:
    """(what stands in every spelling of a secret, its spellings): as URLs, JSON, HTML and Python's `repr` write it, also one in another."""
    hint = max(_LETTERS.findall(secret), key=len, default="")
    return hint, re.compile("".join(_spelled(alike[0]) for alike in _ALIKE.finditer(secret)))


def _spelled(alike: str) -> str:
    """The spellings of a character that may come several times. A backslash is one or several of them, whatever it stands in front of."""
    each, times = alike[0], len(alike)
    if each.isascii() and each.isalnum():
        return alike
    raw = each.encode("utf-8", "surrogatepass")
    units = each.encode("utf-16-be", "surrogatepass")
    forms = [
        "".join(f"%(?:25){{0,3}}{byte:02x}" for byte in raw),
        "".join(rf"\\{{1,8}}u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)),
        "".join(rf"\\{{1,8}}x{byte:02x}" for byte in raw),
        rf"&(?:amp;){{0,3}}\#(?:x0?{ord(each):x}|0?{ord(each)});",
        *(f"&(?:amp;){{0,3}}{name};" for name in _NAMED.get(each, ())),
        *(rf"\\{{1,8}}{letter}" for letter in _ESCAPED.get(each, ())),
    ]
    insensitive = f"(?i:{'|'.join(forms)})"
    if each == "\\":
        return rf"(?:\\{{{times},{8 * times}}}|{insensitive}{{{times}}})"
    plain = rf"\\{{0,8}}{re.escape(each)}" if each in "\"'/" else re.escape(each)
    return f"(?:{plain}|{insensitive}{'|[+]' if each == ' ' else ''}){{{times}}}"


def _replaced(kind: str) -> Callable[[re.Match[str]], str]:
    return lambda match: f"{match['head']}[redacted: {kind}]"
