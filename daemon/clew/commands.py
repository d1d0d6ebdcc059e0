"""The commands people write in a chat: one table, one function each."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from clew import jobs_command, recall, why
from clew.compacted import entry_line, short, told
from clew.compactor import Compactor, Outcome
from clew.context.notes import Notes, ScopeKind
from clew.context.redact import redact
from clew.context.view import window
from clew.errors import ClewError, StoreError
from clew.meaning import Meaning
from clew.messages import Message
from clew.model_call import ModelCaller
from clew.providers import Provider
from clew.stopping import Stop
from clew.store import Claim, Effect, JobEffect, PersonRole, Scope, Withdrawn
from clew.store.notes import By, DropEntity, DropPreference, NoteEffect, PutPreference, Where
from clew.store.sqlite import SqliteStore
from clew.threads import Threads

LONGEST_LINE = 200
"""Characters of an entry in an answer."""
MOST_LINES = 20
"""Entries of one kind in an answer."""
FOUND = 8
"""Messages that /recall shows."""
QUOTED = 60
"""Characters of a message that an answer quotes."""

EVERYBODY: frozenset[PersonRole] = frozenset({"owner", "member", "guest"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command says. new_session: the chat's next message begins a new session. effects: what takes place with the answer."""

    text: str
    new_session: bool = False
    effects: tuple[Effect | NoteEffect | JobEffect | Withdrawn, ...] = ()


@dataclass(frozen=True, slots=True)
class Rooms:
    """What commands work with. zone: of people who have none of their own. stop: set when somebody stops the one that runs."""

    store: SqliteStore
    compactor: Compactor
    threads: Threads
    providers: Sequence[Provider]
    caller: ModelCaller
    zone: str
    meaning: Meaning | None = None
    stop: Stop = field(default_factory=Stop)


@dataclass(frozen=True, slots=True)
class Command:
    """A command. usage: how it is written; help: one line; run: None for one that never waits; roles: who may use it."""

    usage: str
    help: str
    run: Callable[[Rooms, Claim, str], Awaitable[Answer]] | None
    roles: frozenset[PersonRole] = EVERYBODY


async def answer(rooms: Rooms, claim: Claim) -> Answer:
    """Run the command of a claim. Raises Stopped."""
    word, *rest = claim.items[0].text.split(maxsplit=1)
    command = COMMANDS.get(word.lower())
    if command is None or command.run is None:
        return Answer(f"I do not know {word}. /help lists what I do know.")
    if claim.person is None or claim.person.role not in command.roles:
        return Answer(f"{word} is not for you here.")
    try:
        return await command.run(rooms, claim, rest[0].strip() if rest else "")
    except StoreError:
        raise
    except ClewError as error:
        return Answer(" ".join(filter(None, (error.message, error.hint))))


