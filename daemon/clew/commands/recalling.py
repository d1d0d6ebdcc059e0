"""What was said earlier: finding it, and why it was recalled."""

from datetime import datetime

from clew import recall as engine
from clew import why as reasons
from clew.commands.command import LONGEST_LINE, Answer, Rooms, scope_of, zone_of
from clew.compacted import short
from clew.context.redact import redact
from clew.store import Claim

RECALL = "/recall QUERY"
FOUND = 8
"""Messages that /recall shows."""


async def recall(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """The messages that answer a query best: those that recall and the model's search would find here."""
    if not rest:
        return Answer(f"It is written so: {RECALL}")
    zone, scope = zone_of(rooms, claim), await scope_of(rooms, claim)
    today = datetime.fromtimestamp(claim.started, zone).date()
    found = [each.candidate for each in await engine.search(rooms.store, scope, rest, limit=FOUND, today=today, meaning=rooms.meaning)]
    lines = [
        f"{datetime.fromtimestamp(each.at, zone):%Y-%m-%d %H:%M} {each.speaker} in {each.chat}: {short(redact(each.text), LONGEST_LINE)}"
        for each in found
    ]
    return Answer("\n".join(lines) or "Nothing was found. What is in my view already is not looked for.")


async def why(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """What recall gave the newest turn, or the one of the message that is named or replied to."""
    message = await rooms.threads.meant(claim.session, rest, claim.items[0].reply_to)
    given = await rooms.store.recalled_for(await scope_of(rooms, claim), claim.session, message.turn if message else None)
    return Answer(reasons.told(given, zone_of(rooms, claim)))
