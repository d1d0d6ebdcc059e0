"""What Slack tells of messages, by events and by history alike, as messages of clew's. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from clew.transport import Address, Attachment, Inbound
from clew_transports.buttons import ANSWERS, PRESSED
from clew_transports.reading import Malformed
from clew_transports.settings import Groups
from clew_transports.slack.mrkdwn import words
from clew_transports.slack.place import Place, order
from clew_transports.slack.settings import USER

SAID = frozenset({"", "file_share", "thread_broadcast", "me_message"})
"""Subtypes of a message that a person wrote."""
EMOJI = {
    "+1": "👍",
    "thumbsup": "👍",
    "white_check_mark": "✅",
    "ok_hand": "👌",
    "-1": "👎",
    "thumbsdown": "👎",
    "x": "❌",
    "no_entry_sign": "🚫",
}
"""Slack's names of the emoji that answer a question."""
SLACKBOT = "USLACKBOT"
MAX_NAMED = 10
"""People in one message whose names are looked up."""

_CHANNEL = re.compile(r"[CDG][A-Z0-9]{1,30}", re.ASCII)
_SOMEBODY = re.compile(r"<@([UW][A-Z0-9]{1,30})(?:\|[^<>]*)?>", re.ASCII)
_MASSES = re.compile(r"<!(?:channel|here|everyone|group|subteam\^)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Bot:
    """Who clew is in its workspace `team`: as a user, and as a bot."""

    team: str
    user: str
    bot: str
    name: str = ""
    workspace: str = ""

    @classmethod
    def of(cls, answer: Any) -> Self:
        """From auth.test. Raises Malformed."""
        try:
            name, workspace = str(answer.get("user") or ""), str(answer.get("team") or "")
            return cls(str(answer["team_id"]), str(answer["user_id"]), str(answer["bot_id"]), name, workspace)
        except (KeyError, TypeError, AttributeError):
            raise Malformed("auth.test names no bot: bot_token must be the one that begins with xoxb-") from None

    def __str__(self) -> str:
        return f"{self.team}/{self.user}"


def of_payload(payload: Any, team: str) -> Mapping[str, Any] | None:
    """The event in a payload of the Events API, or a press of a button; None if there is none, or it is another workspace's.

    Raises Malformed.
    """
    try:
        if payload.get("type") == "block_actions":
            return payload if payload["team"]["id"] == team else None
        if payload.get("type") != "event_callback":
            return None
        teams = {each.get("team_id") for each in payload.get("authorizations") or ()} or {payload["team_id"]}
        event = payload["event"]
        event["type"]
        return event if team in {*teams, payload.get("context_team_id")} else None
    except (KeyError, TypeError, AttributeError):
        raise Malformed("a payload of a shape that is not documented") from None


def people_in(event: Any) -> list[str]:
    """The users whose names are needed to read an event, the sender first."""
    try:
        found = [event.get("user"), *_SOMEBODY.findall(str(event.get("text") or ""))]
        return list(dict.fromkeys(each for each in found if isinstance(each, str) and USER.fullmatch(each)))[:MAX_NAMED]
    except AttributeError:
        return []


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads for the transport `name`, which is `bot`. groups, prefix: which lines of channels are meant for it."""

    name: str
    bot: Bot
    groups: Groups = "mention"
    prefix: str | None = None

    def read(self, event: Any, place: Place, names: Mapping[str, str]) -> tuple[Inbound | None, Place]:
        """The message in `event`, None if it is nobody's or not for clew, and the place behind it.

        names: of users, by their ids. Raises Malformed.
        """
        try:
            if event["type"] == "reaction_added":
                return self._reaction(event), place
            if event["type"] == "block_actions":
                return self._pressed(event), place
            if event["type"] not in ("message", "app_mention"):
                return None, place
            place = place.met(_fitting(_CHANNEL, event["channel"]))
            match str(event.get("subtype") or ""):
                case "message_changed" if event["message"].get("subtype") == "tombstone":
                    return self._deletion(event, str(event["message"]["ts"]), place), place
                case "message_changed":
                    return self._edit(event, place, names), place
                case "message_deleted":
                    return self._deletion(event, str(event["deleted_ts"]), place), place
                case subtype if subtype in SAID and "text" in event:
                    return self._message(event, place, names)
            return None, place
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise Malformed("an event of a shape that is not documented") from None

    def _message(self, event: Mapping[str, Any], place: Place, names: Mapping[str, str]) -> tuple[Inbound | None, Place]:
        channel, ts, text = str(event["channel"]), str(event["ts"]), str(event["text"] or "")
        attachments = tuple(_attachments(event))
        is_meant = self._is_meant(event, channel, place)
        if not self._is_somebody(event) or not (text or attachments) or not (is_meant or self._is_kept(event, channel, place)):
            return None, place
        sender, thread, direct = _fitting(USER, event["user"]), _thread(event), channel.startswith("D")
        if is_meant and not direct and (thread is None or place.is_joined(channel, thread)):
            place = place.joined(channel, thread or ts)
        inbound = Inbound(
            external_id=self._external(channel, ts),
            address=self._address(channel, thread, ts),
            sender=sender,
            text=self._addressed(text, names, direct) if is_meant else words(text, names),
            client_id=ts,
            sender_name=names.get(sender, ""),
            direct=direct,
            kind="message" if is_meant else "context",
            reply_to=thread if event.get("parent_user_id") == self.bot.user else None,
            sent_at=float(order(ts)[0]),
            attachments=attachments,
        )
        return inbound, place

    def _edit(self, event: Mapping[str, Any], place: Place, names: Mapping[str, str]) -> Inbound | None:
        """What a person changed; not what Slack added, such as the preview of a link."""
        message, before = event["message"], event.get("previous_message") or {}
        channel, text = str(event["channel"]), str(message.get("text") or "")
        if "edited" not in message or text == before.get("text") or not self._is_somebody(message):
            return None
        read = message | {"text": before.get("text", text)}
        if not (self._is_meant(read, channel, place) or self._is_kept(read, channel, place)):
            return None
        ts, direct, sender = str(message["ts"]), channel.startswith("D"), _fitting(USER, message["user"])
        at = str(message["edited"]["ts"])
        return Inbound(
            external_id=f"{self._external(channel, ts)}/e{order(at)[0]}.{order(at)[1]:06}",
            address=self._address(channel, _thread(message), ts),
            sender=sender,
            text=self._addressed(text, names, direct),
            client_id=ts,
            sender_name=names.get(sender, ""),
            direct=direct,
            kind="edit",
            edits=self._external(channel, ts),
            sent_at=float(order(at)[0]),
        )

    def _deletion(self, event: Mapping[str, Any], ts: str, place: Place) -> Inbound | None:
        """Slack does not always say what was deleted, and never by whom."""
        before, channel = event.get("previous_message"), str(event["channel"])
        if before and not self._is_somebody(before):
            return None
        if before and not (self._is_meant(before, channel, place) or self._is_kept(before, channel, place)):
            return None
        return Inbound(
            external_id=f"{self._external(channel, ts)}/d",
            address=self._address(channel, _thread(before) if before else None, ts),
            sender=_fitting(USER, before["user"]) if before else "",
            text="",
            direct=channel.startswith("D"),
            kind="delete",
            edits=self._external(channel, ts),
        )

    def _reaction(self, event: Mapping[str, Any]) -> Inbound | None:
        """An emoji that a person puts on a message; Slack does not say in which thread."""
        item, emoji = event["item"], EMOJI.get(str(event["reaction"]).partition("::")[0])
        if item["type"] != "message" or emoji is None or not self._is_somebody(event):
            return None
        channel, ts, at = _fitting(_CHANNEL, item["channel"]), str(item["ts"]), str(event["event_ts"])
        order(ts)
        return Inbound(
            external_id=f"{self._external(channel, ts)}/r{order(at)[0]}.{order(at)[1]:06}",
            address=Address(self.name, channel),
            sender=_fitting(USER, event["user"]),
            text=emoji,
            direct=channel.startswith("D"),
            kind="reaction",
            reply_to=ts,
            sent_at=float(order(at)[0]),
        )

    def _pressed(self, event: Mapping[str, Any]) -> Inbound | None:
        """A button below a message of clew's that somebody presses; other elements are not clew's."""
        (action, *_), message = event["actions"], event["message"]
        if action["type"] != "button" or action.get("value") not in ANSWERS or message.get("user") != self.bot.user:
            return None
        channel, ts, at = _fitting(_CHANNEL, event["channel"]["id"]), str(message["ts"]), str(action["action_ts"])
        thread = _thread(message)
        return Inbound(
            external_id=f"{self._external(channel, ts)}/b{order(at)[0]}.{order(at)[1]:06}",
            address=Address(self.name, channel, thread),
            sender=_fitting(USER, event["user"]["id"]),
            text=str(action["value"]),
            direct=channel.startswith("D"),
            kind="reaction",
            reply_to=ts,
            sent_at=float(order(at)[0]),
            context={PRESSED: str(message.get("text") or "")},
        )

    def _external(self, channel: str, ts: str) -> str:
        """Channel and ts name a message: a mention comes as two events, and any event may come under several event ids."""
        order(ts)
        return f"{self.name}/{self.bot.team}/{channel}/{ts}"

    def _address(self, channel: str, thread: str | None, ts: str) -> Address:
        """In a channel the answer to a message opens a thread below it, and that thread is the chat."""
        return Address(self.name, channel, thread if channel.startswith("D") else thread or ts)

    def _is_somebody(self, message: Mapping[str, Any]) -> bool:
        """Whether a person wrote it: not clew, no other bot, not Slack."""
        return bool(message.get("user")) and message["user"] not in (self.bot.user, SLACKBOT) and not message.get("bot_id")

    def _is_meant(self, message: Mapping[str, Any], channel: str, place: Place) -> bool:
        """Whether it speaks to clew: in private, by a mention or the prefix, or in a thread that clew answers in, where it calls nobody
        else."""
        text, thread = str(message.get("text") or ""), _thread(message)
        called = _SOMEBODY.findall(text)
        if channel.startswith("D") or self.groups == "all" or self.bot.user in called:
            return True
        if self.prefix and text.startswith(self.prefix):
            return True
        answers = thread is not None and (message.get("parent_user_id") == self.bot.user or place.is_joined(channel, thread))
        return answers and not called and not _MASSES.search(text)

    def _is_kept(self, message: Mapping[str, Any], channel: str, place: Place) -> bool:
        """Whether a line that is not for clew is kept: one of a thread that clew answers in. Others would be chats of their own."""
        text, thread = str(message.get("text") or ""), _thread(message)
        known = thread is not None and (message.get("parent_user_id") == self.bot.user or place.is_joined(channel, thread))
        return self.groups == "listen" and known and bool(text.strip())

    def _addressed(self, text: str, names: Mapping[str, str], direct: bool) -> str:
        """The words of a message without what only says whom they are for."""
        if self.prefix and not direct and text.startswith(self.prefix):
            text = text.removeprefix(self.prefix).strip() or text
        text = re.sub(rf"\A\s*<@{self.bot.user}(?:\|[^<>]*)?>[\s,:]*(?=\S)", "", text)
        return words(text, {**names, self.bot.user: self.bot.name})


def _thread(message: Mapping[str, Any]) -> str | None:
    """The ts of the thread that it is a reply in; None for a message of its own."""
    thread = message.get("thread_ts")
    if thread is None or thread == message["ts"]:
        return None
    order(str(thread))
    return str(thread)


def _fitting(pattern: re.Pattern[str], value: Any) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError("no id of Slack")
    return value


def _attachments(event: Mapping[str, Any]) -> Iterator[Attachment]:
    """Files that Slack has; not those that are gone or lie elsewhere."""
    for file in event.get("files") or ():
        if file.get("mode") in ("tombstone", "hidden_by_limit", "external") or file.get("is_external"):
            continue
        name, mime = str(file.get("name") or file.get("title") or "file"), str(file.get("mimetype") or "application/octet-stream")
        is_clip = file.get("subtype") in ("slack_audio", "slack_video")
        yield Attachment(name[:200], mime[:100], int(file.get("size") or 0), str(file["id"]), is_clip)
