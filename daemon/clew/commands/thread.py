"""The conversation itself: another one, and how it stands."""

from clew.commands.command import Answer, Rooms
from clew.context.view import window
from clew.store import Claim


async def new(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    text = "A new conversation begins with your next message. The old one is kept and stays searchable."
    if rest:
        text += " What you wrote behind /new was not sent to me: write it again."
    return Answer(text, new_session=True)


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
    if fallbacks:
        lines.insert(2, f"Where it fails: {', '.join(f'{each.model or each.kind} ({each.name})' for each in fallbacks)}")
    if spent.by and spent.by != main.name:
        lines.append(f"The last reply came from {spent.by}")
    resting = [name for name, breaker in rooms.caller.breakers.items() if breaker.state != "closed"]
    lines += [f"{name} kept failing and is left alone for a while" for name in resting]
    return Answer("\n".join(lines))
