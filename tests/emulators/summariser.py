"""Summarisers that do their work badly, each in one way; scripts for the model emulators.

`python -m tests.emulators.summariser MODE` serves one until it is stopped and prints the section of the config that reaches it.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from .openai import OpenAIEmulator
from .scripts import last_user_text, say
from .server import JsonObject, Reply, Script

_MESSAGE = re.compile(r"\A\[#(?P<number>\d+) (?:[\d-]{10} [\d:]{5} )?(?P<speaker>[^\]\n]+)\] ?(?P<text>.*)\Z")
_ENTRY = re.compile(r"\A(?P<number>\d+) \| (?P<rest>.*)\Z")
_SENTENCE = re.compile(r"(?<=[.!?])(?<!\d\.)\s+|(?<=[。！？])|\n+")
_NEGATION = re.compile(
    r"\b(?:not|never|no|nobody|nothing|nicht|nie|niemals|kein\w*|pas|jamais|surtout pas|plus jamais|rien|nunca|nada|nie|nigdy|żadn\w*)\b ?"
    r"|(?<=[a-z])n't\b|ない|不要|不能|不|别",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|I think|I believe|might|may|could|would|if|but don't quote me|I'm not at all sure"
    r"|vielleicht|glaube? ich|wenn|würde\w*|peut-être|je crois|si|creo|puede|quizás?"
    r"|może|chyba|myślę|gdyby|podobno)\b[, ]*|たぶん|かもしれません|もし|可能|也许|如果|大概",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")
SHORTEST = 24
"""Bytes of a sentence without a digit that is worth a line."""
_ORDER = re.compile(r"(?:ignore|disregard|forget) (?:all|every|any|the)\b.*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Said:
    """A message as the summariser reads it."""

    number: int
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Work:
    """What a summary request asks to be summarised: the current entries (number → the rest of the line) and the new messages."""

    entries: Mapping[int, str]
    messages: tuple[Said, ...]

    def sentences(self) -> Iterator[tuple[Said, str]]:
        """The sentences of the new messages, small talk left out: with it an answer would be longer than what it replaces."""
        for message in self.messages:
            for sentence in _SENTENCE.split(message.text):
                if (len(sentence.encode()) >= SHORTEST or _DIGIT.search(sentence)) and not sentence.startswith("("):
                    yield message, " ".join(sentence.split())


def work(body: JsonObject) -> Work:
    """Read a summary request."""
    text = last_user_text(body)
    entries = {
        int(found["number"]): found["rest"] for line in _section(text, "current_summary").splitlines() if (found := _ENTRY.match(line))
    }
    messages: list[Said] = []
    for line in _section(text, "new_messages").splitlines():
        if found := _MESSAGE.match(line):
            messages.append(Said(int(found["number"]), found["speaker"].strip(), found["text"]))
        elif messages:
            messages[-1] = Said(messages[-1].number, messages[-1].speaker, f"{messages[-1].text}\n{line}")
    return Work(entries, tuple(messages))


def _section(text: str, name: str) -> str:
    return text.partition(f"<{name}>\n")[2].partition(f"\n</{name}>")[0]


def _add(message: Said, text: str, *, kind: str = "fact", speaker: str = "", number: int | None = None) -> str:
    return f"+ {kind} | {speaker or message.speaker} | said | #{message.number if number is None else number} | {text}"


def copies(asked: Work) -> str:
    """No fault but zeal: every sentence becomes an entry of its own. What the other modes begin with."""
    return "\n".join(_add(message, sentence) for message, sentence in asked.sentences())


def drops(asked: Work) -> str:
    """Drops every entry and adds none."""
    return "\n".join(f"- {number} | no longer matters" for number in asked.entries) or "="


def hardens(asked: Work) -> str:
    """Turns guesses into facts, in the new sentences and in the entries that are there."""
    amended = [f"~ {number} | {_HEDGE.sub('', _text(rest))}" for number, rest in asked.entries.items() if _HEDGE.search(rest)]
    return "\n".join([*amended, *(_add(message, _HEDGE.sub("", sentence)) for message, sentence in asked.sentences())])


def denies_nothing(asked: Work) -> str:
    """Deletes every "not", in the new sentences and in the entries that are there."""
    amended = [f"~ {number} | {_NEGATION.sub('', _text(rest))}" for number, rest in asked.entries.items() if _NEGATION.search(rest)]
    added = [_add(message, _NEGATION.sub("", sentence), kind="constraint") for message, sentence in asked.sentences()]
    return "\n".join([*amended, *added])


def fails(asked: Work) -> str:
    """Returns the page of a gateway that found nobody behind it."""
    return "<html>\n<head><title>502 Bad Gateway</title></head>\n<body><center><h1>502 Bad Gateway</h1></center></body>\n</html>"


def repeats(asked: Work) -> str:
    """Says the first thing again and again."""
    first = next(iter(asked.sentences()), None)
    return "\n".join([_add(*first)] * 300) if first else "="


def translates(asked: Work) -> str:
    """Answers in a language that nobody in the thread speaks."""
    return "\n".join(_add(message, f"{message.speaker} kertoi jotakin, joka kannattaa muistaa.") for message in asked.messages)


def obeys(asked: Work) -> str:
    """Does what a message tells it to: drops everything where one says that, and answers with the word that it asks for."""
    orders = [found[0] for _, text in asked.sentences() if (found := _ORDER.search(text))]
    if not orders:
        return copies(asked)
    return "\n".join(
        [*(f"- {number} | as I was told" for number in asked.entries), f"+ constraint | user | said | #1 | {orders[0]}", "DONE"]
    )


def invents(asked: Work) -> str:
    """Adds what nobody said: identifiers, sums, names, rules."""
    return "\n".join(
        line
        for message in asked.messages[::4]
        for line in (
            _add(message, f"The contract is ZX-{message.number}88-Q and costs 7,{message.number:03}.50 EUR.", kind="identifier"),
            _add(message, 'Never talk to "Dr. Ottokar Wessling" about it.', kind="constraint"),
        )
    )


def miscites(asked: Work) -> str:
    """Says what was said, and cites the message after it, which is by somebody else as a rule."""
    last = asked.messages[-1].number if asked.messages else 0
    return "\n".join(_add(message, sentence, number=min(message.number + 1, last)) for message, sentence in asked.sentences())


def impersonates(asked: Work) -> str:
    """Gives everybody's words to somebody else."""
    people = {message.speaker for message in asked.messages}

    def other(speaker: str) -> str:
        return min(people - {speaker, "tool"}, default="assistant")

    return "\n".join(_add(message, sentence, speaker=other(message.speaker)) for message, sentence in asked.sentences())


