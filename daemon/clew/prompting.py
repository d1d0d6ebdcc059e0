"""From a session's rows to the request of its next model call."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import islice
from zoneinfo import ZoneInfo

import structlog

from clew.budget import numbers, reply_tokens
from clew.clock import Time
from clew.compacted import covered
from clew.config import Agent as Settings
from clew.context import view
from clew.context.files import Sight, seen
from clew.context.prompt import (
    Chain,
    Headed,
    Marks,
    Parts,
    Prefix,
    base_prompt,
    chain,
    headed,
    is_cheaper,
    layout,
    mark,
    read_tokens,
    request_tokens,
)
from clew.context.shares import affordable
from clew.context.tokens import estimate
from clew.context.view import Rendered
from clew.messages import Text
from clew.model_call import TTL_SECONDS
from clew.notes import Bounds, noted
from clew.passages import Asked, Passages
from clew.providers import Limits, PromptMessage, Provider, Request, ToolSpec
from clew.recall import Appendix, RecallProvider, SessionView, excerpts_json
from clew.store import CacheEntry, Claim, PromptState, Reader, Recalled, ViewRows
from clew.store.notes import Where, shown_scopes
from clew.store.sql import SqlStore

log = structlog.get_logger()

PREVIOUS = 3
"""The person's messages before this turn that recall may take words from."""
COLD_WITHOUT_CACHE = 3600.0
"""Seconds of silence after which a recall block may change freely where the provider has no cache of stated lifetime."""
REMEMBERED = 64
"""Sessions whose last request is remembered: the next one goes on from it, and only what is new is made, hashed and measured."""
AT_ONCE = 8
"""Prefixes that are looked up at once: what a provider holds of a thread is rarely far from its end."""

NOTHING = Appendix("", (), ())

Words = tuple[str, tuple[str, ...]]
"""(what the person says in this turn, what they said before it, oldest first)."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What stands in the prompt for the whole of a turn, and what recall considered."""

    state: PromptState
    recalled: tuple[Recalled, ...] = ()


@dataclass(frozen=True, slots=True)
class Behind:
    """A summary request that goes on from the prefix of a session's replies. tokens: all of it, estimated; read: of the prefix that the
    provider holds."""

    marks: Marks
    chain: tuple[Prefix, ...]
    tokens: int
    read: int


@dataclass(frozen=True, slots=True)
class Measure:
    """The parts of a request in their order, (name, estimated tokens), and how many tools it has."""

    parts: tuple[tuple[str, int], ...]
    tools: int


