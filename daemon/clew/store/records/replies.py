"""Words on their way to an address."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from clew.transport import Address, Part


@dataclass(frozen=True, slots=True)
class Reply:
    """Words on their way to an address. `instant`: they count as sent when committed."""

    address: Address
    text: str
    parts: tuple[Part, ...]
    in_reply_to: str = ""
    answers: tuple[str, ...] = ()
    context: Mapping[str, str] = field(default_factory=dict)
    instant: bool = False


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of an attempt to send. `next_at`: when to try again, for `pending`. `repeat`: the next attempt may be a repeat."""

    state: Literal["sent", "pending", "unknown", "dead"]
    ref: str = ""
    reason: str = ""
    next_at: float = 0.0
    sent_parts: int = 0
    repeat: bool = False
