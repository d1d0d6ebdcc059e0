"""What is noted of whoever asks, or of their chat: read and corrected, in plain words."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo

from clew.commands.command import LONGEST_LINE, MOST_LINES, Answer, Rooms, some, zone_of
from clew.compacted import short
from clew.context.naming import name_key, text_key
from clew.context.notes import Entity, Fact, Notes, Preference, ScopeKind
from clew.errors import NotFound, UsageError
from clew.store import Claim
from clew.store.notes import By, DropEntity, DropFact, DropPreference, DropRelation, Edit, NoteEffect, PutFact, PutPreference, Where

MEMORY = "/memory [show NAME | set KEY VALUE | add NAME: FACT | change WORDS -> WORDS | delete WORDS | history | undo]"
PRIVATE = "This conversation is private, so nothing is noted of it. /private off, then write it again."
ARROW = "->"


@dataclass(frozen=True, slots=True)
class _Found:
    """What is meant: a preference, an entity (without a fact), or a fact of one."""

    noted: Preference | Entity
    fact: Fact | None = None

    @property
    def scope(self) -> ScopeKind:
        return self.noted.scope

    @property
    def told(self) -> str:
        if isinstance(self.noted, Preference):
            return f"{self.noted.key}: {self.noted.value}"
        return _line(self.noted, self.fact) if self.fact else f"{self.noted.heading}, with all that is known of it"

    def drop(self) -> Edit:
        if isinstance(self.noted, Preference):
            return DropPreference(self.noted.key)
        if self.fact is None:
            return DropEntity(self.noted.name)
        if self.fact.target:
            return DropRelation(self.fact.entity, self.fact.target, self.fact.text)
        return DropFact(self.noted.name, self.fact.text)


async def memory(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """What is noted of the person in their own chat, else of the chat: shown, added to, changed, deleted; changes are undone."""
    where = Where(address=str(claim.address))
    kind: ScopeKind = "user" if claim.direct and claim.person else "project"
    by = By(claim.person.id if claim.person else "", hand=True)
    word, _, words = rest.partition(" ")
    words = words.strip()
    if word in ("set", "add", "change") and await rooms.store.is_private(claim.session):
        return Answer(PRIVATE)
    noted = await rooms.store.notes.listing(where, None, claim.started)
    match word, words:
        case "", _:
            return Answer(_listed(noted))
        case "show", name if name:
            return Answer(_shown(noted, name, zone_of(rooms, claim)))
        case "set", _ if len(pair := words.split(maxsplit=1)) == 2:
            return Answer(f"Set. {pair[0]}: {pair[1]}", effects=(NoteEffect(where, kind, by, (PutPreference(*pair),)),))
        case "add", _ if len(about := _parted(words, ":")) == 2:
            name, fact = about
            return Answer(f"Noted. {name}: {fact}", effects=(NoteEffect(where, kind, by, (PutFact(name, fact),)),))
        case "change", _ if len(pair := _parted(words, ARROW)) == 2:
            return _changed(_meant(noted, pair[0]), pair[1], where, by)
        case (("delete" | "clear"), name) if name:
            found = _meant(noted, name)
            return Answer(f"Deleted. {found.told}", effects=(NoteEffect(where, found.scope, by, (found.drop(),)),))
        case "history", "":
            changes = await rooms.store.notes.changes(where, kind, MOST_LINES)
            lines = [f"{each.number}. {each.summary}{' (undone)' * (each.undone_by is not None)}" for each in changes]
            return Answer("\n".join(lines) or "Nothing was changed yet.")
        case "undo", "":
            newest = await rooms.store.notes.newest(where, kind)
            return Answer(f"Undone: {newest.summary}", effects=(NoteEffect(where, kind, by, undo=newest.number),))
    return Answer(f"It is written so: {MEMORY}")


def _parted(words: str, by: str) -> list[str]:
    return [part for part in (each.strip() for each in words.split(by, 1)) if part]


def _changed(found: _Found, new: str, where: Where, by: By) -> Answer:
    match found.noted, found.fact:
        case Preference(), _:
            edits: tuple[Edit, ...] = (PutPreference(found.noted.key, new),)
            said = f"{found.noted.key}: {new}"
        case Entity(), Fact() as fact if not fact.target:
            edits = (DropFact(found.noted.name, fact.text), PutFact(found.noted.name, new))
            said = f"{found.noted.name}: {new}"
        case _:
            raise UsageError(f"I can change a preference or a fact, and this is {found.told}.", hint="/memory delete and /memory add do.")
    return Answer(f"Changed. {said} (before: {found.told})", effects=(NoteEffect(where, found.scope, by, edits),))


def _meant(noted: Notes, words: str) -> _Found:
    """The one note that is named, or that alone has these words. Raises NotFound, or UsageError where several do."""
    every = list(_every(noted))
    named = [each for each in every if not each.fact and name_key(_name(each)) == name_key(words)]
    exact = [each for each in every if each.fact and text_key(each.fact.words()) == text_key(words)]
    found = named or exact or [each for each in every if (each.fact or isinstance(each.noted, Preference)) and _has(each, words)]
    if not found:
        raise NotFound(f"Nothing is noted with the words “{short(words, LONGEST_LINE)}”.", hint="/memory lists what is.")
    if len(found) > 1:
        lines = "\n".join(some([f"- {short(each.told, LONGEST_LINE)}" for each in found]))
        raise UsageError(f"Several notes have these words; say more of the one that you mean:\n{lines}")
    return found[0]


def _every(noted: Notes) -> Iterator[_Found]:
    yield from map(_Found, noted.preferences)
    for entity in noted.entities:
        yield _Found(entity)
        own = (fact for fact in entity.facts if fact.until is None and (not fact.target or fact.entity == entity.name))
        yield from (_Found(entity, fact) for fact in own)


def _name(found: _Found) -> str:
    return found.noted.key if isinstance(found.noted, Preference) else found.noted.name


def _has(found: _Found, words: str) -> bool:
    return words.casefold() in found.told.casefold()


def _line(entity: Entity, fact: Fact) -> str:
    return f"{fact.entity} {fact.words()}" if fact.target else f"{entity.name}: {fact.words()}"


def _listed(noted: Notes) -> str:
    lines = [f"{each.key}: {each.value}" for each in noted.preferences]
    for entity in noted.entities:
        facts = [f"{fact.entity} {fact.words()}" if fact.target else fact.words() for fact in entity.facts if fact.until is None]
        lines.append(short(f"{entity.heading}: {'; '.join(facts)}" if facts else entity.heading, LONGEST_LINE))
    return "\n".join(some(lines)) or "Nothing is noted here."


def _shown(noted: Notes, name: str, zone: tzinfo) -> str:
    """All that is known of an entity, what holds no longer too, or a preference. Raises NotFound or UsageError."""
    found = [each for each in _every(noted) if not each.fact and name_key(_name(each)) == name_key(name)] or [_meant(noted, name)]
    lines: list[str] = []
    for each in found:
        if isinstance(each.noted, Preference):
            lines.append(f"{each.told}, set on {_day(each.noted.at, zone)}")
            continue
        lines.append(each.noted.heading)
        lines += [f"- {_dated(each.noted, fact, zone)}" for fact in each.noted.facts]
    return "\n".join(some(lines))


def _dated(entity: Entity, fact: Fact, zone: tzinfo) -> str:
    until = f" until {_day(fact.until, zone)}" if fact.until is not None else ""
    expires = f", expires {_day(fact.expires, zone)}" if fact.expires is not None and fact.until is None else ""
    source = f", from message {fact.source}" if fact.source else ""
    words = fact.words() if not fact.target or fact.entity == entity.name else f"{fact.entity} {fact.words()}"
    return f"{words} (since {_day(fact.since, zone)}{until}{expires}{source})"


def _day(at: float, zone: tzinfo) -> str:
    return f"{datetime.fromtimestamp(at, zone):%Y-%m-%d}"
