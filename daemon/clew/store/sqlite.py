"""The store on SQLite: every verb is one transaction, run in one hop."""

import asyncio
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from clew.errors import StoreError
from clew.messages import Message, ToolCall
from clew.store import (
    AccessRequest,
    Answered,
    Ask,
    Boundary,
    CacheEntry,
    Claim,
    Compaction,
    Decide,
    Effect,
    Found,
    Given,
    Item,
    Job,
    JobEffect,
    ModelCall,
    Outcome,
    Person,
    Pin,
    Question,
    Reader,
    RecalledFor,
    Reply,
    Room,
    Said,
    Scope,
    SessionRow,
    Settlement,
    StandingYes,
    Step,
    Verdict,
    ViewRows,
    accept,
    approvals,
    boundaries,
    compactions,
    health,
    imports,
    jobs,
    lanes,
    marks,
    model_calls,
    outbox,
    people,
    proof,
    rebuilding,
    recalled,
    runs,
    search,
    sessions,
    transcript,
    turns,
)
from clew.store.changes import Changes
from clew.store.database import Database
from clew.store.documents import verbs as documents
from clew.store.documents.door import DocumentsDoor
from clew.store.indexing import Indexer
from clew.store.notes import Offer, offers
from clew.store.notes import scopes as note_scopes
from clew.store.notes.door import NotesDoor
from clew.store.port import Store
from clew.store.prefix_cache import LIMIT, PrefixCache
from clew.store.vectors import Vectors
from clew.transport import Address, Delivery, Inbound, Receipt

LONGEST_LOG = 16 * 2**20
"""Bytes of SQLite's write-ahead log from which on it is written back at the next look."""
ROOM = 4 * 2**20
"""Bytes that must be free for a disk that was full to count as mended: a log that is reused takes small writes on a full disk too."""


