"""The one door to durable state: what goes in and out, and the verbs. SQL stands in this package only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from clew.context.query import Query
from clew.context.ranking import Candidate, Scored
from clew.messages import Block, Message, Role, ToolCall, Usage
from clew.store.notes import NOTHING, NoteEffect, Standing
from clew.transport import Address, Inbound, Part

InboxKind = Literal["message", "command", "control", "answer", "edit", "delete", "notice", "job"]
PersonRole = Literal["owner", "member", "guest"]


SAFE_ATTEMPTS = 2
"""Starts of a turn after which it runs alone, last and without tools."""


class LeaseLost(Exception):
    """Somebody else has claimed the turn since: stop, write nothing."""


# Who and where ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may talk to clew. `timezone`: IANA name or None."""

    id: str
    role: PersonRole
    timezone: str | None = None
    identities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sender:
    """What is known about who sent something, read in the transaction that stores it.

    request: state of their access request, if they made one. queued: messages of this chat that wait. new_requests: open requests.
    running: the turn that runs in this chat, if one does. asked: questions that may be answered by what they say here.
    """

    person: str | None
    role: PersonRole | None
    request: Literal["open", "approved", "denied"] | None
    queued: int
    open_requests: int
    running: str | None
    asked: "tuple[Asked, ...]" = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to whoever speaks, as the door sees it. refs: the ids under which it was sent. open: it was not answered yet.
    joins: an answer is part of the turn that asks, and answered with it."""

    id: str
    turn: str
    tools: tuple[str, ...]
    refs: frozenset[str]
    open: bool
    joins: bool


@dataclass(frozen=True, slots=True)
class Given:
    """An answer to the question `asking` of `turn`. always: for each later call too. how: it was said; the person passed over it with
    other words; it expired; its turn was stopped. joins: what was said is part of the turn."""

    asking: str
    turn: str
    yes: bool
    how: Literal["said", "passed", "expired", "stopped"] = "said"
    always: bool = False
    joins: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `inbox` decides about an arrival.

    kind: how it travels. refused: why it is not taken (the receipt's reason). again: it may come under its id again, `changed`
    or, as it is, `later`.
    reply: what the sender is told at once, empty for nothing.
    pair: the code of a new access request. stop: the turn to stop. given: answers to questions.
    """

    kind: InboxKind = "message"
    refused: str = ""
    again: Literal["", "changed", "later"] = ""
    reply: str = ""
    pair: str = ""
    stop: str | None = None
    given: tuple[Given, ...] = ()


Decide = Callable[[Inbound, Sender], Verdict]


@dataclass(frozen=True, slots=True)
class AccessRequest:
    identity: str
    address: str
    name: str
    code: str
    state: Literal["open", "approved", "denied"]
    messages: int
    created: float


# Turns -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """An inbox row that a claim is for. `reply_to`: the platform's id of the message that it replies to. instant: when a job was due."""

    id: int
    kind: InboxKind
    text: str
    client_id: str
    person: str
    sender_name: str
    context: Mapping[str, str]
    received: float
    job: str | None = None
    reply_to: str | None = None
    instant: float | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """One turn of one session, held by `owner` until `lease` ends; `epoch` fences it.

    kind: `message` and `job` are for the agent, the others are not. first_seq: its first user message. resumed: it had begun before.
    stopping: somebody had stopped it then. attempts: how often it was started, this time included. rows, notes: its session's view and
    what is known where it is answered, where a model is to answer.
    more: another turn may be claimed as well. failures: of the job, in a row.
    """

    turn: str
    session: str
    address: Address
    direct: bool
    kind: InboxKind
    owner: str
    epoch: int
    items: tuple[Item, ...]
    person: Person | None
    first_seq: int
    started: float
    resumed: bool = False
    stopping: bool = False
    attempts: int = 1
    rows: "ViewRows | None" = None
    notes: Standing = NOTHING
    more: bool = False
    failures: int = 0

    @property
    def risky(self) -> bool:
        """Starting it may have brought the process down before."""
        return self.attempts > SAFE_ATTEMPTS


