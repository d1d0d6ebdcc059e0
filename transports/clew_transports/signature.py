"""Requests signed by HMAC-SHA256 over a timestamp and the raw body, as several platforms do it. Pure."""

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass

WINDOW_S = 300
"""How far, in seconds, a timestamp may be from now, either way. Standard Webhooks and Slack take the same five minutes."""

_SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)


class Forged(ValueError):
    """A request that nobody with the secret has signed just now. The text is for the log, not for who sent it."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """How one platform signs.

    timestamp, signature: names of the headers. prefix: what stands in front of the digest. before, between: what is signed in front of the
    timestamp, and between it and the body.
    """

    timestamp: str
    signature: str
    prefix: str
    before: bytes
    between: bytes

    def signed(self, secret: str, timestamp: int, body: bytes) -> dict[str, str]:
        """The headers that prove `body`. timestamp: seconds since the epoch."""
        stamp = str(timestamp)
        return {self.timestamp: stamp, self.signature: self._proof(secret, stamp, body)}

    def stated(self, stamps: Sequence[str], signatures: Sequence[str], now: float) -> tuple[str, str]:
        """The timestamp and the signature, before the body is read. Raises Forged where they cannot be right.

        stamps, signatures: the values of all headers of that name. now: seconds since the epoch.
        """
        if len(stamps) != 1 or len(signatures) != 1:
            raise Forged(f"it needs {self.timestamp} and {self.signature}, each once")
        has_prefix, digest = signatures[0].startswith(self.prefix), signatures[0].removeprefix(self.prefix)
        if not _SECONDS.fullmatch(stamps[0]) or not has_prefix or not _DIGEST.fullmatch(digest):
            raise Forged(f"{self.timestamp} must be seconds since the epoch and {self.signature} {self.prefix} with 64 hexadecimal digits")
        if abs(now - int(stamps[0])) > WINDOW_S:
            raise Forged(f"its timestamp is {now - int(stamps[0]):.0f} s old; {WINDOW_S} s either way are allowed")
        return stamps[0], signatures[0].lower()

    def check(self, stamp: str, signature: str, body: bytes, secrets: Sequence[str]) -> None:
        """Raises Forged unless one of `secrets` signed `body` at `stamp`. An empty secret signs nothing."""
        matches = [hmac.compare_digest(self._proof(secret, stamp, body), signature) for secret in secrets if secret]
        if not any(matches):
            raise Forged("its signature was made with another secret or over other bytes")

    def _proof(self, secret: str, stamp: str, body: bytes) -> str:
        words = self.before + stamp.encode() + self.between + body
        return self.prefix + hmac.new(secret.encode(), words, hashlib.sha256).hexdigest()
