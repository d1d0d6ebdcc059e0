"""Lines of IRC: read, written, and cut so that a server takes them. Pure."""

import re
from dataclasses import dataclass, field
from typing import Self

LIMIT = 350
"""Bytes of a part. Of the 512 of a line the server takes those of `:nick!user@host PRIVMSG target :` and of the line's end."""
MAX_LINE_BYTES = 8191 + 512
"""The longest line that a server sends: tags and the rest (IRCv3, message-tags)."""

_ESCAPES = {":": ";", "s": " ", "\\": "\\", "r": "\r", "n": "\n"}
_FORMATTING = re.compile(
    r"\x03(?:[0-9]{1,2}(?:,[0-9]{1,2})?)?|\x04(?:[0-9a-fA-F]{6}(?:,[0-9a-fA-F]{6})?)?|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)
"""Colours with their numbers, other marks, and control characters, of which \x01 would make a request to the client of it."""
_FOLDED = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ[]\\^", "abcdefghijklmnopqrstuvwxyz{}|~")


@dataclass(frozen=True, slots=True)
class Line:
    """A line: its tags, who sent it, the command or number, its parameters."""

    command: str
    params: tuple[str, ...] = ()
    source: str = ""
    tags: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """From a line without its end. Raises ValueError for an empty one."""
        text = raw.decode("utf-8", "replace").rstrip("\r\n")
        tags, source = {}, ""
        if text.startswith("@"):
            stated, _, text = text[1:].partition(" ")
            tags = {key: _unescaped(value) for key, _, value in (tag.partition("=") for tag in stated.split(";")) if key}
        text = text.lstrip(" ")
        if text.startswith(":"):
            source, _, text = text[1:].partition(" ")
        front, colon, trailing = text.partition(" :")
        words = front.split()
        if not words:
            raise ValueError("a line without a command")
        return cls(words[0].upper(), (*words[1:], *([trailing] if colon else [])), source, tags)

    @property
    def nick(self) -> str:
        return self.source.partition("!")[0]


def written(command: str, *params: str) -> bytes:
    """A line with its end. No parameter can end it or begin another: what would is left out."""
    clean = [re.sub(r"[\r\n\x00]", "", param) for param in params]
    if clean:
        clean[-1] = f":{clean[-1]}"
    return " ".join([command, *clean]).encode("utf-8", "replace") + b"\r\n"


def folded(name: str) -> str:
    """A nickname or channel in the letters by which servers compare them (RFC 1459)."""
    return name.translate(_FOLDED)


def plain(text: str) -> str:
    """`text` without colours and other marks of IRC."""
    return _FORMATTING.sub("", text)


def said(text: str) -> list[str]:
    """The lines of a part, each for a PRIVMSG; empty ones cannot be sent."""
    return [line for line in map(plain, text.splitlines()) if line.strip()]


def addressed(text: str, nick: str) -> str | None:
    """What is said to `nick` (`nick: …`, `nick, …`, `@nick …`, or its name anywhere, which stays); None if it is not named."""
    front = re.match(rf"\s*@?{re.escape(nick)}\s*(?:[:,]\s*|\s+|$)", text, re.IGNORECASE)
    if front:
        return text[front.end() :].strip() or text.strip()
    return text if re.search(rf"(?<![\w\[\]\\`^{{}}|-]){re.escape(nick)}(?![\w\[\]\\`^{{}}|-])", text, re.IGNORECASE) else None


def _unescaped(value: str) -> str:
    return re.sub(r"\\(.?)", lambda match: _ESCAPES.get(match[1], match[1]), value, flags=re.DOTALL)
