"""Who is asked for a yes, and in which words."""

from collections.abc import Callable, Mapping, Sequence

from clew.clock import Time, new_id
from clew.context import consent
from clew.messages import ToolCall
from clew.store import Claim, Question, Reply
from clew.store.sql import SqlStore
from clew.transport import Address, Part

Plan = Callable[[Address, str], tuple[tuple[Part, ...], bool]]
"""(the parts of a reply, whether it counts as sent when committed)."""

NOTICE = "That needs a yes from whoever runs me. I have asked, and go on when there is an answer."


class Asking:
    """Makes questions of calls. lasts: seconds for which a question is open."""

    def __init__(self, store: SqlStore, lasts: float, plan: Plan, time: Time) -> None:
        self._store = store
        self._lasts = lasts
        self._plan = plan
        self._time = time

    async def question(self, claim: Claim, calls: Sequence[ToolCall], wordings: Mapping[str, str]) -> Question | None:
        """The question to whoever answers for this turn: its person where it is answered; for guests and scheduled prompts the owner,
        where they were heard last. None: nobody can be asked."""
        person, job = claim.person, next((item.job for item in claim.items if item.job), None)
        if claim.kind == "message" and person is not None and person.role != "guest":
            to, whom = claim.address, person.id
        elif found := await self._store.owner_chat():
            to, whom = Address.parse(found[0]), found[1]
        else:
            return None
        identifier = new_id()
        here = to == claim.address and claim.kind == "message"
        behalf = "" if here else f"The scheduled prompt {job}" if job else f"{person.id if person else 'Somebody'} at {claim.address}"
        text = consent.question(calls, identifier[: consent.QUESTION_CODE], lasting(self._lasts), behalf)
        newest = claim.items[-1] if here and claim.items else None
        reply = self._reply(to, text, newest.client_id if newest else "", newest.context if newest else {})
        notice = None
        if not here and not job:
            item = claim.items[-1]
            notice = self._reply(claim.address, NOTICE, item.client_id, item.context)
        behalf_of, expires = person.id if person else "", self._time.wall() + self._lasts
        return Question(identifier, tuple(calls), whom, behalf_of, expires, reply, here, notice, wordings)

    def _reply(self, to: Address, text: str, in_reply_to: str, context: Mapping[str, str]) -> Reply:
        parts, instant = self._plan(to, text)
        return Reply(to, text, parts, in_reply_to=in_reply_to, context=context, instant=instant)


def lasting(seconds: float) -> str:
    """A duration in words, of its largest unit that it is a whole number of."""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}{'s' * (count > 1)}"
    return f"{seconds:g} seconds"
