"""What a compaction lets go and notes take up: facts that hold beyond the thread, in the words of whoever said them.

A rule says what they are; a model may choose more of them, and never writes any itself.
"""

from collections.abc import Collection, Iterator, Sequence

import structlog

from clew.context.durable import chosen, lasting, worth_asking
from clew.context.ledger import NOBODY, Ledger
from clew.context.prompt import Marks
from clew.context.redact import redact
from clew.context.revision import NO_ROOM, Change
from clew.context.sentences import sentences
from clew.messages import Message, Text
from clew.model_call import ModelCaller, Spent
from clew.prompts import load
from clew.providers import PromptMessage, Provider, ProviderError, Request, SystemBlock
from clew.purse import OverBudget
from clew.stopping import Stop
from clew.store.notes import Offer
from clew.store.sql import SqlStore

log = structlog.get_logger()

MOST = 10
"""Facts that one compaction offers."""
ASKED = 40
"""Sentences that a model chooses from."""
CHOICE_TOKENS = 400
"""Of an answer that names the sentences to note."""


async def offers(store: SqlStore, dropped: Sequence[Change]) -> tuple[Offer, ...]:
    """Of what left a summary for want of room, what is worth a note: told by the words alone, without a model.

    Only what a person said themselves; what was taken back, closed or corrected is not among it.
    """
    wanted = [each for each in dropped if each.why == NO_ROOM and each.sources and lasting(each.text)][:MOST]
    if not wanted:
        return ()
    rows = {row.id: row for row in await store.messages([each.sources[-1] for each in wanted])}
    said = ((each, rows.get(each.sources[-1])) for each in wanted)
    return tuple(
        Offer(row.sender, row.sender_name or row.sender, each.text, row.id, row.at)
        for each, row in said
        if row is not None and _is_told(row)
    )


def candidates(
    rows: Sequence[Message], dropped: Sequence[Change], ledger: Ledger, offered: Sequence[Offer], known: Collection[str]
) -> list[Offer]:
    """Sentences that leave with a summary and that a model may find worth a note, in the words of whoever said them, oldest first.

    rows: the messages that the summary takes the place of; dropped: what left it for want of room; ledger: what stands in it, and stays;
    offered: what is noted anyway; known: secrets of this installation. A sentence with a secret is no candidate, nor is a guess.
    """
    said = {row.id: row for row in rows}
    left = [(said[each.sources[-1]], each.text) for each in dropped if each.why == NO_ROOM and each.sources and each.sources[-1] in said]
    taken = {*(entry.text for entry in ledger), *(each.text for each in offered)}
    found: dict[tuple[str, str], Offer] = {}
    for row, text in (*_sentences(rows), *left):
        known_already = any(text in each or (each and each in text) for each in taken)
        if _is_told(row) and worth_asking(text) and not known_already and redact(text, known) == text:
            found.setdefault((row.sender, text), Offer(row.sender, row.sender_name or row.sender, text, row.id, row.at))
    return sorted(found.values(), key=lambda each: each.at)[-ASKED:]


async def choose(
    caller: ModelCaller, provider: Provider, leaving: Sequence[Offer], session: str, payer: str, spent: Spent, stop: Stop | None
) -> tuple[Offer, ...]:
    """Those that the summariser chooses. A failure costs a warning and no summary. Raises Stopped."""
    if not leaving:
        return ()
    listed = "\n".join(f"{number}. {each.name}: {each.text}" for number, each in enumerate(leaving, 1))
    said = PromptMessage("user", (Text(listed),))
    request = Request((SystemBlock("base", load("notes").text),), (said,), max_tokens=CHOICE_TOKENS, purpose="notes")
    try:
        done = await caller.call(provider, Marks(request, ()), (), session=session, payer=payer, spent=spent, stop=stop)
    except OverBudget:
        return ()
    except ProviderError as error:
        log.warning("notes.not_chosen", err=f"{error.kind}: {error}")
        return ()
    answer = "\n".join(block.text for block in done.blocks if isinstance(block, Text))
    return tuple(leaving[number - 1] for number in chosen(answer, len(leaving)))[:MOST]


def _is_told(row: Message) -> bool:
    """Whether a person said it to clew."""
    return row.role == "user" and row.sender not in NOBODY and not row.overheard


def _sentences(rows: Sequence[Message]) -> Iterator[tuple[Message, str]]:
    return ((row, sentence) for row in rows for sentence in sentences(row.text))
