"""What weeks of chat cost in input tokens, by where recall stands and how long the cache lives."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from bench.figures import Against, Figure, at_most, at_most_times
from bench.optimum import READ, READ_OLDER, WRITE, Weights, cost, optimum, sent
from bench.subject import Run, Subject
from bench.weeks import AT_EASE, AT_ONCE, CHATS, USES_TOOLS, Chat, Pace, Turn, looked_up, weeks
from clew.config import Person
from clew.context.prompt import Placement
from clew.request import Ttl
from clew.tools import Tool, ToolContext
from tests.emulators.anthropic import AnthropicEmulator, AnthropicRecord
from tests.emulators.anthropic_cache import flatten
from tests.emulators.anthropic_models import MODELS
from tests.emulators.scripts import say
from tests.emulators.server import JsonObject, Reply
from tests.emulators.summariser import work
from tests.integration.engine import World, engine, is_summary

MIDNIGHT = 1_799_971_200.0
"""When the first day begins, seconds since the epoch: 2027-01-15 00:00 UTC."""
MODEL = "claude-sonnet-5-5"
"""The default one."""
ENTRIES, FACT_SENTENCES = 36, 2
"""Entries of a summary above which the model drops the oldest, and sentences of one: about 1,000 tokens."""
FENCE = "⟦recalled"
"""Begins what is recalled."""
BOUND = 1.15
"""What the default placement and lifetime may cost, in optima."""
UNIT = "M"
METHOD = f"""
Millions of input tokens per 1,000 turns, in plain ones: a token read from the cache counts {READ:g}, one written {WRITE["5m"]:g} for
five minutes and {WRITE["1h"]:g} for an hour, as with {MODEL}. Three people and a group write for weeks, in sittings with nights and
hours between them: `in one go` with pauses of {AT_ONCE.pause:.0f} s at the median, one in nineteen longer than five minutes; `by the
way` with pauses of {AT_EASE.pause / 60:.0f} min, one in three longer. `tools`: {USES_TOOLS:.0%} of the turns call some, up to three
times in a row and up to four at once. All of clew answers with its defaults, over HTTP, from an emulated endpoint that accounts for
its cache block by block; its clock is set and not waited for. Requests for summaries are among those that count. The optimum is the
least that the same requests could have cost with the same lifetime, wherever markers had stood, by somebody who knows which messages
are still to come. Nobody does: what is paid beyond it went into writing what nobody came back for in time. The texts are made up, the
same for the same seed.
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """Where recall stands, how long the cache lives, whether turns call tools, how people write."""

    placement: Placement
    ttl: Ttl
    tools: bool = False
    pace: Pace = AT_ONCE

    @property
    def name(self) -> str:
        where = "the system prompt" if self.placement == "system" else "the message"
        return f"{self.pace.name}{', tools' if self.tools else ''}: recall in {where}, {self.ttl}"

    @property
    def default(self) -> bool:
        return (self.placement, self.ttl) == ("system", "1h")


POLICIES = tuple(
    Policy(placement, ttl, tools, pace)
    for pace, tools in ((AT_ONCE, False), (AT_ONCE, True), (AT_EASE, False))
    for placement in ("system", "message")
    for ttl in ("5m", "1h")
)


@dataclass(frozen=True, slots=True)
class Bill:
    """Input tokens of `turns` turns, in plain ones. uncached: what they had cost without a cache; paid: what they cost; best: the optimum
    for the same requests.

    older: `paid` and `best` where a token read counts as with most older models. calls: requests, those for `summaries` summaries among
    them. changed: turns in front of which another recall block stood than in the turn before in the chat. missed: tokens that could have
    been read, and were not.
    """

    turns: int
    calls: int
    summaries: int
    changed: int
    missed: int
    uncached: float
    paid: float
    best: float
    older: tuple[float, float]

    def millions(self, tokens: float) -> float:
        """Per 1,000 turns."""
        return tokens / self.turns / 1000


class Model:
    """Says to each message what its turn has it say, and calls the tools that it has it call. shown: the recall block of each turn."""

    def __init__(self) -> None:
        self.turn: Turn
        self.shown: list[tuple[str, str]] = []
        self._left: list[tuple[str, ...]] = []
        self._calls = 0

    def begin(self, turn: Turn) -> None:
        self.turn, self._left = turn, [*turn.rounds]

    def reply(self, body: JsonObject) -> Reply:
        if len(self._left) == len(self.turn.rounds):
            self.shown.append((self.turn.chat.name, _recalled(body)))
        if not self._left:
            return say(self.turn.answer)
        return Reply([self._call(query) for query in self._left.pop(0)], "tool_use")

    def _call(self, query: str) -> JsonObject:
        self._calls += 1
        return {"type": "tool_use", "id": f"toolu_{self._calls:06d}", "name": LOOK_UP.name, "input": {"query": query}}

    @property
    def changed(self) -> int:
        before: dict[str, str] = {}
        changed = 0
        for chat, block in self.shown:
            changed += before.get(chat, "") != block
            before[chat] = block
        return changed


def _recalled(body: JsonObject) -> str:
    parts = [*body["system"], *body["messages"][-1]["content"]]
    return next((part["text"] for part in parts if FENCE in part.get("text", "")), "")


def summary(body: JsonObject) -> Reply:
    """Of every other message the first sentences become a fact; where there are many facts, the oldest go."""
    asked = work(body)
    said = [message for message in asked.messages if message.speaker != "tool" and not message.text.startswith("(")][::2]
    texts = [" ".join(part["text"].split()) for message in body["messages"] for part in message["content"] if part["type"] == "text"][:-1]
    added = [f"+ fact | {each.speaker} | said | #{each.number} | {_fact(each.text, texts)}" for each in said]
    dropped = sorted(asked.entries)[: max(0, len(asked.entries) + len(added) - ENTRIES)]
    return say("\n".join([*(f"- {number} | it is old" for number in dropped), *added]) or "=")


