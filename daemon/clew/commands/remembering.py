"""Forgetting: what was said here, and all that was made of it."""

from clew.commands.command import Answer, Rooms
from clew.store import Claim, Foreseen

FORGET = "/forget [id | yes]"
YES = "yes"
UNASKED = 20
"""Messages of a conversation that is forgotten without asking back."""


async def forget(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """Forget an exchange or, with nothing named, this conversation. In a group only the owner may, and who wrote what is named."""
    sure = rest.lower() == YES
    forgotten = await rooms.threads.forget(claim.session, "" if sure else rest, claim.items[0].reply_to if not sure else None, rooms.zone)
    person = claim.person
    own = person is not None and all(row.sender in ("", person.id) for row in forgotten.messages) and not forgotten.whole
    if not (claim.direct or own or (person is not None and person.role == "owner")):
        return Answer("In a group only the owner has a conversation forgotten, and everybody what they wrote themselves.")
    what = told(forgotten.with_them)
    if forgotten.whole and not sure and len(forgotten.messages) > UNASKED:
        return Answer(f"This deletes {what} for good, and cannot be undone. If you mean it, write /forget {YES}.")
    said = f"Forgotten for good: {what}."
    if forgotten.whole:
        said = f"This conversation is forgotten for good: {what}. A new one begins with your next message."
    return Answer(said, new_session=forgotten.whole, effects=(forgotten.effect,))


def told(gone: Foreseen) -> str:
    """What is removed, by count and kind."""
    kinds = (
        (gone.messages, "message"),
        (gone.copies, "copy of them in a branch", "copies of them in branches"),
        (gone.files, "file"),
        (gone.notes, "note"),
        (gone.entries, "entry of the summary", "entries of the summary"),
        (gone.quotes, "quotation in another conversation", "quotations in other conversations"),
    )
    parts = [f"{count} {one if count == 1 else (more or [f'{one}s'])[0]}" for count, one, *more in kinds if count]
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]
