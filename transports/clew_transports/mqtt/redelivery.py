"""Ids for messages that come without one, such that a redelivery is recognised."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from clew_transports.mqtt.payload import Packet

KEPT = 64
"""At least the receive maximum: what the broker may deliver again is always among the last that many messages."""


@dataclass(slots=True)
class Unnamed:
    """The last messages without an id, by packet identifier and content.

    A broker sets DUP when it delivers a message again, so a packet without DUP is new, whatever its packet identifier
    (brokers use those again). With DUP it is the message that was first delivered under that identifier with that
    content, if that one was stored: `str(self)` is the cursor, stored in one commit with the messages that change it. A broker that
    has lost the session has forgotten its packet identifiers too: `forget`.
    """

    new_id: Callable[[], str]
    _ids: dict[int, tuple[str, str]] = field(default_factory=dict)
    _changed: bool = False

    def load(self, cursor: str | None) -> None:
        """Take up what an earlier process stored. A cursor that is none of ours counts as empty."""
        self._ids.clear()
        self._changed = False
        try:
            for mid, digest, made in json.loads(cursor or "[]")[-KEPT:]:
                self._ids[int(mid)] = (str(digest), str(made))
        except (ValueError, TypeError, KeyError):
            self._ids.clear()

    def forget(self) -> bool:
        """The session is new. Returns whether there was anything to forget."""
        known = bool(self._ids)
        self._ids.clear()
        return known

    def id_for(self, packet: Packet) -> str:
        """The id made for `packet` when it was first stored, or a new one."""
        digest, made = self._ids.get(packet.mid, ("", ""))
        return made if packet.dup and packet.qos and digest == _digest(packet) else self.new_id()

    def keep(self, packet: Packet, made: str | None) -> None:
        """`packet` is about to be stored, under the id `made` or (None) under one of its own."""
        self._changed |= self._ids.pop(packet.mid, None) is not None
        if made and packet.qos:
            self._changed = True
            self._ids[packet.mid] = (_digest(packet), made)
        while len(self._ids) > KEPT:
            del self._ids[next(iter(self._ids))]

    def news(self) -> str | None:
        """The cursor, None where it is as it was when it was last asked for."""
        changed, self._changed = self._changed, False
        return str(self) if changed else None

    def __str__(self) -> str:
        return json.dumps([[mid, digest, made] for mid, (digest, made) in self._ids.items()], separators=(",", ":"))


def _digest(packet: Packet) -> str:
    whole = b"%s\0%d\0%s" % (packet.topic.encode(), packet.size, packet.payload)
    return hashlib.sha256(whole).hexdigest()[:16]