def _fact(text: str, texts: Sequence[str]) -> str:
    """The first sentences of a message. texts: those in front of a request that shows of each message only how it begins."""
    begin = text.removesuffix("…")
    whole = text if begin == text else next((each[each.index(begin) :] for each in texts if begin in each), begin)
    return ". ".join(whole.split(". ")[:FACT_SENTENCES])


class Query(BaseModel):
    query: str


async def _look_up(context: ToolContext, arguments: BaseModel) -> str:
    return looked_up(Query.model_validate(arguments.model_dump()).query)


LOOK_UP = Tool("look_up", "Looks something up in the papers of the house.", Query, _look_up, idempotent=True)


def tokens(text: str) -> int:
    """Of English, about."""
    return (len(text) + 3) // 4


class Clock:
    """A wall clock that stands still until it is set."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


async def bill(folder: Path, policy: Policy, days: int, seed: int, chats: Sequence[Chat] = CHATS) -> Bill:
    """What so many days cost under a policy. folder: an empty one, for the store."""
    turns = weeks(seed, days, tools=policy.tools, pace=policy.pace, chats=chats)
    model, clock = Model(), Clock(MIDNIGHT)
    tools = [LOOK_UP] if policy.tools else []
    async with engine(
        folder, model.reply, summary=summary, tools=tools, provider="anthropic", clock=clock, tok=tokens, window=None
    ) as world:
        assert isinstance(world.model, AnthropicEmulator)
        world.model.clock = clock
        _configure(world, policy, chats)
        async with world.running():
            for turn in turns:
                await _until(world, clock, MIDNIGHT + turn.at)
                model.begin(turn)
                await _said(world, turn)
        return _billed(world.model.calls, model, policy)


def _configure(world: World, policy: Policy, chats: Sequence[Chat]) -> None:
    section = world.config.providers["local"]
    settings = section.settings.model_copy(update={"cache_ttl": policy.ttl, "model": MODEL})
    people = {name: Person(role="member", identities=(f"desk:{name}",)) for chat in chats for name in chat.people}
    providers = {"local": section.model_copy(update={"settings": settings})}
    world.config = world.config.model_copy(update={"people": people, "providers": providers})
    world.agent(recall=world.config.agent.recall.model_copy(update={"placement": policy.placement}))


async def _until(world: World, clock: Clock, at: float) -> None:
    """Let the time pass until then; threads that fall due meanwhile are compacted, each when it does."""
    await world.idle()
    while (due := await world.store.next_boundary(clock.at)) is not None and due <= at:
        clock.at = max(due, clock.at)
        await world.service.upkeep.look()
        await world.service.upkeep.settled()
    clock.at = at


async def _said(world: World, turn: Turn) -> None:
    chat = turn.chat
    if turn.new:
        await world.desk.ask("/new", chat.name, sender=turn.person, direct=chat.direct)
    answer = await world.desk.ask(turn.text, chat.name, sender=turn.person, direct=chat.direct)
    if answer != turn.answer:
        raise RuntimeError(f"{turn.text!r} was answered by {answer!r}")


def _billed(records: Sequence[AnthropicRecord], model: Model, policy: Policy) -> Bill:
    requests, accounted = [], []
    for record in records:
        if record.accounting is None:
            raise RuntimeError(f"a request was refused: {record.status}")
        requests.append(sent(record.started, flatten(record.body, tokens), record.accounting))
        accounted.append(record.accounting)

    def paid_and_best(read: float) -> tuple[float, float]:
        weights = Weights(read, WRITE[policy.ttl])
        return sum(cost(each, read) for each in accounted), optimum(requests, policy.ttl, weights, MODELS[MODEL].minimum)

    return Bill(
        len(model.shown),
        len(records),
        sum(is_summary(record.body) for record in records),
        model.changed,
        sum(each.longest_unexpired_prefix - each.read for each in accounted),
        sum(each.total for each in accounted),
        *paid_and_best(READ),
        older=paid_and_best(READ_OLDER),
    )


async def measure(run: Run) -> list[Figure]:
    days, seed = run.sizes.days, run.sizes.seed
    figures, missed = [], 0
    for number, policy in enumerate(POLICIES):
        found = await bill(run.made(f"tokens-{number}"), policy, days, seed)
        figures += _figures(f"{days} days {policy.name}", policy, found)
        missed += found.missed
    return [*figures, Figure(f"{days} days, all of them: tokens that could have been read and were not", missed, "", None, (at_most(0),))]


def _figures(name: str, policy: Policy, found: Bill) -> list[Figure]:
    uncached, paid, best = map(found.millions, (found.uncached, found.paid, found.best))
    figures = [
        Figure(name, paid, UNIT, Against("optimum", best), (at_most_times(BOUND),) if policy.default else ()),
        Figure(f"{name}: against no cache", paid, UNIT, Against("without a cache", uncached)),
    ]
    if policy.default:
        older, least = map(found.millions, found.older)
        figures.append(Figure(f"{name}: a read at {READ_OLDER:g}", older, UNIT, Against("optimum", least), (at_most_times(BOUND),)))
    return figures


subject = Subject(
    "tokens",
    "Input tokens of weeks of chat",
    METHOD,
    measure,
    lambda sizes: f"{sizes.days} days, seed {sizes.seed}",
)
