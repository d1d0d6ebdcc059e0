"""Made-up talk around chats, to see how recall fares in a large store."""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

from clew.evaluation.remembered import Remark

Kind = Literal["words", "sentences"]
"""What it is made of: words of the chats themselves, drawn at random, or whole messages of other chats."""
SITTING = 200
"""Messages of a made-up session."""
SPEAKERS = 50
RARE = 0.3
"""Share of messages made of words that hold a word of their own: new names and numbers come for ever."""
DOUBLED = 0.3
"""Share of messages made of sentences that are two in one."""


def words(remarks: Sequence[Remark], count: int, seed: int = 7) -> Iterator[Remark]:
    """`count` messages of other people, of the length, words and time of `remarks`, but without their sense: words drawn at random."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret, and the same each time
    time = _span(remarks)
    known = [word for remark in remarks for word in remark.words.split()]
    lengths = [len(remark.words.split()) for remark in remarks]

    def text() -> str:
        said = [chance.choice(known) for _ in range(chance.choice(lengths) or 1)]
        if chance.random() < RARE:
            said.append(f"{chance.choice(known)}{chance.randrange(10**6)}")
        return " ".join(said)

    return (_remark(time, number, text(), chance, seed) for number in range(count))


def sentences(remarks: Sequence[Remark], others: Sequence[Remark], count: int, seed: int = 7) -> Iterator[Remark]:
    """`count` messages of other people at the time of `remarks`: what was said in the chats of `others`, drawn at random."""
    chance = random.Random(seed)  # noqa: S311
    time = _span(remarks)
    texts = [remark.words for remark in others]

    def text() -> str:
        said = chance.choice(texts)
        return f"{said} {chance.choice(texts)}" if chance.random() < DOUBLED else said

    return (_remark(time, number, text(), chance, seed) for number in range(count))


def _span(remarks: Sequence[Remark]) -> tuple[datetime, timedelta]:
    """When the first of them was said, and how much later the last."""
    first = min(remark.ts for remark in remarks)
    return first, max(remark.ts for remark in remarks) - first


def _remark(time: tuple[datetime, timedelta], number: int, text: str, chance: random.Random, seed: int) -> Remark:
    first, length = time
    session, seq = divmod(number, SITTING)
    began = first + length * random.Random(f"{seed}/{session}").random()  # noqa: S311
    return Remark(
        message_id=f"crowd/{number}",
        session_id=f"crowd/{session}",
        seq=seq,
        speaker=f"Person {chance.randrange(SPEAKERS)}",
        ts=began + timedelta(seconds=30 * seq),
        text=text,
    )
