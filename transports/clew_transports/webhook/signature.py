"""Signed requests: `X-Clew-Signature` is the HMAC-SHA256 of the timestamp, a dot and the raw body. Pure."""

import hashlib
import hmac
import re
from collections.abc import Sequence

TIMESTAMP = "X-Clew-Timestamp"
SIGNATURE = "X-Clew-Signature"

WINDOW_S = 300
"""How far, in seconds, a timestamp may be from now, either way. Standard Webhooks and Slack take the same five minutes."""

_SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)
_DIGEST = re.compile(r"sha256=[0-9a-fA-F]{64}", re.ASCII)


class Forged(ValueError):
    """A request that nobody with the secret has signed just now. The text is for the log, not for who sent it."""


def signed(secret: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers that prove `body`. timestamp: seconds since the epoch."""
    stamp = str(timestamp)
    return {TIMESTAMP: stamp, SIGNATURE: f"sha256={_digest(secret, stamp, body)}"}


def stated(stamps: Sequence[str], signatures: Sequence[str], now: float) -> tuple[str, str]:
    """The timestamp and the signature, before the body is read. Raises Forged where they cannot be right.

    stamps, signatures: the values of all headers of that name. now: seconds since the epoch.
    """
    if len(stamps) != 1 or len(signatures) != 1:
        raise Forged(f"it needs {TIMESTAMP} and {SIGNATURE}, each once")
    if not _SECONDS.fullmatch(stamps[0]) or not _DIGEST.fullmatch(signatures[0]):
        raise Forged(f"{TIMESTAMP} must be seconds since the epoch and {SIGNATURE} sha256= with 64 hexadecimal digits")
    if abs(now - int(stamps[0])) > WINDOW_S:
        raise Forged(f"its timestamp is {now - int(stamps[0]):.0f} s old; {WINDOW_S} s either way are allowed")
    return stamps[0], signatures[0].lower()


def check(stamp: str, signature: str, body: bytes, secrets: Sequence[str]) -> None:
    """Raises Forged unless one of `secrets` signed `body` at `stamp`. An empty secret signs nothing."""
    matches = [hmac.compare_digest(f"sha256={_digest(secret, stamp, body)}", signature) for secret in secrets if secret]
    if not any(matches):
        raise Forged("its signature was made with another secret or over other bytes")


def _digest(secret: str, stamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