class SqliteStore(Store):
    """One file. Open it with `open`, close it with `close` (its connections live in threads).

    arrivals: there may be a turn to claim. jobs_changed: somebody changed a job. deliveries: by transport, there may be something to send.
    notes, documents, vectors: their verbs.
    """

    def __init__(self, path: Path, database: Database, index: Indexer, known: Collection[str] = ()) -> None:
        self._path = path
        self._db = database
        self._index = index
        self._known = frozenset(known)
        self.notes = NotesDoor(database, self._known)
        self.documents = DocumentsDoor(database, index, self._known, self._notify)
        self.vectors = Vectors(database)
        self._prefixes = PrefixCache()
        self._any = Changes()
        self.arrivals = Changes()
        self.jobs_changed = Changes()
        self.deliveries = defaultdict[str, Changes](Changes)

    @classmethod
    async def open(cls, path: Path, now: float, *, read_only: bool = False, known: Collection[str] = ()) -> Self:
        """Open and migrate. `known`: secrets of this installation, kept out of index and notes. Raises StoreError with what to do."""
        index = Indexer(known)
        store = cls(path, await Database.open(path, now, index, read_only=read_only), index, known)
        try:
            await store._prepare(read_only)
        except BaseException:
            await store.close()
            raise
        return store

    async def _prepare(self, read_only: bool) -> None:
        if not read_only:
            if not await self._db.read(self._index.is_current):
                await self.documents.rebuild()
                await self._db.write(self._rebuild_index)
            await self.notes.prepare()
            await self.documents.sweep()
        await self.documents.look()
        await self._load_prefixes()

    async def _load_prefixes(self) -> None:
        self._prefixes = prefixes = PrefixCache()
        if (entries := await self._db.read(model_calls.cache, LIMIT)) is not None:
            prefixes.load(entries)

    def _rebuild_index(self, db: sqlite3.Connection) -> None:
        rebuilding.drop(db)
        transcript.rebuild(db)
        self._index.sign(db)

    async def close(self) -> None:
        await self._db.close()

    @property
    def commits(self) -> int:
        """Write transactions so far."""
        return self._db.commits

    @property
    def version(self) -> int:
        """Grows with every change that somebody may wait for."""
        return self._any.version

    async def changed(self, seen: int, timeout: float) -> int:
        return await self._any.wait(seen, timeout)

    def _notify(self, *which: Changes) -> None:
        for changes in (*which, self._any):
            changes.tell()

    # In ----------------------------------------------------------------------------------------------------------

    async def accept(
        self, transport: str, items: Sequence[Inbound], cursor: str | None, now: float, decide: Decide, instant: bool = False
    ) -> tuple[list[Receipt], list[Verdict]]:
        self.arrivals.tell()  # before: the claim joins the commit
        result = await self._db.write_joined(accept.accept, transport, items, cursor, now, decide, instant)
        self._notify(*([self.deliveries[transport]] if any(verdict.reply for verdict in result[1]) else []))
        return result

    async def cursor(self, transport: str) -> str | None:
        return await self._db.read(accept.cursor, transport)

    # Turns -------------------------------------------------------------------------------------------------------

    async def recover(self, idempotent: frozenset[str], now: float) -> tuple[int, int]:
        """At a start: void all leases. Returns how many turns were interrupted and how many sends have an unknown outcome."""
        interrupted = await self._db.write(turns.void_leases)
        return interrupted, await self._db.write(outbox.recover, idempotent, now)

    async def claim_turn(
        self, owner: str, now: float, lease: float, merging: frozenset[str], *, risky_first: bool = False, room: Room = turns.EVERYTHING
    ) -> Claim | None:
        return await self._db.write_if(
            lambda db: (turns.claimable(db, now), None), turns.claim, owner, now, lease, merging, risky_first, room
        )

    async def open_run(self, claim: Claim, text: str, now: float) -> Claim:
        """Append what a job asks. Returns its claim as it goes to a model. Raises LeaseLost."""
        return await self._db.write(turns.open_run, claim, text, now)

    async def steer(self, claim: Claim, now: float) -> tuple[tuple[Item, ...], tuple[Message, ...]]:
        """Messages that arrived in the chat of a running turn, taken into it. Raises LeaseLost."""
        nothing: tuple[tuple[Item, ...], tuple[Message, ...]] = ((), ())
        return await self._db.write_if(lambda db: (turns.steerable(db, claim.turn), nothing), turns.steer, claim, now)

    async def record(self, claim: Claim, step: Step) -> tuple[Message, ...]:
        messages = await self._db.write(turns.record, claim, step)
        self._prefixes.add(step.cache)
        return messages

    async def finish(self, claim: Claim, outcome: Outcome, replies: Sequence[Reply], now: float) -> tuple[str, ...]:
        for transport in {reply.address.transport for reply in replies if not reply.instant}:
            self.deliveries[transport].tell()  # before: the delivery's claim joins the commit
        result, waiting = await self._db.write_joined(turns.finish, claim, outcome, replies, now, self._known)
        self._prefixes.add(outcome.step.cache)
        changed = [self.jobs_changed] if any(isinstance(effect, JobEffect) for effect in outcome.effects) else []
        self._notify(*([self.arrivals] if waiting else []), *changed)
        return result

    async def park(self, claim: Claim, question: Question, now: float) -> bool:
        """Ask a person, and let the turn wait for the answer. False: it was stopped meanwhile. Raises LeaseLost."""
        parked = await self._db.write(turns.park, claim, question, now)
        self._notify(*(self.deliveries[each.address.transport] for each in (question.reply, question.notice) if each))
        return parked

    async def answers(self, turn: str) -> dict[ToolCall, Answered]:
        """What people answered for the calls of a turn."""
        return await self._db.read(approvals.answers, turn)

    async def standing(self, address: str, person: str | None = None) -> list[StandingYes]:
        """The yeses for good at an address, of all people where `person` is None."""
        return await self._db.read(approvals.standing, address, person)

    async def expire_questions(self, now: float) -> list[Given]:
        """Close the questions that nobody answered in time; their turns go on."""
        closed = await self._db.write_if(lambda db: (approvals.any_due(db, now), []), approvals.expire, now)
        self._notify(*([self.arrivals] if closed else []))
        return closed

    async def next_expiry(self) -> float | None:
        """When the next open question ends, None where none is open."""
        return await self._db.read(approvals.next_due)

    async def release(self, claim: Claim) -> None:
        await self._db.write(turns.release, claim)

    async def draft(self, claim: Claim, reply: Reply, now: float) -> Delivery:
        return await self._db.write(outbox.draft, reply, claim.session, claim.turn, now)

    async def previewed(self, delivery: Delivery, ref: str) -> None:
        await self._db.write_relaxed(outbox.previewed, delivery.id, ref)

    async def tool_states(self, turn: str) -> dict[str, str]:
        return await self._db.read(turns.tool_states, turn)

    # The view ----------------------------------------------------------------------------------------------------

    async def view(self, session: str) -> ViewRows:
        return await self._db.read(compactions.view, session)

    async def cached(self, provider: str, model: str, hashes: Sequence[str], now: float) -> dict[str, CacheEntry]:
        """Those of these prefixes that the provider still holds."""
        if self._prefixes.whole:
            return self._prefixes.held(provider, model, hashes, now)
        return await self._db.read(model_calls.cached, provider, model, hashes, now)

    async def expire_cache(self, now: float) -> None:
        await self._db.write_relaxed(model_calls.expire_cache, now)
        if self._prefixes.whole:
            self._prefixes.expire(now)
        else:
            await self._load_prefixes()

    async def before_summary(self, session: str) -> tuple[ViewRows, Compaction, Compaction] | None:
        return await self._db.read(compactions.before_summary, session)

    async def compact(
        self,
        parent: str | None,
        new: Compaction,
        calls: Sequence[ModelCall],
        tip: str | None = None,
        cache: Sequence[CacheEntry] = (),
        offered: Sequence[Offer] = (),
    ) -> bool:
        """Commit a compaction if `parent` is still the newest one, and note what is `offered` of what it lets go."""

        def both(db: sqlite3.Connection) -> bool:
            done = compactions.commit(db, parent, new, calls, tip, cache)
            if done and offered:
                offers.take(db, new.session, offered, new.created, self._known)
            return done

        done = await self._db.write(both)
        if done:
            self._prefixes.add(cache)
        return done

    async def reader(self, session: str) -> Reader:
        return await self._db.read(compactions.reader, session)

    async def note_calls(self, session: str, calls: Sequence[ModelCall]) -> None:
        """Write down model calls that came to nothing."""
        await self._db.write(model_calls.note, session, calls)

    async def summary_tokens(self, since: float) -> int:
        return await self._db.read(model_calls.summary_tokens, since)

    async def compaction_failed(self, session: str, error: str, calls: Sequence[ModelCall]) -> int:
        return await self._db.write(compactions.failed, session, error, calls)

    async def take_boundaries(self, now: float, limit: int) -> list[Boundary]:
        """Places to compact at that are due. Each is given out once."""
        return await self._db.write_if(lambda db: (boundaries.any_due(db, now), []), boundaries.take, now, limit)

    async def next_boundary(self, now: float) -> float | None:
        """When the next place is due that is not yet, None where there is none."""
        return await self._db.read(boundaries.next_due, now)

    async def compactions(self, session: str) -> list[Compaction]:
        return await self._db.read(compactions.listing, session)

    # Single messages ---------------------------------------------------------------------------------------------

    async def take_effect(self, session: str, effect: Effect, now: float) -> None:
        """Raises UsageError where the compaction to undo is not the newest any more."""
        await self._db.write(marks.take, session, effect, now, self._known)

    async def pins(self, session: str) -> list[Pin]:
        return await self._db.read(marks.pins, session)

    async def find_message(self, session: str, key: str) -> Message:
        """Raises NotFound or UsageError."""
        return await self._db.read(marks.find, session, key)

    async def answered_to(self, session: str, reference: str) -> Message | None:
        return await self._db.read(marks.answered_to, session, reference)

    async def newest_words(self, session: str) -> Message | None:
        return await self._db.read(marks.newest, session)

    # Search ------------------------------------------------------------------------------------------------------

    async def scope_for(
        self, *, session: tuple[str, str, int] | None = None, person: str | None = None, address: str | None = None, operator: bool = False
    ) -> Scope:
        """Exactly one of: a session with the address it is answered at and the last row not in view, a person, an address, the operator."""
        if session is not None:
            return await self._db.read(search.scope_of_session, *session)
        if person is not None:
            return await self._db.read(search.scope_of_person, person)
        if address is not None:
            return await self._db.read(search.scope_of_chat, address)
        if operator:
            return search.scope_of_operator()
        raise ValueError("a scope is of somebody")

    async def search(self, scope: Scope, ask: Ask, limit: int, shown: Sequence[str] = ()) -> Found:
        return await self._db.read(search.search, scope, ask, limit, shown)

    async def make_lanes(self) -> bool:
        """Index the common words of one full segment of a chat, if any waits for it. False: none does."""
        making = await self._db.read(lanes.due)
        if making is None:
            return False
        for first, last in making.slices:
            making.add(await self._db.read(transcript.words_at, first, last))
        await self._db.write_relaxed(lanes.put, making)
        return True

    async def around(self, scope: Scope, message: str, before: int, after: int) -> list[Any]:
        return await self._db.read(search.around, scope, message, before, after)

    async def recalled_for(self, scope: Scope, session: str, turn: str | None = None) -> RecalledFor | None:
        """What recall gave a turn of `session`, the newest where none is named, as far as `scope` may see it; None without such a turn."""
        return await self._db.read(recalled.of, scope, session, turn)

    async def recalled_lately(self, session: str, after_seq: int) -> frozenset[str]:
        return await self._db.read(recalled.lately, session, after_seq)

    # Out ---------------------------------------------------------------------------------------------------------

    def claim_delivery(self, owner: str, transport: str, now: float) -> asyncio.Future[tuple[Delivery | None, float | None]]:
        """The next delivery that is due, and when the one after it is, None if none waits."""

        def due(db: sqlite3.Connection) -> tuple[bool, tuple[None, float | None]]:
            at = outbox.next_due(db, transport, now)
            return at is not None and at <= now, (None, at)

        return self._db.write_if(due, outbox.claim, transport, now)

    async def advance(self, delivery: Delivery, parts: int) -> None:
        await self._db.write_relaxed(outbox.advance, delivery.id, parts)

    async def settle(self, delivery: Delivery, result: Settlement, now: float) -> None:
        if await self._db.write_relaxed(outbox.settle, delivery, result, now) is not None:
            self._notify(self.deliveries[delivery.address.transport])
        else:
            self._notify()

    async def outbox(self, states: tuple[str, ...]) -> list[dict[str, Any]]:
        return await self._db.read(outbox.listing, states)

    async def say(self, reply: Reply, now: float) -> str:
        """Words of clew's own, outside of any turn. Returns their id."""
        identifier = await self._db.write(outbox.put, reply, "", "", now)
        self._notify(self.deliveries[reply.address.transport])
        return identifier

    async def owner_address(self) -> str | None:
        return await self._db.read(people.owner_address)

    async def owner_chat(self) -> tuple[str, str] | None:
        """(address, person): the direct chat in which an owner was heard last."""
        return await self._db.read(people.owner_chat)

    async def say_once(self, key: str, reply: Reply, now: float, again_after: float) -> bool:
        """`say`, unless it was said less than `again_after` seconds ago. Returns whether it was said now."""
        said = await self._db.write(outbox.put_once, key, reply, now, again_after)
        self._notify(self.deliveries[reply.address.transport])
        return said

    async def send_again(self, delivery: str, now: float) -> bool:
        done = await self._db.write(outbox.again, delivery, now)
        self._notify(*self.deliveries.values())
        return done

    async def discard_delivery(self, delivery: str) -> bool:
        done = await self._db.write(outbox.discard, delivery)
        self._notify(*self.deliveries.values())
        return done

    # People ------------------------------------------------------------------------------------------------------

    async def sync(
        self,
        configured: Mapping[str, Person],
        local: Person | None,
        entries: Sequence[Job],
        now: float,
        projects: Mapping[str, str] = {},
    ) -> None:
        """Take over who and what is in the config: all of it or nothing. local: the owner of the machine, where none is configured.

        projects: the project of each chat that is named in one, by its address.
        """

        owner = local or next((person for person in configured.values() if person.role == "owner"), None)

        def all_of_it(db: sqlite3.Connection) -> None:
            before = note_scopes.machines_owner(db)
            people.sync(db, configured, local, now)
            note_scopes.hand_over(db, before, owner.id if owner else None)
            documents.hand_over(db, before, owner.id if owner else None)
            jobs.sync(db, entries, now)
            note_scopes.sync_projects(db, projects)

        await self._db.write(all_of_it)

    async def person_at(self, identity: str, now: float, *, local: bool) -> str:
        """The person behind an identity; one of this machine's users is the owner. Raises NotFound."""
        return await self._db.write(people.person_at, identity, now, local=local)

    async def access_requests(self, state: str | None = None) -> list[AccessRequest]:
        return await self._db.read(people.requests, state)

    async def answer_access(self, key: str, approve: bool, role: str, now: float) -> AccessRequest:
        """Raises NotFound or UsageError."""
        return await self._db.write(people.answer, key, approve, role, now)

    # Jobs --------------------------------------------------------------------------------------------------------

    async def jobs(self) -> list[Job]:
        return await self._db.read(jobs.listing)

    async def job(self, name: str, person: str | None = None) -> Job:
        """A job by its name; person: theirs alone. Raises NotFound."""
        return await self._db.read(jobs.find, name, person)

    async def change_job(self, effect: JobEffect, now: float) -> None:
        """Raises NotFound or UsageError."""
        await self._db.write(jobs.take, effect, now)
        self._notify(self.jobs_changed, *([self.arrivals] if effect.kind == "run" else []))

    async def fire(
        self, job: str, instant: float, next_at: float | None, now: float, text: str, to: Address, runs_in: str = "chat"
    ) -> bool:
        fired = await self._db.write(jobs.fire, job, instant, next_at, now, text, to, runs_in)
        self._notify(self.arrivals)
        return fired

    async def job_runs(self, job: str) -> bool:
        """Whether a run of `job` waits or is going on."""
        return await self._db.read(jobs.runs, job)

    async def missed(self, job: str, instants: Sequence[float], next_at: float | None, now: float, note: str = "") -> None:
        await self._db.write(jobs.missed, job, instants, next_at, now, note)

    async def set_job_back(self, job: str, next_at: float) -> None:
        await self._db.write(jobs.set_back, job, next_at)

    async def job_history(self, job: str, limit: int) -> list[dict[str, Any]]:
        return await self._db.read(runs.history, job, limit)

    async def last_reply(self, job: str) -> str:
        """What the job's newest run that came to something said."""
        return await self._db.read(runs.last_reply, job)

    # Sessions ----------------------------------------------------------------------------------------------------

    async def sessions(self, address: str | None = None, limit: int = 1000) -> list[SessionRow]:
        return await self._db.read(sessions.listing, address, limit)

    async def find_session(self, prefix: str) -> SessionRow:
        """Raises NotFound or UsageError."""
        return await self._db.read(sessions.find, prefix)

    async def current_session(self, address: str) -> str | None:
        return await self._db.read(sessions.current, address)

    async def open_chat(self, item: Inbound, person: str, now: float, title: str = "") -> str:
        """Make a new session at an address and let its next message join it. Returns the session."""
        return await self._db.write(sessions.open_chat, item, person, now, title)

    async def join_chat(self, item: Inbound, person: str, session: str, now: float) -> None:
        """Let the next message at an address join `session`; it stays with its own chat too."""
        await self._db.write(sessions.join_chat, item, person, session, now)

    async def transcript(self, session: str, after: int = 0) -> tuple[Message, ...]:
        return await self._db.read(transcript.between, session, after)

    async def messages(self, ids: Iterable[str]) -> tuple[Message, ...]:
        return await self._db.read(transcript.by_ids, ids)

    async def export_session(self, session: str) -> dict[str, Any]:
        return await self._db.read(sessions.export, session)

    async def import_session(self, data: dict[str, Any], now: float) -> str:
        """Raises UsageError where `data` is no export, or its session is here already. Returns the session's id."""
        export = await asyncio.to_thread(imports.check, data)
        session, messages = export.session, export.messages
        await self._db.write(imports.begin, session, now)
        try:
            for start in range(0, len(messages), imports.PIECE):
                await self._db.write(imports.add, session, messages[start : start + imports.PIECE], now)
            await self._db.write(imports.end, export, now)
        except BaseException:
            await self._db.write(sessions.delete, session.id)
            raise
        return session.id

    async def delete_session(self, session: str) -> int:
        return await self._db.write(sessions.delete, session)

    async def tell_repairs(self, session: str, repairs: Sequence[str]) -> tuple[str, ...]:
        """Which of these repairs of a session's view were not told yet; they are from now on."""

        def look(db: sqlite3.Connection) -> tuple[bool, tuple[str, ...]]:
            return bool(sessions.untold(db, session, repairs)), ()

        return await self._db.write_if(look, sessions.tell, session, repairs)

    async def verify_session(self, session: str) -> list[str]:
        return await self._db.read(proof.verify, session)

    async def history(self, address: str, after: int, limit: int, *, newest: bool = True) -> list[Said]:
        return await self._db.read(sessions.history, address, after, limit, newest=newest)

    # Health ------------------------------------------------------------------------------------------------------

    async def counts(self, now: float) -> dict[str, int]:
        """How many rows there are, wait, or went wrong, by name."""
        return await self._db.read(health.counts, now)

    async def session_usage(self, session: str) -> health.SessionUsage:
        return await self._db.read(health.session_usage, session)

    async def check(self) -> list[str]:
        """What is wrong with the file, in words: SQLite's own check, and the indexes against what they are made of."""
        problems = await self._db.read(health.check, self._index)
        return problems or [*await self.notes.check(), *await self.documents.check()]

    async def rebuild_index(self) -> rebuilding.Rebuilding:
        """Begin to build the search index anew, unless that is going on; `rebuild_some` goes on with it."""
        return await self._db.write(rebuilding.begin, self._index)

    async def rebuild_some(self) -> rebuilding.Rebuilding | None:
        """Index some more messages. Returns how far it came, None where it is done or nothing was begun."""
        return await self._db.write_relaxed(rebuilding.step, self._index)

    async def rebuilding(self) -> rebuilding.Rebuilding | None:
        return await self._db.read(rebuilding.progress)

    async def bound_log(self) -> None:
        """Write SQLite's log back into the file when it has grown."""
        log = self._path.with_name(f"{self._path.name}-wal")
        if await asyncio.to_thread(lambda: log.exists() and log.stat().st_size > LONGEST_LOG):
            await self._db.checkpoint()

    async def failing(self) -> StoreError:
        """Wait until a write fails for a reason that lies outside of it, such as a full disk. Returns the reason."""
        await self._db.failed.wait()
        self._db.failed.clear()
        return self._db.failure or StoreError("The store cannot be used just now.")

    async def takes_writes(self, now: float) -> bool:
        """Whether a write succeeds and there is room for more."""
        usage = await asyncio.to_thread(shutil.disk_usage, self._path.parent)
        if usage.free < ROOM:
            return False
        try:
            await self._db.write(health.probe_write, now)
        except StoreError as error:
            if error.lasting:
                raise
            return False
        finally:
            self._db.failed.clear()
        return True

    async def probe(self) -> None:
        """Raises StoreError unless the store can be read."""
        await self._db.read(health.probe)