@dataclass(frozen=True, slots=True)
class Room:
    """Whether another turn of a person, and of a job, may be claimed."""

    people: bool = True
    jobs: bool = True


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to append; the store gives it its id and place."""

    role: Role
    blocks: tuple[Block, ...]
    at: float
    sender: str = ""
    sender_name: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model, as it went. `segments`: (kind, hash, estimated tokens) of the prefix; `marks`: labels of its cache markers.

    estimated: tokens that the request was taken for, 0 where its reported size is to teach nothing.
    """

    id: str
    purpose: str
    payer: str
    provider: str
    model: str
    usage: Usage
    started: float
    first_byte: float | None
    ended: float
    error: str = ""
    segments: tuple[tuple[str, str, int], ...] = ()
    marks: tuple[str, ...] = ()
    compaction: str | None = None
    estimated: int = 0


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A prefix a provider holds. `expires`: seconds since the epoch, `ttl`: seconds."""

    provider: str
    model: str
    hash: str
    tokens: int
    ttl: float
    expires: float


@dataclass(frozen=True, slots=True)
class ToolState:
    call_id: str
    name: str
    arguments: str
    state: Literal["proposed", "waiting", "denied", "started", "done", "interrupted"]
    at: float


@dataclass(frozen=True, slots=True)
class Recalled:
    """An excerpt that was considered for a turn, and why. message: the best of those that it quotes. shown: it stood in the prompt."""

    message: str
    score: float
    why: tuple[str, ...]
    shown: bool
    quoted: tuple[str, ...] = ()


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
class Step:
    """What a turn adds in one commit."""

    messages: tuple[NewMessage, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    tools: tuple[ToolState, ...] = ()
    cache: tuple[CacheEntry, ...] = ()
    recalled: tuple[Recalled, ...] = ()
    prompt: PromptState | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """Words on their way to an address. `instant`: they count as sent when committed."""

    address: Address
    text: str
    parts: tuple[Part, ...]
    in_reply_to: str = ""
    answers: tuple[str, ...] = ()
    context: Mapping[str, str] = field(default_factory=dict)
    instant: bool = False


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where a thread is best cut, taken by the background from `due` on unless the thread goes on. `seq`: the last row in front of it,
    None for the last there is."""

    reason: Literal["quiet", "task", "topic"]
    seq: int | None
    due: float
    session: str = ""


@dataclass(frozen=True, slots=True)
class Effect:
    """What somebody does to a thread by hand: to messages, or to the newest compaction (`undo`, by its id). by: the person, for a pin.
    zone: of the dates in a summary that is written anew without what is forgotten."""

    kind: Literal["pin", "unpin", "take_back", "undo", "forget"]
    ids: tuple[str, ...]
    by: str = ""
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked before `calls` run. person: who may answer. here: it is asked where its turn is answered, else `notice`
    says there that somebody is asked. behalf: the person whose message the calls arose from, empty for nobody. expires: seconds since
    the epoch."""

    id: str
    calls: tuple[ToolCall, ...]
    person: str
    behalf: str
    expires: float
    reply: Reply
    here: bool
    notice: Reply | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The state of a question about a call, and how it came to it; person: who was asked."""

    state: Literal["open", "yes", "no"]
    how: str
    person: str


@dataclass(frozen=True, slots=True)
class StandingYes:
    """A yes for good: `tool` may be called in a chat on behalf of `person`. by: who said it."""

    tool: str
    person: str
    by: str
    at: float


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The yes for good for `tool` at an address is taken back, of all people where `person` is None."""

    address: str
    tool: str
    person: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended. new_session: its chat begins a new one. boundary: where its thread may be cut. effects: of a command, in the commit
    that stores its answer. run: what a job came to that went well, and said nothing."""

    state: Literal["done", "failed", "stopped"]
    step: Step = Step()
    error: str = ""
    new_session: bool = False
    boundary: Boundary | None = None
    effects: "tuple[Effect | NoteEffect | JobEffect | Withdrawn, ...]" = ()
    run: Literal["", "silent", "skipped"] = ""


