"""What was said in Discord's channels while no session was there to tell of it."""

import re
from collections.abc import AsyncIterator
from typing import Any

import structlog

from clew_transports.calls import Unanswered
from clew_transports.discord.api import Api, Refusal

PAGE = 100
MOST_PAGES = 50
"""What was missed in one channel is asked for up to 5,000 messages."""

_ID = re.compile(r"[0-9]{1,20}")

log = structlog.get_logger()


async def missed(api: Api, name: str, channel: str, since: int) -> AsyncIterator[list[Any]]:
    """The messages of `channel` behind the id `since`, in order, page by page; none of a channel that cannot be read.

    Raises Refusal where Discord asks to wait or does not know the token, Unreached or Unanswered.
    """
    for _ in range(MOST_PAGES):
        try:
            query = {"after": str(since), "limit": str(PAGE)}
            found = await api.call("GET", "/channels/{}/messages", channel, query=query, patience_s=60.0)
        except Refusal as refusal:
            if refusal.status in (400, 403, 404):
                return
            raise
        if not isinstance(found, list) or not all(isinstance(each, dict) and _ID.fullmatch(str(each.get("id"))) for each in found):
            raise Unanswered("Discord's history of a channel is none")
        if found:
            page = sorted(found, key=lambda message: int(message["id"]))
            since = int(page[-1]["id"])
            yield page
        if len(found) < PAGE:
            return
    log.warning("inbox.rejected", transport=name, reason=f"more than {MOST_PAGES * PAGE:,} messages were missed in channel {channel}")
