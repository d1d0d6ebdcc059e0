"""What a summary says, statement by statement."""

from collections.abc import Mapping
from dataclasses import dataclass

from clew.context.ledger import from_json
from clew.evaluation.wording import plain, sentences
from clew.store import Compaction


@dataclass(frozen=True, slots=True)
class Statement:
    """An entry of the ledger, or a sentence where it tells a story.

    text: as it was written; words: the same with its reason, as `plain` gives it. speaker: empty where none is named. sources: numbers of
    messages; empty where none is cited. seen: whether the text that the model reads holds it.
    """

    kind: str
    text: str
    words: str
    speaker: str
    certainty: str
    closed: bool
    sources: frozenset[int]
    seen: bool


def statements(compaction: Compaction, places: Mapping[str, int]) -> list[Statement]:
    """The statements of a compaction's ledger. places: number of each message by its id in the store."""
    shown = plain(compaction.text)
    found = []
    for entry in from_json(compaction.ledger):
        narrative = entry.kind == "narrative"
        sources = frozenset() if narrative else frozenset(places[each] for each in entry.sources if each in places)
        for text in sentences(entry.text) if narrative else [entry.text]:
            found.append(
                Statement(
                    entry.kind,
                    text if not entry.reason else f"{text} ({entry.reason})",
                    plain(f"{text} {entry.reason}"),
                    "" if narrative else entry.speaker,
                    "" if narrative else entry.certainty,
                    entry.closed,
                    sources,
                    plain(text) in shown,
                )
            )
    return found