async def _help(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    lines = [f"{command.usage} — {command.help}" for command in COMMANDS.values()]
    return Answer("\n".join(lines))


async def _new(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    text = "A new conversation begins with your next message. The old one is kept and stays searchable."
    if rest:
        text += " What you wrote behind /new was not sent to me: write it again."
    return Answer(text, new_session=True)


async def _status(rooms: Rooms, claim: Claim, rest: str) -> Answer:
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


async def _compact(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    words = rest.split()
    if unknown := next((word for word in words if word.startswith("--") and word != "--preview"), None):
        return Answer(f"/compact has no option {unknown[:40]}; it has --preview. Nothing was compacted.")
    if "--preview" in words:
        plan = await rooms.compactor.preview(claim.session)
        if not plan.demoted:
            return Answer("There is nothing to compact yet.")
        return Answer(
            f"{plan.demoted} messages would go into the summary and {plan.kept} stay: about {plan.tokens_before:,} tokens now,"
            f" at most {plan.tokens_after:,} then. The call reads about {plan.call_tokens[0]:,} tokens and writes at most"
            f" {plan.call_tokens[1]:,}" + (f", for about ${plan.cost:.4f}." if plan.cost is not None else ".")
        )
    outcome = await _compacted_before(rooms, claim) or await rooms.compactor.compact(
        claim.session, "command", rest or None, payer=claim.person.id if claim.person else "", stop=rooms.stop
    )
    said = {
        "done": f"Compacted: {outcome.covered} messages went into the summary, the window has {outcome.messages} now. Nothing was deleted.",
        "nothing": "There is nothing to compact yet.",
        "lost": "Another compaction was first; everything is in order.",
    }
    return Answer(said.get(outcome.state, f"Compacting did not work: {outcome.error}. The conversation is as it was."))


async def _compacted_before(rooms: Rooms, claim: Claim) -> Outcome | None:
    """What this command came to before a crash kept its answer from being stored."""
    newest = (await rooms.store.view(claim.session)).compaction if claim.resumed else None
    if newest is None or newest.trigger != "command" or newest.created < claim.started:
        return None
    return Outcome("done", newest.messages, newest.covered)


async def _dropped(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    done = await rooms.store.compactions(claim.session)
    newest = next(((at, each) for at, each in reversed(list(enumerate(done, 1))) if each.undone_at is None), None)
    if newest is None:
        return Answer("Nothing was compacted here yet.")
    number, compaction = newest
    report = told(compaction)
    if compaction.kind == "shorten":
        names = [f"- {_of_row(row)}" for row in await rooms.store.messages(report.rows)]
        lines = ["The newest compaction dropped nothing. These are one line each in my view; the transcript has them whole:", *_some(names)]
    else:
        lines = [
            f"The newest compaction put {compaction.covered} messages into the summary: {len(report.kept)} of its entries stayed as they"
            f" were, {len(report.added)} are new, {len(report.changed)} changed, {len(report.dropped)} were dropped."
        ]
        for heading, entries in (("Dropped:", report.dropped), ("Changed:", report.changed)):
            lines += [heading, *_some([f"- {entry_line(each, LONGEST_LINE)}" for each in entries])] if entries else []
        if report.refused:
            lines.append(f"Wanted by the summariser and not made, since no message bears it out: {len(report.refused)}.")
    lines.append(f"Nothing was deleted. /undo compaction takes it back; `clew session compactions {claim.session} {number}` shows it all.")
    return Answer("\n".join(lines))


def _of_row(row: Message) -> str:
    sizes = [f"{result.name}, {len(result.text):,} characters" for result in row.results] or [f"words, {len(row.text):,} characters"]
    return f"{'; '.join(sizes)} ({row.id})"


def _some(lines: list[str]) -> list[str]:
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"… and {len(lines) - MOST_LINES} more"]


async def _undo(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    if rest.lower() == "compaction":
        undone = await rooms.threads.undo_compaction(claim.session)
        done = undone.compaction
        back = f"{done.covered} messages are" if done.kind == "summary" else f"{len(told(done).rows)} results are"
        text = f"Undone: {back} in my view again as they were. `clew session redo` compacts them with other words about what to keep."
        return Answer(text, effects=(undone.effect,))
    if rest:
        return Answer("/undo takes the last exchange back, /undo compaction the newest compaction.")
    taken = await rooms.threads.take_back(claim.session)
    asked = next((row.text for row in taken.messages if row.role == "user"), "")
    text = f"Taken back: I no longer see “{short(asked, QUOTED)}” and what came of it. The transcript keeps it; what tools did stays done."
    return Answer(text, effects=(taken.effect,))


async def _forget(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """Forget an exchange or, with nothing named, this conversation. In a group only the owner may, and who wrote what is named."""
    forgotten = await rooms.threads.forget(claim.session, rest, claim.items[0].reply_to, rooms.zone)
    person = claim.person
    own = person is not None and all(row.sender in ("", person.id) for row in forgotten.messages) and not forgotten.whole
    if not (claim.direct or own or (person is not None and person.role == "owner")):
        return Answer("In a group only the owner has a conversation forgotten, and everybody what they wrote themselves.")
    count = f"{len(forgotten.messages)} messages"
    said = f"Forgotten: {count}, and what I noted from them."
    if forgotten.whole:
        said = f"This conversation is forgotten ({count}), and what I noted from it. A new one begins with your next message."
    tail = f" The file keeps them until somebody runs `clew session delete {claim.session}`."
    return Answer(said + tail, new_session=forgotten.whole, effects=(forgotten.effect,))


async def _pin(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    pinned = await rooms.threads.pin(claim.session, rest, claim.person.id if claim.person else "", claim.items[0].reply_to)
    said = "Pinned" if pinned.new else "It was pinned already"
    when = "It stands in the summary from the next compaction on." if pinned.behind else "It stays word for word, whatever is compacted."
    return Answer(f"{said}: “{short(pinned.message.text, QUOTED)}” ({pinned.message.id}). {when}", effects=(pinned.effect,))


async def _unpin(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    unpinned = await rooms.threads.unpin(claim.session, rest, claim.items[0].reply_to)
    if not unpinned.new:
        return Answer(f"It was not pinned: “{short(unpinned.message.text, QUOTED)}” ({unpinned.message.id}).")
    when = " It leaves the summary at the next compaction." if unpinned.behind else ""
    text = f"No longer pinned: “{short(unpinned.message.text, QUOTED)}” ({unpinned.message.id}).{when}"
    return Answer(text, effects=(unpinned.effect,))


async def _recall(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """The messages that answer a query best: those that recall and the model's search would find here."""
    if not rest:
        return Answer(f"It is written so: {COMMANDS['/recall'].usage}")
    zone, scope = _zone(rooms, claim), await _scope(rooms, claim)
    today = datetime.fromtimestamp(claim.started, zone).date()
    found = [each.candidate for each in await recall.search(rooms.store, scope, rest, limit=FOUND, today=today, meaning=rooms.meaning)]
    lines = [
        f"{datetime.fromtimestamp(each.at, zone):%Y-%m-%d %H:%M} {each.speaker} in {each.chat}: {short(redact(each.text), LONGEST_LINE)}"
        for each in found
    ]
    return Answer("\n".join(lines) or "Nothing was found. What is in my view already is not looked for.")


async def _why(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """What recall gave the newest turn, or the one of the message that is named or replied to."""
    message = await rooms.threads.meant(claim.session, rest, claim.items[0].reply_to)
    given = await rooms.store.recalled_for(await _scope(rooms, claim), claim.session, message.turn if message else None)
    return Answer(why.told(given, _zone(rooms, claim)))


def _zone(rooms: Rooms, claim: Claim) -> ZoneInfo:
    return ZoneInfo((claim.direct and claim.person and claim.person.timezone) or rooms.zone)


async def _scope(rooms: Rooms, claim: Claim) -> Scope:
    """What may be seen where a command is answered, but for what is in view."""
    compaction = (await rooms.store.view(claim.session)).compaction
    return await rooms.store.scope_for(session=(claim.session, str(claim.address), compaction.to_seq if compaction else 0))


async def _memory(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """What is noted of the person in their own chat, else of the chat; preferences are set and cleared, changes are undone."""
    where = Where(address=str(claim.address))
    kind: ScopeKind = "user" if claim.direct and claim.person else "project"
    by = By(claim.person.id if claim.person else "", hand=True)
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
    return Answer(f"It is written so: {COMMANDS['/memory'].usage}")


async def _allowed(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """The tools that have a yes for good here: one's own, of everybody for an owner; one is taken back by its name."""
    person = None if claim.person and claim.person.role == "owner" else claim.person.id if claim.person else ""
    standing = await rooms.store.standing(str(claim.address), person)
    match rest.split():
        case []:
            lines = [f"{each.tool}, for {each.person or 'scheduled prompts'}: {each.by} said always" for each in standing]
            return Answer("\n".join(_some(lines)) or "Nothing may run here without being asked for, but for what the config allows.")
        case ["remove", tool] if any(each.tool == tool for each in standing):
            return Answer(f"I will ask again before {tool} is called here.", effects=(Withdrawn(str(claim.address), tool, person),))
        case ["remove", _]:
            return Answer("Nobody said always to a tool of that name here.")
    return Answer(f"It is written so: {COMMANDS['/allowed'].usage}")


def _noted(notes: Notes) -> str:
    lines = [f"{each.key}: {each.value}" for each in notes.preferences]
    for entity in notes.entities:
        facts = [f"{fact.entity} {fact.words()}" if fact.target else fact.words() for fact in entity.facts if fact.until is None]
        lines.append(short(f"{entity.heading}: {'; '.join(facts)}" if facts else entity.heading, LONGEST_LINE))
    return "\n".join(_some(lines)) or "Nothing is noted here."


async def _jobs(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    zone = (claim.direct and claim.person and claim.person.timezone) or rooms.zone
    said = await jobs_command.answer(rooms.store, claim, rest, zone)
    return Answer(said.text, effects=said.effects)


COMMANDS = {
    "/help": Command("/help", "this list", _help),
    "/new": Command("/new", "begin a new conversation; the old one stays searchable", _new),
    "/status": Command("/status", "the session, its model, its window and its tokens", _status),
    "/compact": Command("/compact [what to keep] [--preview]", "put older messages into the summary now", _compact),
    "/dropped": Command("/dropped", "what the newest compaction dropped and changed", _dropped),
    "/undo": Command("/undo [compaction]", "take back the last exchange, or the newest compaction", _undo),
    "/pin": Command("/pin [id]", "keep a message word for word: the one replied to, else the newest", _pin),
    "/unpin": Command("/unpin [id]", "let go of it again: the one replied to, else the one pinned last", _unpin),
    "/recall": Command("/recall QUERY", "find what was said earlier, here and in your other conversations", _recall),
    "/why": Command("/why [id]", "what was recalled for a message, and why: the one replied to, else the newest", _why),
    "/forget": Command("/forget [id]", "forget this conversation, or one exchange: the one named or replied to; no /undo", _forget),
    "/memory": Command("/memory [set KEY VALUE | clear NAME | history | undo]", "what is known here beyond this conversation", _memory),
    "/jobs": Command(jobs_command.USAGE, "your jobs, and those that speak here: when each is due, and what became of it", _jobs),
    "/allowed": Command("/allowed [remove TOOL]", "the tools that may run here because somebody said always", _allowed),
    "/stop": Command("/stop", "stop the reply that is being written", None),
}

CONTROL = frozenset(name for name, command in COMMANDS.items() if command.run is None)
"""Commands that never wait in the session's lane: they are carried out when they are stored."""
