"""What is kept beyond the window: notes, and forgetting."""

from clew.commands.command import LONGEST_LINE, MOST_LINES, Answer, Rooms, some
from clew.compacted import short
from clew.context.notes import Notes, ScopeKind
from clew.store import Claim, Foreseen
from clew.store.notes import By, DropEntity, DropPreference, NoteEffect, PutPreference, Where

FORGET = "/forget [id | yes]"
YES = "yes"
UNASKED = 20
"""Messages of a conversation that is forgotten without asking back."""
MEMORY = "/memory [set KEY VALUE | clear NAME | history | undo]"


async def memory(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """What is noted of the person in their own chat, else of the chat; preferences are set and cleared, changes are undone."""
    where = Where(address=str(claim.address))
    kind: ScopeKind = "user" if claim.direct and claim.person else "project"
    by = By(claim.person.id if claim.person else "", hand=True)
    if rest.startswith("set ") and await rooms.store.is_private(claim.session):
        return Answer("This conversation is private, so nothing is noted of it. /private off, then write it again.")
    match rest.split(maxsplit=2):
        case []:
            return Answer(_noted(await rooms.store.notes.listing(where, None, claim.started)))
        case ["set", key, value]:
            return Answer(f"Set. {key}: {value}", effects=(NoteEffect(where, kind, by, (PutPreference(key, value),)),))
        case ["clear", *words] if words:
            name = " ".join(words)
            return Answer(f"Cleared: {name}.", effects=(NoteEffect(where, kind, by, (DropPreference(name), DropEntity(name))),))
        case ["history"]:
            changes = await rooms.store.notes.changes(where, kind, MOST_LINES)
            lines = [f"{each.number}. {each.summary}{' (undone)' * (each.undone_by is not None)}" for each in changes]
            return Answer("\n".join(lines) or "Nothing was changed yet.")
        case ["undo"]:
            newest = await rooms.store.notes.newest(where, kind)
            return Answer(f"Undone: {newest.summary}", effects=(NoteEffect(where, kind, by, undo=newest.number),))
    return Answer(f"It is written so: {MEMORY}")


def _noted(notes: Notes) -> str:
    lines = [f"{each.key}: {each.value}" for each in notes.preferences]
    for entity in notes.entities:
        facts = [f"{fact.entity} {fact.words()}" if fact.target else fact.words() for fact in entity.facts if fact.until is None]
        lines.append(short(f"{entity.heading}: {'; '.join(facts)}" if facts else entity.heading, LONGEST_LINE))
    return "\n".join(some(lines)) or "Nothing is noted here."


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
