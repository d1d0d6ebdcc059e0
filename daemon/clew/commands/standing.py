"""What goes on without being asked for, and what it costs: jobs, yeses for good, budgets."""

from clew import costs, jobs_command
from clew.commands.command import Answer, Rooms, some
from clew.store import Claim, Withdrawn

ALLOWED = "/allowed [remove TOOL]"


async def allowed(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """The tools that have a yes for good here: one's own, of everybody for an owner; one is taken back by its name."""
    person = None if claim.person and claim.person.role == "owner" else claim.person.id if claim.person else ""
    standing = await rooms.store.standing(str(claim.address), person)
    match rest.split():
        case []:
            lines = [f"{each.tool}, for {each.person or 'scheduled prompts'}: {each.by} said always" for each in standing]
            return Answer("\n".join(some(lines)) or "Nothing may run here without being asked for, but for what the config allows.")
        case ["remove", tool] if any(each.tool == tool for each in standing):
            return Answer(f"I will ask again before {tool} is called here.", effects=(Withdrawn(str(claim.address), tool, person),))
        case ["remove", _]:
            return Answer("Nobody said always to a tool of that name here.")
    return Answer(f"It is written so: {ALLOWED}")


async def cost(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """What the newest turn, this conversation and the person (in a group: the chat) took, and what is left of budgets. All of clew an owner
    sees, alone."""
    person = claim.person
    told = await costs.report(
        rooms.store,
        session=claim.session,
        person=person.id if person else "",
        direct=claim.direct,
        zones=((person and person.timezone) or rooms.zone, rooms.zone),
        everybody=claim.direct and person is not None and person.role == "owner",
        limits=rooms.limits,
        now=claim.started,
    )
    return Answer("\n".join(costs.lines(told)))


async def jobs(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    zone = (claim.direct and claim.person and claim.person.timezone) or rooms.zone
    said = await jobs_command.answer(rooms.store, claim, rest, zone)
    return Answer(said.text, effects=said.effects)
