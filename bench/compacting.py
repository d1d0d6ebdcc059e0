"""What a compaction and a prompt cost beside the model that writes and reads them."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC

from bench import background, compaction
from bench.figures import Against, Figure, at_most, at_most_times
from bench.subject import Run, Subject
from clew.context import view
from clew.context.prompt import Chain, Headed, Parts, base_prompt, chain, headed, layout, mark
from clew.request import Request

COUNTS = (250, 1_000, 4_000)
WINDOW = 60
TIMES = 20
READING, DUMPING = "each word found once", "the request dumped as JSON"
METHOD = f"""
Messages of the threads that ship with `clew eval compaction`. `planning` decides where to cut and measures what is in front of it;
`contract` looks for what must survive in all of it, for a summary that names nothing; `revision` carries out what a summariser says to
{background.WINDOW - compaction.KEEP} new messages, on the summary of 1,000. The floor of these is one regular expression that finds each
word of the same messages once. A prompt is that of a thread of {WINDOW} messages, its prefixes hashed and measured for the cache: all of
it, and one message later, as in a talk that goes on; its floor is `json.dumps` of the request. CPU, the best of a few. In the background:
a reply over the chat page's socket while another thread is compacted again and again by a model that takes {background.SUMMARY_S:g} s,
against replies while none is; held to the noise of the run, which is how far the middle half of the rounds lie apart.
"""


async def measure(run: Run) -> list[Figure]:
    figures = [*_contracts(), _revision(), *_prompts()]
    cpu = await compaction.store_cpu(run.made("compacting"))
    figures.append(Figure("what the store does for a compaction: CPU", cpu, "ms", None, (at_most(10.0),)))
    found = await background.latency(run.made("background"))
    alone = Against("while none runs", found.alone)
    return [
        *figures,
        Figure("a reply while a compaction runs", found.beside, "ms", alone, steady=False),
        Figure(
            "what a compaction adds to a reply",
            found.difference,
            "ms",
            Against("noise of the run", found.noise),
            (at_most_times(1),),
            steady=False,
        ),
    ]


def _contracts() -> list[Figure]:
    figures, taken = [], {}
    for count in COUNTS:
        cost = compaction.contract_cpu(count)
        taken[count] = cost.planning + cost.contract
        words = Against(READING, _reading(count))
        bounds = (at_most(150.0),) if count == 1_000 else ()
        figures += [
            Figure(f"planning and contract of {count:,} messages: CPU", taken[count], "ms", words, bounds),
            Figure(f"planning of {count:,} messages: CPU", cost.planning, "ms", words),
        ]
        if count == 1_000:
            figures.append(Figure("longest step of the contract of 1,000 messages: CPU", cost.step, "ms", None, (at_most(5.0),)))
    figures.append(
        Figure("planning and contract of 4,000 messages", taken[4_000], "ms", Against("of 1,000", taken[1_000]), (at_most_times(5.0),))
    )
    return figures


def _revision() -> Figure:
    new = background.WINDOW - compaction.KEEP
    return Figure(f"revision by {new} messages: CPU", compaction.revision_cpu(1_000, new), "ms", Against(READING, _reading(new)))


def _reading(count: int) -> float:
    words, texts = re.compile(r"\w+"), [row.text for row in compaction.thread(count)]
    return _best(lambda: [words.findall(text) for text in texts])


def _prompts() -> list[Figure]:
    rows = compaction.thread(WINDOW + 1)
    head = view.head(UTC, "", direct=True)

    def made(count: int, before: tuple[Headed, Chain] | None = None) -> tuple[Headed, Chain, Request]:
        shown = view.window(rows[:count]).messages
        words = headed(shown, head, before[0] if before else None)
        parts = Parts(base_prompt("", "UTC"), shown, head, summary="A long talk about kettles.", recall="Previously in another session:")
        request = layout(parts, max_tokens=4096, ttl="1h", cache_key="bench", made=words)
        linked = chain(request, "bench", before[1] if before else None)
        return words, linked, mark(request, linked.prefixes, {}).request

    words, linked, request = made(WINDOW)
    plain = asdict(request)
    dumped = Against(DUMPING, _best(lambda: json.dumps(plain)))
    return [
        Figure(f"prompt of {WINDOW} messages, all of it: CPU", _best(lambda: made(WINDOW)), "ms", dumped),
        Figure("prompt one message later: CPU", _best(lambda: made(WINDOW + 1, (words, linked))), "ms", dumped),
    ]


def _best(work: Callable[[], object]) -> float:
    """Milliseconds of CPU, the best of a few runs."""
    best = float("inf")
    for _ in range(TIMES):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best * 1e3


subject = Subject(
    "compacting", "Compaction and prompts", METHOD, measure, lambda _: f"{', '.join(f'{count:,}' for count in COUNTS)} messages"
)