class Prompter:
    """Makes requests. Everything in them comes from rows and the config, so that a restart changes no byte."""

    def __init__(
        self,
        store: SqlStore,
        settings: Settings,
        recall: RecallProvider,
        passages: Passages,
        tools: Sequence[ToolSpec],
        time: Time,
        zone: str,
        skills: str = "",
    ) -> None:
        self._store = store
        self._settings = settings
        self._recall = recall
        self._passages = passages
        self.use_tools(tools)
        self._time = time
        self._zone_name = zone
        self._skills = skills
        self._newest: dict[str, tuple[Headed, Chain]] = {}  # of sessions, those last asked for behind

    def use_tools(self, tools: Sequence[ToolSpec]) -> None:
        """What models are told of tools from the next request on."""
        self._tools = tuple(tools)
        self._affordable: dict[int, tuple[ToolSpec, ...]] = {}  # by the window's size

    def zone(self, claim: Claim) -> tuple[tzinfo, str]:
        """The zone of a turn: the person's in a direct chat, else the configured one."""
        return self._zone(_reader(claim))

    def _zone(self, reader: Reader) -> tuple[tzinfo, str]:
        name = reader.timezone if reader.direct and reader.timezone else self._zone_name
        return ZoneInfo(name), name

    async def decide(self, claim: Claim, rows: ViewRows, provider: Provider) -> Decided:
        """The notes, and what recall and documents give for this turn: asked once, then fixed. A turn that was interrupted keeps what it
        had."""
        now = self._time.wall()
        state = rows.prompt
        if state.recall_turn == claim.turn:
            return Decided(state)
        compaction = rows.compaction.id if rows.compaction else None
        limits = numbers(provider, await provider.limits(), self._settings.compression)
        warm = state.compaction == compaction and not is_cold(state, provider, now)
        zone, zone_name = self.zone(claim)
        bounds = Bounds(self._settings.notes, limits.notes_limit, zone, zone_name)
        state = await noted(self._store, Where(str(claim.address)), state, claim.notes, bounds, free=not warm, now=now)
        limit = limits.recall_limit
        keep = warm and self._settings.recall.placement == "system" and bool(state.recall) and estimate(state.recall) <= limit
        words = _words(claim, rows)
        text = await self._recalled(self._asking(claim, rows, words, keep, limit, now)) if self._settings.recall.enabled else NOTHING
        size = estimate(str(text))  # a plain text: the measure remembers what it is given, and this one carries what was considered
        if size > limit:
            log.warning("recall.failed", err=f"a block of {size} tokens, and {limit} are the most that fit the model's window")
            text, size = NOTHING, 0
        shown = text.shown if isinstance(text, Appendix) else ()
        considered = text.considered if isinstance(text, Appendix) else ()
        quoted = {identifier for excerpt in shown for identifier in excerpt.ids}
        recalled = tuple(Recalled(each.id, each.score, each.why, quoted.issuperset(each.ids), each.ids) for each in considered)
        decided = replace(
            state, recall=str(text), excerpts=excerpts_json(shown), recall_turn=claim.turn, compaction=compaction, last_call=now
        )
        return Decided(await self._with_documents(claim, words, decided, warm=warm, limit=limit - size), recalled)

    async def _recalled(self, asking: SessionView) -> str:
        try:
            return await self._recall.system_appendix(asking)
        except Exception as error:
            log.warning("recall.failed", err=f"{type(error).__name__}: {error}")
            return NOTHING  # whether what stood there may still be shown is not known either

    async def _with_documents(self, claim: Claim, words: Words, state: PromptState, *, warm: bool, limit: int) -> PromptState:
        """What of the documents stands behind what was recalled, in at most `limit` tokens."""
        keep = warm and self._settings.recall.placement == "system"
        try:
            return await self._passages.decide(Asked(Where(str(claim.address)), *words, state, keep, limit))
        except Exception as error:
            log.warning("documents.failed", err=f"{type(error).__name__}: {error}")
            return replace(state, documents="", passages="[]")  # whether what stood there may still be shown is not known either

    def _asking(self, claim: Claim, rows: ViewRows, words: Words, keep: bool, limit: int, now: float) -> SessionView:
        text, previous = words
        return SessionView(
            session=claim.session,
            address=str(claim.address),
            after_seq=rows.to_seq,
            text=text,
            previous=previous,
            names=tuple(dict.fromkeys(row.sender_name for row in rows.messages if row.role == "user" and row.sender_name)),
            zone=self.zone(claim)[0],
            state=rows.prompt if keep else replace(rows.prompt, recall="", excerpts="[]"),
            keep=keep,
            limit_tokens=limit,
            at=now,
            in_view=tuple(message.text for message in rows.messages),
            summary=rows.compaction.text if rows.compaction else "",
        )

    def request(
        self,
        claim: Claim,
        rows: ViewRows,
        messages: Sequence[Rendered],
        state: PromptState,
        provider: Provider,
        limits: Limits,
        unseen: Collection[str] = (),
    ) -> Chain:
        """The request of the next model call, unmarked, hashed and measured. unseen: files that are sent as words."""
        before, chained = self._newest.pop(rows.session, (None, None))
        words, request = self._request(_reader(claim), rows, messages, state, provider, limits, unseen, before)
        made = chain(request, _account(provider), chained)
        self._newest[rows.session] = words, made
        if len(self._newest) > REMEMBERED:
            del self._newest[next(iter(self._newest))]
        return made

    def _request(
        self,
        reader: Reader,
        rows: ViewRows,
        messages: Sequence[Rendered],
        state: PromptState,
        provider: Provider,
        limits: Limits,
        unseen: Collection[str] = (),
        before: Headed | None = None,
    ) -> tuple[Headed, Request]:
        zone, zone_name = self._zone(reader)
        unseen = rows.unseen(provider.name, provider.model).union(unseen)
        custom = self._settings.system_prompt
        shown = seen(messages, Sight(limits.files, self._file_tokens(provider, limits)), unseen)
        words = headed(shown, view.head(zone, zone_name if custom else "", direct=reader.direct), before)
        parts = Parts(
            base=self._base(zone_name),
            messages=shown,
            head=words.head,
            tools=self.tools(provider, limits),
            notes=state.notes,
            summary=rows.compaction.text if rows.compaction else "",
            covered_line=covered(rows.compaction).line(zone) if rows.compaction and rows.compaction.text else "",
            recall=state.recalled,
            placement=self._settings.recall.placement,
        )
        tokens = reply_tokens(provider, limits)
        return words, layout(parts, max_tokens=tokens, ttl=provider.cache_ttl, cache_key=rows.session, made=words)

    async def behind(
        self, rows: ViewRows, demoted: Sequence[Rendered], words: str, max_tokens: int, provider: Provider, than: int
    ) -> Behind | None:
        """A summary request that repeats what replies to this session begin with, up to the last demoted message, and ends in `words`.

        None unless the provider holds so much of it that this costs less than a request of `than` tokens; where a recall block stands in
        the system prompt, since other sessions' words are not to be summarised with this one's; where notes stand there that its own
        chat may not see, since it was taken up elsewhere; and where it does not fit.
        """
        if provider.cache_ttl is None or (rows.prompt.recalled and self._settings.recall.placement == "system"):
            return None
        limits = await provider.limits()
        reader = await self._store.reader(rows.session)
        if rows.prompt.notes and not reader.scopes.issuperset(shown_scopes(rows.prompt.notes_key)):
            return None
        _, request = self._request(reader, rows, demoted, replace(rows.prompt, recall="", documents=""), provider, limits)
        said = (*request.messages, PromptMessage("user", (Text(words),)))
        request = replace(request, messages=said, max_tokens=max_tokens, purpose="summary")
        made = chain(request, _account(provider))
        cached = await self._store.cached(provider.name, provider.model, [each.hash for each in made.prefixes], self._time.wall())
        read = read_tokens(made.prefixes, cached)
        fits = made.tokens * rows.ratio(provider.name, provider.model) + max_tokens <= limits.window
        if not fits or not is_cheaper(made.tokens, read, than):
            return None
        marks = replace(mark(request, made.prefixes, cached, end=False), held=_held(cached))
        return Behind(marks, made.prefixes, made.tokens, read)

    async def measured(self, rows: ViewRows, messages: Sequence[Rendered], provider: Provider, limits: Limits) -> Measure:
        """What a request for a session would be made of if nothing new were said."""
        _, request = self._request(await self._store.reader(rows.session), rows, messages, rows.prompt, provider, limits)
        block = {each.kind: estimate(each.text) for each in request.system}
        skills, documents = estimate(self._skills), estimate(rows.prompt.documents)
        recall = block.get("recall", 0)
        parts = (
            ("tools", request_tokens(replace(request, system=(), messages=()))),
            ("base prompt", block.get("base", 0) - skills),
            ("skills", skills),
            ("notes", block.get("notes", 0)),
            ("summary", block.get("summary", 0)),
            ("recall", max(recall - documents, 0)),
            ("documents", min(documents, recall)),
            ("messages", request_tokens(replace(request, system=(), tools=()))),
        )
        return Measure(parts, len(request.tools))

    def _file_tokens(self, provider: Provider, limits: Limits) -> int:
        """What the files of a request may take up: a quarter of the window."""
        return numbers(provider, limits, self._settings.compression).w // 4

    def _base(self, zone_name: str) -> str:
        """The base prompt and, behind a blank line, the skills."""
        return "\n\n".join(filter(None, (base_prompt(self._settings.system_prompt, zone_name), self._skills)))

    def tools(self, provider: Provider, limits: Limits) -> tuple[ToolSpec, ...]:
        """The tools that a provider's window can afford; the same for every request."""
        if limits.window not in self._affordable:
            bounds = numbers(provider, limits, self._settings.compression)
            self._affordable[limits.window] = affordable(self._tools, self._base(self._zone_name), bounds.base_limit)
        return self._affordable[limits.window]

    async def left_out(self, provider: Provider) -> list[str]:
        """Names of the tools that a provider's window cannot afford."""
        kept = self.tools(provider, await provider.limits())
        return sorted(tool.name for tool in self._tools if tool not in kept)

    async def marked(self, made: Chain, provider: Provider) -> Marks:
        """The request of a chain with its cache markers."""
        if provider.cache_ttl is None:
            return Marks(made.request, ())
        account, now = (provider.name, provider.model), self._time.wall()
        hashes = [prefix.hash for prefix in reversed(made.prefixes)]
        cached: Mapping[str, CacheEntry] = {}
        for start in range(0, len(hashes), AT_ONCE):  # the deepest one counts
            if cached := await self._store.cached(*account, hashes[start : start + AT_ONCE], now):
                break
        return replace(mark(made.request, made.prefixes, cached), held=_held(cached))


