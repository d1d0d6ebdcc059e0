"""What the window holds: compacting it, what that dropped, taking it back, and what stays word for word."""

from dataclasses import asdict

from clew import contents
from clew.commands.command import LONGEST_LINE, QUOTED, Answer, Rooms, some
from clew.compacted import entry_line, outcome_words, preview_words, short, told, undone_words
from clew.compactor import Outcome
from clew.messages import Message
from clew.store import Claim


async def compact(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    words = rest.split()
    if unknown := next((word for word in words if word.startswith("--") and word != "--preview"), None):
        return Answer(f"/compact has no option {unknown[:40]}; it has --preview. Nothing was compacted.")
    if "--preview" in words:
        return Answer(preview_words(**asdict(await rooms.compactor.preview(claim.session))))
    outcome = await _compacted_before(rooms, claim) or await rooms.compactor.compact(
        claim.session, "command", rest or None, payer=claim.person.id if claim.person else "", stop=rooms.stop
    )
    return Answer(outcome_words(**asdict(outcome)))


async def context(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """What is in the window, by part, and when it is compacted next."""
    return Answer(contents.told(await rooms.contents.of(claim.session)))


async def _compacted_before(rooms: Rooms, claim: Claim) -> Outcome | None:
    """What this command came to before a crash kept its answer from being stored."""
    newest = (await rooms.store.view(claim.session)).compaction if claim.resumed else None
    if newest is None or newest.trigger != "command" or newest.created < claim.started:
        return None
    return Outcome("done", newest.messages, newest.covered)


async def dropped(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    done = await rooms.store.compactions(claim.session)
    newest = next(((at, each) for at, each in reversed(list(enumerate(done, 1))) if each.undone_at is None), None)
    if newest is None:
        return Answer("Nothing was compacted here yet.")
    number, compaction = newest
    report = told(compaction)
    if compaction.kind == "shorten":
        names = [f"- {_of_row(row)}" for row in await rooms.store.messages(report.rows)]
        lines = ["The newest compaction dropped nothing. These are one line each in my view; the transcript has them whole:", *some(names)]
    else:
        lines = [
            f"The newest compaction put {compaction.covered} messages into the summary: {len(report.kept)} of its entries stayed as they"
            f" were, {len(report.added)} are new, {len(report.changed)} changed, {len(report.dropped)} were dropped."
        ]
        for heading, entries in (("Dropped:", report.dropped), ("Changed:", report.changed)):
            lines += [heading, *some([f"- {entry_line(each, LONGEST_LINE)}" for each in entries])] if entries else []
        if report.refused:
            lines.append(f"Wanted by the summariser and not made, since no message bears it out: {len(report.refused)}.")
    lines.append(f"Nothing was deleted. /undo compaction takes it back; `clew session compactions {claim.session} {number}` shows it all.")
    return Answer("\n".join(lines))


def _of_row(row: Message) -> str:
    sizes = [f"{result.name}, {len(result.text):,} characters" for result in row.results] or [f"words, {len(row.text):,} characters"]
    return f"{'; '.join(sizes)} ({row.id})"


async def undo(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    if rest.lower() == "compaction":
        undone = await rooms.threads.undo_compaction(claim.session)
        done = undone.compaction
        back = undone_words(done.kind, done.covered, len(told(done).rows))
        text = f"{back} `clew session redo` compacts them with other words about what to keep."
        return Answer(text, effects=(undone.effect,))
    if rest:
        return Answer("/undo takes the last exchange back, /undo compaction the newest compaction.")
    taken = await rooms.threads.take_back(claim.session)
    asked = next((row.text for row in taken.messages if row.role == "user"), "")
    text = f"Taken back: I no longer see “{short(asked, QUOTED)}” and what came of it. The transcript keeps it; what tools did stays done."
    return Answer(text, effects=(taken.effect,))


async def pin(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    pinned = await rooms.threads.pin(claim.session, rest, claim.person.id if claim.person else "", claim.items[0].reply_to)
    said = "Pinned" if pinned.new else "It was pinned already"
    when = "It stands in the summary from the next compaction on." if pinned.behind else "It stays word for word, whatever is compacted."
    return Answer(f"{said}: “{short(pinned.message.text, QUOTED)}” ({pinned.message.id}). {when}", effects=(pinned.effect,))


async def unpin(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    unpinned = await rooms.threads.unpin(claim.session, rest, claim.items[0].reply_to)
    if not unpinned.new:
        return Answer(f"It was not pinned: “{short(unpinned.message.text, QUOTED)}” ({unpinned.message.id}).")
    when = " It leaves the summary at the next compaction." if unpinned.behind else ""
    text = f"No longer pinned: “{short(unpinned.message.text, QUOTED)}” ({unpinned.message.id}).{when}"
    return Answer(text, effects=(unpinned.effect,))
