"""Where a thread is best cut: it went quiet, a task was finished, the topic changed. Pure."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from clew.context.compression import Cut, cut_at
from clew.context.ledger import Ledger
from clew.context.stopwords import COURTESY, stop_words
from clew.context.text import WORD, normalise, stem, telling_pairs
from clew.context.view import Rendered

Reason = Literal["quiet", "task", "topic"]

TOPIC_BEFORE = 8
"""Messages before, of people and the model, that a new one is compared with."""
TOPIC_TERMS = 5
"""Terms that a message must have to say anything of its topic."""
TOPIC_OVERLAP = 0.15
"""Share of a message's terms in the messages before it up to which it begins a new topic. On public data (six conversations of weeks,
3,436 messages) this finds 68 % of the places at which one conversation is continued by another, and takes 12 % of the messages in the
middle of a talk for a new topic; with 0.1 it is 51 % and 6 %, with 0.2 84 % and 25 %."""
READ_CHARS = 4_000
"""Characters of a message that are looked at."""
_SHORT = 3

_DONE = re.compile(
    r"\b(?:all )?(?:done|finished|completed?|solved|fixed|ready|fertig|erledigt|abgeschlossen|gelöst|behoben|terminée?|finie?|réglée?|"
    r"hecho|listo|terminado|resuelto|fatto|finito|risolto|feito|pronto|concluído|klaar|gedaan|opgelost|gotowe|zrobione|готово|сделано)\b"
    r"|完成|完了|できました|しました"
)
_NOT_DONE = re.compile(r"[?？]|\b(?:not|n't|never|nicht|noch|kein\w*|pas|no|non|não|niet|nie|не)\b|n't|未|没|ません")


def holds_enough(messages: int, tokens: int, mark: int, threshold: int) -> bool:
    """Whether a window is worth a boundary compaction: it holds half of the count trigger's mark, or half of the tokens of the threshold.

    threshold: 0 where the size of the window is not known.
    """
    return 2 * messages >= mark or (threshold > 0 and 2 * tokens >= threshold)


def begins_topic(text: str, before: Sequence[str]) -> bool:
    """Whether what somebody wrote has little to do with the messages before it, oldest first."""
    said = _terms(text)
    known = frozenset().union(*map(_terms, before[-TOPIC_BEFORE:]))
    return len(said) >= TOPIC_TERMS and len(known) >= TOPIC_TERMS and len(said & known) <= TOPIC_OVERLAP * len(said)


def says_done(reply: str) -> bool:
    """Whether a reply says that something is done."""
    plain = normalise(reply[:READ_CHARS])
    return bool(_DONE.search(plain)) and not _NOT_DONE.search(plain)


def closes_last_task(ledger: Ledger, reply: str) -> bool:
    """Whether a reply says that the one task or request that is still open in the ledger is done."""
    tasks = [entry for entry in ledger if entry.kind in ("task", "request") and not entry.closed]
    if len(tasks) != 1 or not says_done(reply):
        return False
    task = _terms(tasks[0].text)
    return bool(task) and 2 * len(task & _terms(reply)) >= len(task)


def _terms(text: str) -> frozenset[str]:
    """The stemmed words of a text that say what it is about, pairs of letters in writing without spaces."""
    return _telling(text[:READ_CHARS])


@lru_cache(maxsize=256)
def _telling(text: str) -> frozenset[str]:
    plain = normalise(text)
    words = WORD.findall(plain)
    dropped = stop_words(words)
    telling = {stem(word) for word in words if word not in dropped and word not in COURTESY and (len(word) >= _SHORT or not word.isalpha())}
    return frozenset(telling_pairs(plain) | telling)


def boundary_cut(
    messages: Sequence[Rendered], sizes: Sequence[int], seq: int, mark: int, keep: int, threshold: int, turn_seq: int | None, reason: Reason
) -> Cut | None:
    """The cut at a boundary behind row `seq`, the newest `keep` messages apart; None where it would free too little to be worth a call.

    It is worth one for a third of what the count trigger demotes, or an eighth of the threshold. sizes: tokens of each message, as the
    model counts them.
    """
    place = sum(message.last_seq <= seq for message in messages)
    cut = cut_at(messages, min(place, len(messages) - keep), turn_seq, reason)
    if cut is None:
        return None
    least = max(1, min((mark - keep) // 3, mark // 2 - keep))
    return cut if cut.index >= least or 8 * sum(sizes[: cut.index]) >= threshold else None