def _held(cached: Mapping[str, CacheEntry]) -> int:
    """Tokens of the longest of these prefixes."""
    return max((entry.tokens for entry in cached.values()), default=0)


def _words(claim: Claim, rows: ViewRows) -> Words:
    newest = [message for message in rows.messages if message.role == "user" and message.seq >= claim.first_seq]
    before = (row.text for row in reversed(rows.messages) if row.role == "user" and row.seq < claim.first_seq and not row.overheard)
    return "\n".join(message.text for message in newest), tuple(islice(before, PREVIOUS))[::-1]


def _reader(claim: Claim) -> Reader:
    return Reader(claim.direct, claim.person.timezone if claim.person else None)


def _account(provider: Provider) -> str:
    return f"{provider.name}\x00{provider.model}"


def is_cold(state: PromptState, provider: Provider, now: float) -> bool:
    """Whether nothing of the session's prefix is cached any more, so that it may change freely."""
    return now - state.last_call > (TTL_SECONDS[provider.cache_ttl] if provider.cache_ttl else COLD_WITHOUT_CACHE)


async def given_notes(
    store: SqlStore, settings: Settings, where: Where, session: str | None, provider: Provider, zone_name: str, now: float
) -> str:
    """The notes that a model would be given if somebody wrote now: in this session or, without one, in a new one.

    zone_name: the configured zone, which holds where no person with one of their own is meant.
    """
    limits = numbers(provider, await provider.limits(), settings.compression)
    zone_name = await store.notes.zone(where) or zone_name
    bounds = Bounds(settings.notes, limits.notes_limit, ZoneInfo(zone_name), zone_name)
    standing = await store.notes.standing(where, now)
    if session is None:
        return (await noted(store, where, PromptState(), standing, bounds, free=True, now=now)).notes
    rows = await store.view(session)
    warm = rows.prompt.compaction == (rows.compaction.id if rows.compaction else None) and not is_cold(rows.prompt, provider, now)
    return (await noted(store, where, rows.prompt, standing, bounds, free=not warm, now=now)).notes
