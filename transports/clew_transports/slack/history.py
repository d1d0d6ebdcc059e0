"""What was said while clew did not listen: conversations and threads, read again from Slack."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import structlog

from clew_transports.slack.api import ACCOUNT, HALF_DONE, LATER, Api, Refusal
from clew_transports.slack.place import Place, order

OVERLAP_S = 600
"""Seconds that are read again. Slack offers an event up to five minutes later again, so that a later one may have been stored before it."""
PAGE = 200
"""Messages asked for at once; what Slack recommends."""
MAX_PAGES = 10
"""Pages read of one conversation or thread. Of what is longer the newest are read."""
MAX_THREADS = 50
"""Threads that are read again: of those that clew was called into before the ones in which something was said last, and of each
conversation the newest that began meanwhile."""
KINDS = ("im", "mpim", "public_channel", "private_channel")

log = structlog.get_logger()


async def missed(api: Api, place: Place) -> AsyncIterator[list[dict[str, Any]]]:
    """The messages since `place`, as events: of each conversation and thread a list, the oldest first. Waits where Slack asks to.

    Raises Refusal, Unreached or Unanswered where it has to be tried again as a whole.
    """
    oldest = place.before(OVERLAP_S)
    threads = [(channel, thread) for channel, _, thread in (each.partition("/") for each in place.threads[-MAX_THREADS:])]
    for channel in await _conversations(api, place):
        messages = await _read(api, "conversations.history", channel, oldest)
        threads += [(channel, str(each["ts"])) for each in messages if each.get("reply_count")][-MAX_THREADS:]
        yield [{"type": "message", **each, "channel": channel} for each in messages]
    for channel, thread in dict.fromkeys(threads):
        replies = await _read(api, "conversations.replies", channel, oldest, ts=thread)
        yield [{"type": "message", **each, "channel": channel} for each in replies if each.get("ts") != thread]


async def _conversations(api: Api, place: Place) -> list[str]:
    """Those that were met, and those that the app may list and is a member of."""
    found = dict.fromkeys(place.channels)
    for kind in KINDS:
        cursor = ""
        for _ in range(MAX_PAGES):
            try:
                answer = await patient(api, "users.conversations", types=kind, limit=PAGE, exclude_archived=True, cursor=cursor)
            except Refusal as refusal:
                if refusal.error != "missing_scope":
                    raise
                break  # the app may not list these: the ones that were met have to do
            found |= dict.fromkeys(str(each["id"]) for each in answer.get("channels") or ())
            cursor = _next(answer)
            if not cursor:
                break
    return list(found)


async def _read(api: Api, method: str, channel: str, oldest: str, **more: str) -> list[dict[str, Any]]:
    """The messages behind `oldest`, the oldest first; none where the bot may not read."""
    found: dict[str, dict[str, Any]] = {}
    cursor = ""
    for _ in range(MAX_PAGES):
        try:
            answer = await patient(api, method, channel=channel, oldest=oldest, limit=PAGE, cursor=cursor, **more)
        except Refusal as refusal:
            if refusal.error in ACCOUNT - {"missing_scope"} | HALF_DONE | LATER:
                raise
            log.warning("inbox.rejected", transport="slack", reason=f"{channel} cannot be read again: {refusal}")
            break
        for each in answer.get("messages") or ():
            if isinstance(each, dict) and isinstance(each.get("ts"), str):
                found[each["ts"]] = each
        cursor = _next(answer)
        if not cursor:
            break
    else:
        log.warning("inbox.rejected", transport="slack", reason=f"more than {MAX_PAGES * PAGE} messages were missed in {channel}")
    return [found[ts] for ts in sorted(found, key=order)]


async def patient(api: Api, method: str, **arguments: Any) -> dict[str, Any]:
    """`Api.call`, again for as long as Slack asks to wait. Raises what it raises for any other reason."""
    while True:
        try:
            return await api.call(method, {key: value for key, value in arguments.items() if value != ""})
        except Refusal as refusal:
            if refusal.error not in LATER or refusal.retry_after is None:
                raise
            await asyncio.sleep(refusal.retry_after)


def _next(answer: dict[str, Any]) -> str:
    more = answer.get("response_metadata")
    return str(more.get("next_cursor") or "") if isinstance(more, dict) else ""