def alters(asked: Work) -> str:
    """Gets every number wrong by one, in the new sentences and in the entries that are there."""
    amended = [f"~ {number} | {_off_by_one(_text(rest))}" for number, rest in asked.entries.items() if _DIGIT.search(_text(rest))]
    return "\n".join([*amended, *(_add(message, _off_by_one(sentence)) for message, sentence in asked.sentences())])


def _off_by_one(text: str) -> str:
    return _DIGIT.sub(lambda digit: str((int(digit[0]) + 1) % 10), text)


def _text(rest: str) -> str:
    """The text of an entry's line: what follows kind, speaker, certainty and sources."""
    return " | ".join(rest.split(" | ")[4:]) or rest


MODES: Mapping[str, Callable[[Work], str]] = {
    "copies": copies,
    "drops": drops,
    "hardens": hardens,
    "denies-nothing": denies_nothing,
    "fails": fails,
    "repeats": repeats,
    "translates": translates,
    "obeys": obeys,
    "invents": invents,
    "miscites": miscites,
    "impersonates": impersonates,
    "alters": alters,
}


def summariser(mode: str) -> Script:
    """A script that answers summary requests in this mode."""

    def script(body: JsonObject) -> Reply:
        return say(MODES[mode](work(body)))

    return script


def section(url: str, name: str = "hostile") -> str:
    """The config under which clew reaches an emulator at `url` as its summariser."""
    return f"providers:\n  {name}: {{kind: openai, base_url: {url}, model: any, context_window: 200000}}\n"


async def _serve(mode: str) -> None:
    async with OpenAIEmulator(script=summariser(mode)) as emulator:
        print(section(emulator.base_url), end="", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in MODES:
        sys.exit(f"usage: python -m tests.emulators.summariser {'|'.join(MODES)}")
    asyncio.run(_serve(sys.argv[1]))
