"""Weeks of made-up chat: who writes what, where and when. The same for the same seed. Pure.

Every chat has sittings: nobody writes at night, a few times a day somebody begins, and then messages follow each other as fast as people
read, think and type. What is said is of one topic for a sitting, and topics come back, so that there is something to recall.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

DAY, HOUR = 86_400.0, 3_600.0


@dataclass(frozen=True, slots=True)
class Chat:
    """Where somebody talks. people: who writes there. sittings: on a day, on average. turns: of a sitting, on average."""

    name: str
    people: tuple[str, ...]
    sittings: float
    turns: float

    @property
    def direct(self) -> bool:
        return len(self.people) == 1


@dataclass(frozen=True, slots=True)
class Pace:
    """How people write in a sitting. pause: between an answer and the next message, seconds, at the median; spread: the standard deviation
    of its logarithm."""

    name: str
    pause: float
    spread: float


CHATS = (
    Chat("ada", ("ada",), 2.5, 5.0),
    Chat("ada/garden", ("ada",), 0.5, 6.0),
    Chat("bob", ("bob",), 1.5, 4.0),
    Chat("eve", ("eve",), 1.0, 3.0),
    Chat("family", ("ada", "bob", "eve"), 1.0, 4.0),
)
"""Three people with a chat each, one with a second thread, and a group: about 34 turns a day."""
WAKING = (7.0, 23.0)
"""Hours of the day between which sittings begin."""
AT_ONCE = Pace("in one go", 60.0, 1.0)
"""One pause in nineteen of a sitting is longer than five minutes."""
AT_EASE = Pace("by the way", 180.0, 1.5)
"""Answered when there is time: one pause in three is."""
NEW_SESSION = 0.05
"""Share of sittings that begin with /new."""
COURTESY = 0.1
"""Share of messages that say nothing: thanks, a word, a smile."""
USES_TOOLS = 0.3
"""Share of turns that call tools, where there are tools."""
ROUNDS = (1, 1, 2, 3)
PARALLEL = (1, 1, 1, 2, 4)
"""Rounds of a turn that calls tools, and calls of a round, each as likely as it stands here."""
ASKED_WORDS, ANSWERED_WORDS, SPREAD = 40, 130, 0.7
"""Medians of the words of a message and of an answer, and the standard deviation of their logarithms."""
LONGEST_WORDS = 600
TOPICS, TOPIC_WORDS = 10, 14
"""Topics that somebody comes back to, and their words."""
TOPIC_SHARE = 0.3
"""Share of words that are the topic's own."""

_COMMON = (
    "the of and to a in is it you that was for on are with as I his they be at one have this from or had by hot but some "
    "what there we can out other were all your when up use word how said an each she which do their time if will way about "
    "many then them would write like so these her long make thing see him two has look more day could go come did my sound "
    "no most number who over know water than call first people may down side been now find any new work part take get place "
    "made live where after back little only round man year came show every good"
)
COMMON = _COMMON.split()
_SYLLABLES = "ba kel mo rin ta vos lu nem pir sa dor gli fe hun jo wex zi cra thu ol"
SYLLABLES = _SYLLABLES.split()
COURTESIES = ("thanks", "ok, good", "great, thank you", "yes please", "fine", "hm, let me think about it")


@dataclass(frozen=True, slots=True)
class Turn:
    """What happens next. at: seconds since the beginning. text: what is written. answer: what the model says to it. rounds: for each round
    of tool calls what is looked up. new: a new session is begun first."""

    at: float
    chat: Chat
    person: str
    text: str
    answer: str
    rounds: tuple[tuple[str, ...], ...]
    new: bool


def weeks(seed: int, days: int, *, tools: bool, pace: Pace = AT_ONCE, chats: Sequence[Chat] = CHATS) -> list[Turn]:
    """All turns of so many days, in the order of their times. tools: whether some of them call tools; this changes nothing else."""
    turns = [turn for chat in chats for turn in _chat(chat, random.Random(f"{seed} {chat.name}"), days, pace, tools)]
    return sorted(turns, key=lambda turn: (turn.at, turn.chat.name))


def _chat(chat: Chat, chance: random.Random, days: int, pace: Pace, tools: bool) -> Iterator[Turn]:
    topics = [_topic(random.Random(f"{chat.people[0]} {number}")) for number in range(TOPICS)]
    over = 0.0
    for day in range(days):
        for begin in sorted(chance.uniform(*WAKING) for _ in range(_count(chance, chat.sittings))):
            at = max(day * DAY + begin * HOUR, over)
            topic = chance.choices(topics, [1 / rank for rank in range(1, TOPICS + 1)])[0]
            new = chance.random() < NEW_SESSION
            for number in range(_length(chance, chat.turns)):
                yield _turn(chat, chance, at, topic, tools, new and not number)
                at += pace.pause * chance.lognormvariate(0, pace.spread)
            over = at


def _turn(chat: Chat, chance: random.Random, at: float, topic: Sequence[str], tools: bool, new: bool) -> Turn:
    person = chance.choice(chat.people)
    empty = chance.random() < COURTESY
    text = chance.choice(COURTESIES) if empty else _prose(chance, topic, ASKED_WORDS)
    answer = "You are welcome." if empty else _prose(chance, topic, ANSWERED_WORDS)
    called = [tuple(_prose(chance, topic, 6) for _ in range(chance.choice(PARALLEL))) for _ in range(chance.choice(ROUNDS))]
    uses = chance.random() < USES_TOOLS and not empty
    return Turn(at, chat, person, text, answer, tuple(called) if uses and tools else (), new)


def _topic(chance: random.Random) -> list[str]:
    return ["".join(chance.choices(SYLLABLES, k=3)) for _ in range(TOPIC_WORDS)]


def _prose(chance: random.Random, topic: Sequence[str], median: float) -> str:
    """Sentences of common words and the topic's own."""
    count = max(3, min(LONGEST_WORDS, round(chance.lognormvariate(0, SPREAD) * median)))
    words = chance.choices(COMMON, [1 / rank for rank in range(1, len(COMMON) + 1)], k=count)
    words = [chance.choice(topic) if chance.random() < TOPIC_SHARE else word for word in words]
    ends = [0, *accumulate(chance.randint(6, 14) for _ in range(count // 6 + 1))]
    sentences = (words[start:end] for start, end in pairwise(ends))
    return " ".join(f"{' '.join(each).capitalize()}." for each in sentences if each)


def _count(chance: random.Random, mean: float) -> int:
    """How often something happens that happens so often on average, by Poisson."""
    count, left = 0, chance.expovariate(1.0)
    while left < mean:
        count, left = count + 1, left + chance.expovariate(1.0)
    return count


def _length(chance: random.Random, mean: float) -> int:
    """At least one, so many on average, each next one as likely as any other."""
    count = 1
    while chance.random() < 1 - 1 / mean:
        count += 1
    return count


def looked_up(query: str) -> str:
    """What the tool finds: the same for the same query, about 400 tokens."""
    return _prose(random.Random(query), query.lower().strip(".").split(), 330)