# The view and compactions ----------------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class ViewRows:
    """All rows that a session's view is computed from.

    compaction: the newest one not undone. messages: the rows behind its `to_seq`, in order. pinned: the pinned messages in front of it.
    failures: compactions that failed in a row. turn_seq: row of the first user message of the turn that runs, None while none does.
    damaged: what could not be read of them, in words. hold_seq: the last row when the newest compaction was undone, 0 where another one
    came since. base: the session whose view it goes on from, for a job that runs beside its chat's.
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
    base: str | None = None
    ratios: Ratios = field(default_factory=dict)

    @property
    def to_seq(self) -> int:
        """The last row behind the summary; what follows is in the window."""
        return self.compaction.to_seq if self.compaction else 0

    @property
    def shortened(self) -> frozenset[str]:
        """Rows that are one line in the window."""
        return frozenset(self.compaction.shortened) if self.compaction else frozenset()

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


# Search ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scope:
    """Who is asking. Made by `Store.scope_for` only; there is no search without one.

    chats: (chat, from, until) of every chat, and the span of time in it, whose words may be seen; None: the operator sees all.
    session: the session that asks, None outside of one. after_seq: its own messages behind this one are in view and not found.
    base: (the session that it goes on from, the last row of it in view).
    """

    chats: tuple[tuple[int, float, float], ...] | None
    session: str | None = None
    after_seq: int = 0
    base: tuple[str, int] | None = None


Ask = Callable[[Callable[[str], int], int], Query | None]
"""Makes a query of (how many messages hold a word, how many messages there are)."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search gave: the query asked (None: there was nothing to ask), what answers it best first, and which of the messages
    asked about may be seen."""

    query: Query | None
    scored: tuple[Scored, ...]
    visible: frozenset[str]


@dataclass(frozen=True, slots=True)
class Quote:
    """An excerpt that was considered for a turn, by its best message. score: a share of the weight of all that was asked for, 0 for one
    that was there already and has nothing to do with it. why: the terms that it holds. shown: it stood in the prompt."""

    message: Candidate
    score: float
    why: tuple[str, ...]
    shown: bool


@dataclass(frozen=True, slots=True)
class RecalledFor:
    """What recall gave a turn. asked: what was said. at: when, seconds since the epoch. hidden: quotes that may not be seen (any
    more)."""

    turn: str
    asked: str
    at: float
    quotes: tuple[Quote, ...]
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session in a listing. `person`: whose direct chat it is in, None for groups."""

    id: str
    address: str
    title: str
    created: float
    updated: float
    messages: int
    compactions: int
    person: str | None


@dataclass(frozen=True, slots=True)
class Said:
    """One line of an address's timeline. `seq` grows with every commit; `id` is the sender's own for user messages, ours for replies.

    failed: a reply that says that there is none. question: the code of the open question that it asks.
    """

    seq: int
    id: str
    role: Literal["user", "assistant"]
    text: str
    at: float
    sender_name: str = ""
    in_reply_to: str = ""
    answers: tuple[str, ...] = ()
    failed: bool = False
    question: str = ""


# Jobs and the outbox ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """A job. `spec` is its entry in the config, as JSON; `next_at` the one state of its clock.

    person: whose it is. failures: in a row. rests_until: instants before it are let pass.
    """

    name: str
    spec: str
    enabled: bool
    next_at: float | None
    origin: str = "config"
    person: str | None = None
    failures: int = 0
    rests_until: float | None = None


@dataclass(frozen=True, slots=True)
class JobEffect:
    """What somebody does to a job. person: only if it is theirs; for a new one, whose it is. spec, next_at: of one that begins anew; for
    `run`, next_at is now."""

    kind: Literal["add", "update", "remove", "enable", "disable", "run"]
    name: str
    person: str | None = None
    spec: str = ""
    next_at: float | None = None
    origin: Literal["cli", "chat", "api"] = "chat"


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of an attempt to send. `next_at`: when to try again, for `pending`. `repeat`: the next attempt may be a repeat."""

    state: Literal["sent", "pending", "unknown", "dead"]
    ref: str = ""
    reason: str = ""
    next_at: float = 0.0
    sent_parts: int = 0
    repeat: bool = False
