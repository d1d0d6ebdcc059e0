"""What a session's view is computed from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from clew.messages import Message


@dataclass(frozen=True, slots=True)
class PromptState:
    """What stands in a session's prompt between turns. `excerpts` describes the recall block for the next decision (JSON).

    notes_key, notes_version: what the notes are made of; notes_until: when the first of them expires. documents: the block of their
    passages, which `passages` describes (JSON).
    """

    notes: str = ""
    recall: str = ""
    excerpts: str = "[]"
    recall_turn: str = ""
    compaction: str | None = None
    last_call: float = 0.0
    notes_key: str = ""
    notes_version: int = 0
    notes_until: float | None = None
    documents: str = ""
    passages: str = "[]"

    @property
    def recalled(self) -> str:
        """What was recalled: of sessions, then of documents."""
        return "\n\n".join(filter(None, (self.recall, self.documents)))


@dataclass(frozen=True, slots=True)
class Compaction:
    """A change of what a session's window shows: a revision of its rolling summary, or results shortened under the same one.

    ledger, report: JSON. shortened: all rows that are one line in the window since. See the table for the rest.
    """

    id: str
    session: str
    parent: str | None
    from_seq: int
    to_seq: int
    ledger: str
    text: str
    trigger: str
    prompt_version: str
    report: str
    messages: int
    covered: int
    created: float
    held: tuple[str, ...] = ()
    model_call: str | None = None
    undone_at: float | None = None
    hold_until_seq: int | None = None
    kind: Literal["summary", "shorten"] = "summary"
    shortened: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pin:
    """A message that stays word for word, whatever is compacted. `by`: who pinned it, empty for the operator."""

    message: Message
    by: str
    at: float


Ratios = Mapping[tuple[str, str], float]
"""By (provider, model): how many tokens it reports for one of the estimate."""


class Seen(NamedTuple):
    """A window that was read before: the messages behind row `after` that stood there, and how many of its session were taken back."""

    after: int = 0
    messages: tuple[Message, ...] = ()
    taken_back: int = 0


UNSEEN = Seen()


@dataclass(frozen=True, slots=True)
class ViewRows:
    """All rows that a session's view is computed from.

    compaction: the newest one not undone. messages: the rows behind its `to_seq`, in order. pinned: the pinned messages in front of it.
    failures: compactions that failed in a row. turn_seq: row of the first user message of the turn that runs, None while none does.
    damaged: what could not be read of them, in words. hold_seq: the last row when the newest compaction was undone, 0 where another one
    came since. taken_back: messages of the session that do not stand in it any more. deleted: one that was deleted still does. base: the
    session whose view it goes on from, for a job that runs beside its chat's. refused: (provider, model, hash) of files that models did
    not take.
    """

    session: str
    compaction: Compaction | None
    messages: tuple[Message, ...]
    pins: frozenset[str]
    pinned: tuple[Message, ...]
    prompt: PromptState
    failures: int = 0
    turn_seq: int | None = None
    damaged: tuple[str, ...] = ()
    hold_seq: int = 0
    taken_back: int = 0
    deleted: bool = False
    base: str | None = None
    ratios: Ratios = field(default_factory=dict)
    refused: frozenset[tuple[str, str, str]] = frozenset()

    @property
    def to_seq(self) -> int:
        """The last row behind the summary; what follows is in the window."""
        return self.compaction.to_seq if self.compaction else 0

    @property
    def shortened(self) -> frozenset[str]:
        """Rows that are one line in the window."""
        return frozenset(self.compaction.shortened) if self.compaction else frozenset()

    def unseen(self, provider: str, model: str) -> frozenset[str]:
        """Hashes of the files that this model did not take."""
        return frozenset(digest for name, its, digest in self.refused if (name, its) == (provider, model))

    def ratio(self, provider: str, model: str) -> float:
        """What the estimate is multiplied by for this model, 1 while nothing is known of it."""
        return self.ratios.get((provider, model), 1.0)


@dataclass(frozen=True, slots=True)
class Reader:
    """For whom the messages of a session are headed. direct: one person alone; timezone: theirs, None where it is not known.

    scopes: whose notes may be seen in the session's own chat.
    """

    direct: bool
    timezone: str | None
    scopes: frozenset[str] = frozenset()
