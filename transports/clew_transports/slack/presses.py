"""Buttons below a question in Slack's words, and what becomes of those that were pressed."""

import contextlib
from typing import Any

from clew.transport import Inbound
from clew_transports.buttons import BUTTONS, CLOSED, PRESSED
from clew_transports.calls import Unanswered, Unreached
from clew_transports.slack.api import Api, Refusal

ANSWER_S = 5.0
_STYLES = {"yes": "primary", "no": "danger"}


def buttons() -> list[dict[str, Any]]:
    """What stands below a message, whose text stays as it is: text with blocks of its own would have to be one of them."""
    row = [
        {
            "type": "button",
            "text": {"type": "plain_text", "text": text},
            "action_id": answer,
            "value": answer,
            **({"style": _STYLES[answer]} if answer in _STYLES else {}),
        }
        for text, answer in BUTTONS
    ]
    return [{"fallback": "Yes, no, always?", "blocks": [{"type": "actions", "elements": row}]}]


async def answer(api: Api, pressed: Inbound, taken: bool) -> None:
    """See `buttons.Answer`."""
    where = {"channel": pressed.address.chat}
    with contextlib.suppress(Refusal, Unreached, Unanswered):
        if taken:
            words = {"text": pressed.context[PRESSED], "link_names": False}
            await api.call("chat.update", where | {"ts": pressed.reply_to, "attachments": []} | words, ANSWER_S)
            return
        thread = {"thread_ts": pressed.address.thread} if pressed.address.thread else {}
        await api.call("chat.postEphemeral", where | {"user": pressed.sender, "text": CLOSED} | thread, ANSWER_S)
