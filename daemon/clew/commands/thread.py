"""The conversation itself: another one, one that branches off, one that is not remembered, and how it stands."""

from datetime import datetime, tzinfo

from clew import costs
from clew.commands.command import Answer, Rooms, some, zone_of
from clew.compacted import short
from clew.context.view import window
from clew.store import Claim, Effect, SessionRow, Switch, exports

RESUME, BRANCH, PRIVATE = "/resume ID", "/branch [N]", "/private [on | off]"
LISTED = 200
"""Threads that are looked at for /sessions."""
LONGEST_TITLE = 60
"""Characters."""


async def new(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    text = "A new conversation begins with your next message. The old one is kept and stays searchable."
    private = await rooms.store.private_rows(claim.session)
    if private:
        text = f"A new conversation begins with your next message. What was said in private is deleted for good ({len(private)} messages)."
    if rest:
        text += " What you wrote behind /new was not sent to me: write it again."
    effects = (Effect("forget", private, zone=rooms.zone),) if private else ()
    return Answer(text, new_session=True, effects=effects)


async def sessions(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """The threads that can be gone on with here."""
    rows = await rooms.store.sessions_for(str(claim.address), LISTED)
    lines = [_listed(row, claim, zone_of(rooms, claim)) for row in rows if row.messages or row.id == claim.session]
    more = ["/resume ID goes on with one of them here."] if len(lines) > 1 else []
    return Answer("\n".join([*some(lines), *more]))


def _listed(row: SessionRow, claim: Claim, zone: tzinfo) -> str:
    here = " (this one)" if row.id == claim.session else ""
    where = f", at {row.address}" if row.address != str(claim.address) else ""
    title = f", {short(row.title, LONGEST_TITLE)}" if row.title else ""
    size = f"{row.messages:,} message{'' if row.messages == 1 else 's'}"
    return f"{row.id}{here}: {size}, last {datetime.fromtimestamp(row.updated, zone):%Y-%m-%d %H:%M}{where}{title}"


async def resume(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """Go on with another thread of the person here; it stays in its own chat too."""
    if not rest:
        return Answer(f"It is written so: {RESUME}. /sessions lists those that you can go on with here.")
    row = await rooms.store.find_session_for(str(claim.address), rest)
    if row.id == claim.session:
        return Answer("That is the conversation we are in.")
    elsewhere = f" It is answered here from now on, and stays at {row.address} too." if row.address != str(claim.address) else ""
    text = f"Your next message goes on with {row.id} ({row.messages} messages).{elsewhere} This one is kept: /resume {claim.session}"
    return Answer(text, effects=(Switch(row.id),))


async def branch(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """A new thread that begins as this one is, or was at a message; both go on, each for itself."""
    switch = await rooms.threads.branch(claim.session, rest, claim.items[0].reply_to)
    text = (
        f"Your next message begins a branch, {switch.session}, that knows all up to message #{switch.seq} of {switch.parent}."
        f" That thread stays as it is: /resume {claim.session} goes on with it."
    )
    return Answer(text, effects=(switch,))


async def private(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """Whether what is said here is remembered anywhere but in this thread."""
    on = await rooms.store.is_private(claim.session)
    match rest.lower():
        case "on" if not on:
            return Answer(f"Private from now on. {MEANS} /private off ends it.", effects=(Effect("private", ()),))
        case "off" if on:
            text = "What is said from now on is remembered again. What was said in private stays so until this conversation ends with /new."
            return Answer(text, effects=(Effect("open", ()),))
        case "" | "on" | "off":
            return Answer(f"This conversation is private. {MEANS}" if on else f"This conversation is not private. {PRIVATE} changes that.")
    return Answer(f"It is written so: {PRIVATE}")


MEANS = (
    "What is said here reaches no other conversation, no note and no search, and is deleted for good when this conversation ends with /new."
    " Until then I keep it, so that I can answer you."
)
"""What private is."""


async def export(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """A link that gives the person this conversation as a file, once. Platforms get no file: where one is sent, others may see it."""
    if not claim.direct or claim.person is None:
        return Answer("Write /export in a chat of your own with me: what it gives is for you alone.")
    by_hand = f"`clew session export {claim.session}` writes it out"
    served = rooms.served(claim.address)
    if not served:
        return Answer(f"My page cannot be reached from here. On the machine that I run on {by_hand}: ask whoever runs me.")
    secret, link = exports.made(claim.session, claim.person.id, claim.started)
    text = (
        f"This conversation as a file, once and within an hour: {served}/export/{secret}\nWhoever has the link has the file: do not pass"
        f" it on. On the machine that I run on {by_hand}, too."
    )
    return Answer(text, effects=(link,))


async def status(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    rows = await rooms.store.view(claim.session)
    spent = await rooms.store.session_usage(claim.session)
    main, *fallbacks = rooms.providers
    limits = await main.limits()
    share = spent.last.cache_read / spent.last.prompt if spent.last.prompt else 0.0
    behind = bool(rows.compaction and rows.compaction.text)
    lines = [
        f"Session {claim.session} at {claim.address}",
        f"Model: {main.model or main.kind} ({main.name}), window {limits.window:,} tokens",
        f"In view: {len(window(rows.messages).messages)} messages" + (", behind a summary" if behind else ""),
        f"Model calls: {spent.calls}; tokens in {spent.usage.prompt:,}, out {spent.usage.output:,}",
        f"Prompt cache: {spent.usage.cache_read:,} read, {spent.usage.cache_write:,} written; last reply read {share:.0%} of its prompt",
    ]
    if turn := await costs.newest_turn(rooms.store, claim.session):
        lines.append(costs.cache_line(turn))
    lines.append(f"Cost: {costs.price(await rooms.store.spending.session_sums(claim.session))}")
    if await rooms.store.is_private(claim.session):
        lines.append("Private: nothing of it is remembered elsewhere")
    if fallbacks:
        lines.insert(2, f"Where it fails: {', '.join(f'{each.model or each.kind} ({each.name})' for each in fallbacks)}")
    if spent.by and spent.by != main.name:
        lines.append(f"The last reply came from {spent.by}")
    resting = [name for name, breaker in rooms.caller.breakers.items() if breaker.state != "closed"]
    lines += [f"{name} kept failing and is left alone for a while" for name in resting]
    return Answer("\n".join(lines))
