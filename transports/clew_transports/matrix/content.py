"""The content of events of clew's: whom they answer and mention, and what they replace. Pure."""

from collections.abc import Mapping
from typing import Any

from clew.transport import Address
from clew_transports.matrix.events import SENDER, is_event

Content = dict[str, Any]


def posted(said: Content, to: Address, asked: str, context: Mapping[str, str], *, replies: bool) -> Content:
    """An event that says `said`. asked: the event that is answered; replies: as a reply to it, which mentions who asked.

    Nobody else is ever mentioned, whatever the words are: `m.mentions` says so to clients and to the homeserver, `@room` included.
    """
    replies = replies and is_event(asked)
    content = {**said, "m.mentions": {"user_ids": [context[SENDER]]} if replies and SENDER in context else {}}
    relation: Content = {}
    if to.thread:
        # Clients without threads show it as a reply to what is named last.
        relation = {"rel_type": "m.thread", "event_id": to.thread, "is_falling_back": not replies}
        relation["m.in_reply_to"] = {"event_id": asked if is_event(asked) else to.thread}
    elif replies:
        relation["m.in_reply_to"] = {"event_id": asked}
    return {**content, "m.relates_to": relation} if relation else content


def edited(said: Content, event: str) -> Content:
    """An event after which `event` says `said`. Clients that know no edits show its own words."""
    shown: Content = {key: f"* {words}" for key, words in said.items() if key in ("body", "formatted_body")}
    relation = {"rel_type": "m.replace", "event_id": event}
    return {**said, **shown, "m.new_content": {**said, "m.mentions": {}}, "m.mentions": {}, "m.relates_to": relation}
