"""Who may, and who is who: the owner's `/access`, and everybody's `/link` and `/unlink`."""

from datetime import datetime

from clew import access as words
from clew.commands.command import Answer, Rooms, some, zone_of
from clew.errors import UsageError
from clew.store import AccessEffect, Claim, LinkCode, LoggedOut, Person, links, logins

ACCESS = words.USAGE
ALONE = "This is only for a chat of your own, which nobody else reads."
EXPLAINED = (
    "Write {} to me from the other account, where I do not know you, and you are the same person in both: with the same notes,"
    " conversations and rights. The code is good for {:.0f} minutes and one use. Give it to nobody: whoever sends it is you."
)


async def access(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """Who asks to be let in, who is known, and changes of both."""
    _asker(claim)
    if not rest:
        requests = await rooms.store.access_requests("open", claim.started)
        lines = some([words.request_line(each) for each in requests])
        lines += [f"/access approve CODE or /access deny CODE answers; {ACCESS}"] if lines else []
        return Answer("\n".join(lines) or f"Nobody waits for an answer. {ACCESS}")
    if rest == "people":
        zone = zone_of(rooms, claim)
        people = await rooms.store.people()
        seen = [f"{datetime.fromtimestamp(each.seen, zone):%Y-%m-%d %H:%M}" if each.seen else "never" for each in people]
        return Answer("\n".join(some([words.person_line(each, at) for each, at in zip(people, seen, strict=True)])))
    changed, effect = await words.prepared(rooms.store, words.parse(rest), rooms.plan, claim.started)
    return Answer(words.told(changed), effects=(effect,), changed=(changed,))


async def link(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """A code that makes another account the same person's."""
    asker = _asker(claim)
    if rest:
        return Answer("/link alone gives a code to be sent from your other account. I know you here already.")
    if rooms.unknown == "deny":
        return Answer("Here only the config says who is who (access.unknown is deny).")
    if await rooms.store.linking_rests(claim.started):
        return Answer("Too many wrong codes came in of late, so none is taken just now. Try again in an hour.")
    code = links.drawn()
    _, instant = rooms.plan(claim.address, "")
    offered = LinkCode(links.hashed(code), asker.id, str(claim.address), instant, claim.started + links.LASTS)
    return Answer(EXPLAINED.format(f"{code[:4]}-{code[4:]}", links.LASTS / 60), effects=(offered,))


async def unlink(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """One's accounts, or that one of them is one's own no more."""
    asker = _asker(claim)
    if not rest:
        known = await rooms.store.known(asker.id)
        return Answer("\n".join([*(each.identity for each in known.identities), "/unlink IDENTITY takes a linked one away."]))
    if len(rest.split()) > 1:
        raise UsageError("It is written so: /unlink [IDENTITY]")
    effect = AccessEffect("unlink", rest, by=asker.id)
    changed, effect = await words.prepared(rooms.store, effect, rooms.plan, claim.started)
    return Answer(words.told(changed), effects=(effect,), changed=(changed,))


async def login(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """A link that logs a browser in as the asker."""
    asker = _asker(claim)
    page = rooms.page()
    if not page:
        return Answer("Nobody logs in to the page here: it is off, or http.token is not set, so that it is for its own machine alone.")
    url, link = words.link_to(page, asker.id, claim.started)
    return Answer(words.LOGIN.format(logins.LINK_LASTS / 60, url), effects=(link,))


async def logout(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    """Every browser that is logged in as the asker is logged out."""
    asker = _asker(claim)
    there = [each for each in await rooms.store.logins(claim.started) if each.person == asker.id]
    return Answer(words.logged_out(len(there), ""), effects=(LoggedOut(asker.id),))


def _asker(claim: Claim) -> Person:
    """Whose own chat this is. Raises UsageError in a group."""
    if not claim.direct or claim.person is None:
        raise UsageError(ALONE)
    return claim.person
