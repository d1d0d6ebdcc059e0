"""What a reply costs without its model: from a message over MQTT to the reply over MQTT, beside the least that has to be done."""

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from itertools import cycle, pairwise
from pathlib import Path

from bench.figures import Against, Figure, Point, at_most, at_most_times
from bench.processes import Measured
from bench.subject import Plot, Run, Subject
from bench.talking import FLOOR, broker, clew, floor, names, quantile, stopped, talking, write_config

WARM_UP = 30
SHORT = 100
"""Messages in each of many chats, and those with which longer threads are compared."""
METHOD = f"""
One person after the other says a sentence over MQTT and waits for the reply, which a model gives at once that costs nothing. CPU is that
of clew's process, all threads, from one reply to the next, at the median; times are from the message to its reply, with broker and
client. Compactions are among the turns. In front of them stand the messages that are named, all but the last of them behind a summary; in
each of several chats {SHORT}. The floor is a loop that does the least: receive from the broker, one durable commit, publish; it is
measured at the beginning, in the middle and at the end.
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a turn, milliseconds: CPU at the median; from message to reply at the median, and what 99 of 100 do not exceed."""

    cpu: float
    p50: float
    p99: float


async def cost(measured: Measured, port: int, turns: int, people: Sequence[str], *, daemon: bool) -> Cost:
    """Of `turns` turns, one person after the other, behind one turn at least of each."""
    order = cycle(people)
    async with talking(port, daemon=daemon) as talk:
        for _ in range(max(WARM_UP, len(people))):
            await talk.turn(next(order))
        marks, took = [measured.cpu_ns], []
        for _ in range(max(turns, len(people))):
            took.append(await talk.turn(next(order)))
            marks.append(measured.cpu_ns)
    return Cost(statistics.median(b - a for a, b in pairwise(marks)) / 1e6, quantile(took, 0.5) * 1e3, quantile(took, 0.99) * 1e3)


Costs = dict[int, Cost]


async def measure(run: Run) -> list[Figure]:
    folder = run.made("replying")
    found: dict[bool, tuple[Costs, Costs]] = {}
    floors = [await _floor(run, folder)]
    for recall in (False, True):
        found[recall] = await _measured(run, folder, recall=recall)
        floors.append(await _floor(run, folder))
    least = Cost(*(statistics.median(values) for values in zip(*map(astuple, floors), strict=True)))
    figures = [
        Figure(f"floor ({FLOOR}): CPU", least.cpu, "ms"),
        Figure(f"floor ({FLOOR}): half of the replies within", least.p50, "ms"),
        Figure(f"floor ({FLOOR}): 99 of 100 replies within", least.p99, "ms"),
    ]
    for recall, (lengths, many) in found.items():
        figures += _rows(lengths, many, least, "on" if recall else "off")
    return figures


async def _floor(run: Run, folder: Path) -> Cost:
    own = Path(tempfile.mkdtemp(dir=folder))
    with broker(own) as server, stopped(floor(server.port, own)) as process:
        return await cost(process, server.port, run.sizes.turns, ["ada"], daemon=False)


async def _measured(run: Run, folder: Path, *, recall: bool) -> tuple[Costs, Costs]:
    """By the messages of one thread, and by the number of chats."""
    lengths = {messages: await _clew(run, folder, messages, 1, recall=recall) for messages in run.sizes.messages}
    return lengths, {chats: await _clew(run, folder, SHORT, chats, recall=recall) for chats in run.sizes.chats if chats > 1}


def _rows(lengths: Costs, many: Costs, least: Cost, recall: str) -> list[Figure]:
    longest = max(lengths)
    short = Against(f"with {SHORT} messages", lengths[SHORT].cpu)
    bounds = (at_most_times(1.2),) if recall == "off" else ()
    return [
        *(figure for messages, found in lengths.items() for figure in _figures(found, least, recall, "length", messages)),
        Figure(f"recall {recall}, {longest:,} messages: CPU", lengths[longest].cpu, "ms", short, bounds),
        *(figure for chats, found in ({1: lengths[SHORT]} | many).items() for figure in _figures(found, least, recall, "chats", chats)),
    ]


def _figures(found: Cost, least: Cost, recall: str, plot: str, x: int) -> list[Figure]:
    of = f"recall {recall}, " + (f"{x:,} messages" if plot == "length" else ("1 chat" if x == 1 else f"{x:,} chats"))
    targets = (at_most(3.5), at_most_times(4.0)) if recall == "off" else ()
    point = Point(f"reply-{plot}", f"recall {recall}", x)
    return [
        Figure(f"{of}: CPU per turn", found.cpu, "ms", Against("floor", least.cpu), targets, point=point),
        Figure(f"{of}: half of the replies within", found.p50, "ms", Against("floor", least.p50), steady=False),
        Figure(f"{of}: 99 of 100 replies within", found.p99, "ms", Against("floor", least.p99), steady=False),
    ]


async def _clew(run: Run, folder: Path, messages: int, chats: int, *, recall: bool) -> Cost:
    own, people = folder / f"{messages}-{chats}-{recall}", names(chats)
    own.mkdir()
    file = await run.stores.copy(own, messages, people)
    with broker(own) as server:
        config = write_config(own, server.port, people, agent={"recall": {"enabled": recall}})
        with stopped(clew(config)) as process:
            found = await cost(process, server.port, run.sizes.turns, people, daemon=True)
    file.unlink()
    return found


subject = Subject(
    "replying",
    "A reply without its model",
    METHOD,
    measure,
    lambda sizes: f"{sizes.turns} turns each, or one of each chat",
    (
        Plot("reply-length", "CPU per turn in a thread of so many messages", "messages in the thread", "ms"),
        Plot("reply-chats", "CPU per turn with so many chats", "chats", "ms"),
    ),
)
