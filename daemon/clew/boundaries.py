"""At the end of a turn: whether the thread may be cut here, in the background, before it has to be."""

from itertools import islice

from clew.clock import Time
from clew.config import Compression
from clew.context import ledger as ledgers
from clew.context.boundaries import TOPIC_BEFORE, Reason, begins_topic, closes_last_task, holds_enough, says_done
from clew.fitting import TurnView
from clew.model_call import TTL_SECONDS
from clew.providers import Provider
from clew.store import Boundary

REST = 5.0
"""Seconds without a new message after which a finished task or a change of topic is compacted: not while somebody is writing on."""
QUIET_WITHOUT_CACHE = 3600.0
"""Seconds of silence that count as quiet where the provider has no cache of stated lifetime."""


class Boundaries:
    """Marks places. own: the session's own model, whose cache says what quiet is."""

    def __init__(self, settings: Compression, own: Provider, time: Time) -> None:
        self._settings = settings
        self._own = own
        self._time = time

    def at_end(self, turn: TurnView, reply: str | None) -> Boundary | None:
        """The place that the end of a turn marks, None while the window holds too little. reply: None where nothing was answered."""
        settings = self._settings
        if not settings.enabled or not holds_enough(len(turn.window) + 1, turn.tokens, settings.count_mark, turn.threshold):
            return None
        now = self._time.wall()
        reason = self._reason(turn, reply) if reply is not None else "quiet"
        if reason != "quiet":
            return Boundary(reason, turn.claim.first_seq - 1 if reason == "topic" else None, now + REST)
        if settings.quiet_after == "off":
            return None
        ttl = TTL_SECONDS[self._own.cache_ttl] if self._own.cache_ttl else QUIET_WITHOUT_CACHE
        return Boundary("quiet", None, now + (ttl if settings.quiet_after == "auto" else settings.quiet_after))

    @staticmethod
    def _reason(turn: TurnView, reply: str) -> Reason:
        own = [row for row in turn.messages if row.seq >= turn.claim.first_seq]
        said = (text for row in turn.messages[-len(own) - 4 * TOPIC_BEFORE : -len(own)][::-1] if (text := row.text))
        before = tuple(islice(said, TOPIC_BEFORE))[::-1]
        compaction = turn.rows.compaction
        if any(row.calls for row in own) or (
            compaction and says_done(reply) and closes_last_task(ledgers.from_json(compaction.ledger), reply)
        ):
            return "task"
        return "topic" if begins_topic("\n".join(row.text for row in own if row.role == "user"), before) else "quiet"
