"""Message stanzas as messages. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from xml.etree.ElementTree import Element

from clew.transport import Address, Inbound
from clew_transports.settings import Groups

JID = re.compile(r"(?:[^@/\s<>\"&':]{1,255}@)?[A-Za-z0-9.\[\]:-]{1,255}")
"""A bare JID."""

CLIENT, SID, DELAY = "{jabber:client}", "{urn:xmpp:sid:0}", "{urn:xmpp:delay}"
REPLACE, RETRACT = "{urn:xmpp:message-correct:0}replace", "{urn:xmpp:message-retract:1}retract"
REACTIONS = "{urn:xmpp:reactions:0}"
MAM_RESULT = "{urn:xmpp:mam:2}result"
MUC_USER = "{http://jabber.org/protocol/muc#user}"
REPLY = "{urn:xmpp:reply:0}reply"
FORWARDED = "{urn:xmpp:forward:0}forwarded"


@dataclass(frozen=True, slots=True)
class Stanza:
    """A message, and where it is archived.

    number: its id in the archive of `by`, a bare JID; empty for none. old: it comes from there. sent_at: seconds since the epoch.
    """

    element: Element
    by: str = ""
    number: str = ""
    sent_at: float | None = None
    old: bool = False


def live(element: Element, own: str) -> Stanza:
    """A message as it comes. own: clew's bare JID. Only the own server's word on ids counts, and a room's for what is said in it."""
    sender = bare(element.get("from", ""))
    archive = sender if element.get("type") == "groupchat" else own
    ids = [each.get("id", "") for each in element.findall(f"{SID}stanza-id") if each.get("by") == archive]
    delay = element.find(f"{DELAY}delay")
    return Stanza(element, archive, ids[0] if ids else "", _seconds(delay.get("stamp", "")) if delay is not None else None)


def archived(element: Element, archive: str) -> Stanza | None:
    """The message in a result of an archive, None if there is none."""
    result = element.find(MAM_RESULT)
    forwarded = result.find(FORWARDED) if result is not None else None
    message = forwarded.find(f"{CLIENT}message") if forwarded is not None else None
    if result is None or forwarded is None or message is None:
        return None
    delay = forwarded.find(f"{DELAY}delay")
    return Stanza(message, archive, result.get("id", ""), _seconds(delay.get("stamp", "")) if delay is not None else None, old=True)


@dataclass
class Reader:
    """Reads stanzas for `own`, a bare JID.

    nick: clew's in rooms. groups, prefix: which lines of rooms are meant for it. who: the real JID of a room's occupant, empty if it is
    hidden. numbers: of the last messages, by which later ones name them; bounded.
    """

    name: str
    own: str
    nick: str
    groups: Groups
    prefix: str | None
    who: Callable[[str, str], str]
    numbers: dict[tuple[str, str], str] = field(default_factory=dict)

    KEPT = 1000

    def read(self, stanza: Stanza) -> Inbound | None:
        """The message in a stanza, None if it is none for clew."""
        element = stanza.element
        sender, kind = element.get("from", ""), element.get("type", "normal")
        if not sender or kind not in ("chat", "normal", "groupchat") or bare(sender) == self.own:
            return None
        room = kind == "groupchat"
        nick = sender.partition("/")[2]
        if room and (not nick or nick == self.nick):
            return None
        person = bare(self._occupant(stanza, bare(sender), nick) if room else sender)
        if not JID.fullmatch(person):
            return None  # nobody can be known by a name in a room alone
        return self._message(stanza, bare(sender), sender if room else person, person, nick, room)

    def _occupant(self, stanza: Stanza, room: str, nick: str) -> str:
        """Who said something in a room. Of what is old only the archive can tell: somebody else may have the name now."""
        if not stanza.old:
            return self.who(room, nick)
        item = stanza.element.find(f"{MUC_USER}x/{MUC_USER}item")
        return item.get("jid", "") if item is not None else ""

    def _message(self, stanza: Stanza, chat: str, author: str, person: str, nick: str, room: bool) -> Inbound | None:
        element = stanza.element
        body = element.findtext(f"{CLIENT}body") or ""
        replaces, retracts, reactions = element.find(REPLACE), element.find(RETRACT), element.find(f"{REACTIONS}reactions")
        number = element.get("id", "")
        external_id = f"{self.name}/{stanza.by}/{stanza.number}" if stanza.number else f"{self.name}/{author}/{number}"
        changes = next((each.get("id", "") for each in (replaces, retracts) if each is not None), "")
        edits = self.numbers.get((author, changes), "") if changes else ""
        if reactions is not None:
            words = "".join(each.text or "" for each in reactions.findall(f"{REACTIONS}reaction"))
            kind: Literal["message", "context", "edit", "delete", "reaction"] = "reaction"
        else:
            kind = "delete" if retracts is not None else "edit" if replaces is not None else "message"
            words = body if not room else self._addressed(body)
            if kind == "message" and not words and self.groups == "listen":
                kind, words = "context", body
        if (kind in ("edit", "delete") and not edits) or (kind != "delete" and not words.strip()) or not (stanza.number or number):
            return None
        if kind == "message":
            self._remember((author, number), external_id)
        reply = element.find(REPLY)
        return Inbound(
            external_id=external_id,
            address=Address(self.name, chat),
            sender=person,
            text="" if kind == "delete" else words.strip(),
            client_id=number or stanza.number,
            sender_name=nick if room else "",
            direct=not room,
            kind=kind,
            edits=edits,
            reply_to=reactions.get("id") if reactions is not None else reply.get("id") if reply is not None else None,
            sent_at=stanza.sent_at,
            context={"nick": nick} if room else {},
        )

    def _addressed(self, body: str) -> str:
        """What a line of a room says to clew, empty if nothing."""
        if self.prefix and body.startswith(self.prefix):
            return body.removeprefix(self.prefix)
        front = re.match(rf"\s*@?{re.escape(self.nick)}\s*(?:[:,]\s*|\s+|$)", body, re.IGNORECASE)
        if front:
            return body[front.end() :] or body
        named = re.search(rf"(?<!\w){re.escape(self.nick)}(?!\w)", body, re.IGNORECASE)
        return body if named or self.groups == "all" else ""

    def _remember(self, key: tuple[str, str], external_id: str) -> None:
        self.numbers[key] = external_id
        while len(self.numbers) > self.KEPT:
            del self.numbers[next(iter(self.numbers))]


def bare(jid: str) -> str:
    """A JID without its resource, in the letters in which it is compared."""
    return jid.partition("/")[0].lower()


def error(element: Element) -> tuple[str, str]:
    """Type and condition of an error stanza (RFC 6120, 8.3), such as `cancel` and `item-not-found`."""
    found = element.find(f"{CLIENT}error")
    if found is None:
        return "", ""
    conditions = [each.tag.rpartition("}")[2] for each in found if each.tag.startswith("{urn:ietf:params:xml:ns:xmpp-stanzas}")]
    return found.get("type", ""), next((each for each in conditions if each != "text"), "")


def moved(cursor: Mapping[str, str], stanza: Stanza) -> dict[str, str]:
    """The cursor behind a stanza."""
    return {**cursor, stanza.by: stanza.number} if stanza.number else dict(cursor)


def _seconds(stamp: str) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError):
        return None
