"""What signal-cli notifies, as messages. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clew.transport import Address, Attachment, Inbound
from clew_transports.reading import READABLE, Malformed
from clew_transports.settings import Groups

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NUMBER = re.compile(r"\+[1-9][0-9]{5,14}")
GROUP = re.compile(r"[A-Za-z0-9_-]{22,88}={0,2}")
"""A group's id in base64 whose + and / are - and _."""

_MENTION = "\ufffc"
"""What stands in the text where somebody is mentioned."""


@dataclass(slots=True)
class Reader:
    """Reads envelopes for `account`, a number, whose id is `own` once that is known.

    groups, prefix: which lines of groups are meant for it.
    """

    name: str
    account: str
    own: str = ""
    groups: Groups = "mention"
    prefix: str | None = None

    def read(self, params: Mapping[str, Any]) -> Inbound | None:
        """The message in a notification, None if it holds none for clew. Raises Malformed."""
        try:
            # A subscription's notification holds the envelope one level deeper.
            told = params.get("result", params)
            envelope = told.get("envelope")
            if envelope is None:
                return None
            edit = envelope.get("editMessage")
            data = edit["dataMessage"] if edit else envelope.get("dataMessage")
            if not data or self._is_own(envelope.get("sourceUuid"), envelope.get("sourceNumber")):
                return None  # receipts, typing, calls, and what the account says on another device
            return self._message(envelope, data, edit)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise Malformed("an envelope of a shape that is not documented") from None

    def _message(self, envelope: Mapping[str, Any], data: Mapping[str, Any], edit: Mapping[str, Any] | None) -> Inbound | None:
        sender = str(envelope.get("sourceUuid") or envelope["source"])
        group = (data.get("groupInfo") or {}).get("groupId")
        chat = sender if group is None else safe(group)
        text, files = str(data.get("message") or ""), tuple(_files(data, chat))
        reaction, deleted = data.get("reaction"), data.get("remoteDelete")
        if reaction and (reaction.get("isRemove") or not self._is_own(reaction.get("targetAuthorUuid"), reaction.get("targetAuthor"))):
            return None
        silent = not (text or files or reaction or deleted or "sticker" in data or "contacts" in data)
        is_meant = group is None or bool(reaction or deleted) or self._is_meant(data, text)
        if silent or not (is_meant or (self.groups == "listen" and text.strip())):
            return None
        changes = edit["targetSentTimestamp"] if edit else deleted["timestamp"] if deleted else None
        quote = data.get("quote") or {}
        return Inbound(
            external_id=self._id(sender, envelope["timestamp"]),
            address=Address(self.name, chat),
            sender=sender,
            text=str(reaction["emoji"]) if reaction else self._addressed(data, text, group is None),
            client_id=str(int(envelope["timestamp"])),
            sender_name=str(envelope.get("sourceName") or "")[:200],
            direct=group is None,
            kind="reaction" if reaction else "delete" if deleted else "edit" if edit else "message" if is_meant else "context",
            edits="" if changes is None else self._id(sender, changes),
            reply_to=str(int(reaction["targetSentTimestamp"])) if reaction else str(int(quote["id"])) if "id" in quote else None,
            sent_at=int(envelope["timestamp"]) / 1000,
            refused="" if text or files or reaction or deleted else READABLE,
            attachments=files,
            context={"author": sender},
        )

    def _id(self, sender: str, timestamp: Any) -> str:
        return f"{self.name}/{self.account}/{sender}/{int(timestamp)}"

    def _is_own(self, uuid: Any, number: Any) -> bool:
        return (bool(self.own) and uuid == self.own) or (number is not None and number == self.account)

    def _is_meant(self, data: Mapping[str, Any], text: str) -> bool:
        """Whether a line of a group speaks to clew."""
        if self.groups == "all" or (self.prefix and text.startswith(self.prefix)):
            return True
        quote = data.get("quote") or {}
        if self._is_own(quote.get("authorUuid"), quote.get("authorNumber")):
            return True
        return any(self._is_own(each.get("uuid"), each.get("number")) for each in data.get("mentions") or ())

    def _addressed(self, data: Mapping[str, Any], text: str, direct: bool) -> str:
        """`text` with names where people are mentioned, and without what only says whom it is for."""
        mentions = sorted(data.get("mentions") or (), key=lambda each: int(each["start"]), reverse=True)
        units = text.encode("utf-16-le")
        for each in mentions:
            start, end = 2 * int(each["start"]), 2 * (int(each["start"]) + int(each["length"]))
            own = self._is_own(each.get("uuid"), each.get("number"))
            name = "" if own and not units[:start].decode("utf-16-le", "replace").strip() else f"@{each.get('name') or 'somebody'}"
            units = units[:start] + name.encode("utf-16-le") + units[end:]
        text = units.decode("utf-16-le", "replace")
        if self.prefix and not direct and text.startswith(self.prefix):
            return text.removeprefix(self.prefix).strip() or text
        return re.sub(r"\A\s*[,:]?\s+(?=\S)", "", text) if mentions else text


def safe(group: str) -> str:
    """A group's id as part of an address."""
    return group.replace("+", "-").replace("/", "_")


def receiver(chat: str) -> dict[str, Any]:
    """Whom signal-cli is to send to for this part of an address. Raises ValueError."""
    if UUID.fullmatch(chat) or NUMBER.fullmatch(chat):
        return {"recipient": [chat]}
    if GROUP.fullmatch(chat):
        return {"groupId": chat.replace("-", "+").replace("_", "/")}
    raise ValueError("the chat must be a number like +15551234567, an account's id or a group's id")


def _files(data: Mapping[str, Any], chat: str) -> Iterator[Attachment]:
    for each in data.get("attachments") or ():
        mime = str(each.get("contentType") or "application/octet-stream")[:100]
        name = str(each.get("filename") or ("voice" if mime.startswith("audio/") else "attachment"))[:200]
        yield Attachment(name, mime, int(each.get("size") or 0), f"{chat} {each['id']}")
