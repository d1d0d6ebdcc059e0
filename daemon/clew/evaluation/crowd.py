"""Made-up talk around chats, to see how recall fares in a large store."""

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta

from clew.evaluation.remembered import Remark

SITTING = 200
"""Messages of a made-up session."""
SPEAKERS = 50
RARE = 0.3
"""Share of made-up messages that hold a word of their own: new names and numbers come for ever."""


def crowd(remarks: Sequence[Remark], count: int, seed: int = 7) -> Iterator[Remark]:
    """`count` messages of other people, of the length, words and time of `remarks`, but without their sense: words drawn at random."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret, and the same each time
    words = [word for remark in remarks for word in remark.words.split()]
    lengths = [len(remark.words.split()) for remark in remarks]
    first, last = min(remark.ts for remark in remarks), max(remark.ts for remark in remarks)
    for number in range(count):
        session, seq = divmod(number, SITTING)
        began = first + (last - first) * random.Random(f"{seed}/{session}").random()  # noqa: S311
        said = [chance.choice(words) for _ in range(chance.choice(lengths) or 1)]
        if chance.random() < RARE:
            said.append(f"{chance.choice(words)}{chance.randrange(10**6)}")
        yield Remark(
            message_id=f"crowd/{number}",
            session_id=f"crowd/{session}",
            seq=seq,
            speaker=f"Person {chance.randrange(SPEAKERS)}",
            ts=began + timedelta(seconds=30 * seq),
            text=" ".join(said),
        )
