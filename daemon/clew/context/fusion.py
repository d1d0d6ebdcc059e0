"""Several rankings of the same things made one, by reciprocal rank fusion. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeVar

K = 60
"""What damps the first ranks, as in Cormack, Clarke and Büttcher, SIGIR 2009."""

T = TypeVar("T", bound=Hashable)


def fused(rankings: Sequence[Sequence[T]], k: int = K) -> list[T]:
    """The things of all rankings (each best first, each thing once), those first that stand in front in most of them.

    A thing at rank r of a ranking, counted from 1, gets 1 / (k + r) for it. Equal sums stay in the order in which the rankings name
    them, the first ranking first; so one ranking alone comes out as it went in.
    """
    sums: dict[T, float] = defaultdict(float)
    for ranking in rankings:
        for rank, each in enumerate(dict.fromkeys(ranking), start=1):
            sums[each] += 1 / (k + rank)
    return sorted(sums, key=lambda each: -sums[each])
