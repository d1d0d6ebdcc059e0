"""Whatever is written, deleted and asked, the index holds exactly the transcript."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.context.text import SPOKEN_BY, clean, index_text, tokens
from clew.messages import Block, Message, Text, Thinking, ToolCall, ToolResult, blocks_from_json, blocks_to_json, searchable
from clew.store import NewMessage, Outcome, Step
from tests.databases import BOTH
from tests.unit.store_rows import NOW, accept, claim, found, inbound, opened

pytestmark = BOTH

words = st.text(max_size=60).map(clean)
blocks = st.lists(
    st.one_of(
        st.builds(Text, words),
        st.builds(ToolCall, words, words, words),
        st.builds(ToolResult, words, words, words, st.booleans()),
        st.builds(Thinking, words, words),
    ),
    max_size=4,
).map(tuple)
turns = st.lists(st.tuples(st.sampled_from(("ada", "bob")), words.filter(str.strip), blocks), min_size=1, max_size=6)


@given(blocks)
def test_blocks_come_back_as_they_were_stored(some: tuple[Block, ...]) -> None:  # P1, P4
    assert blocks_from_json(blocks_to_json(some)) == some


def expected(messages: Iterable[Message]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for message in messages:
        counted.update(set(tokens(index_text(searchable(message.blocks)))))
        counted.update({SPOKEN_BY + word for word in tokens(index_text(message.sender_name or message.sender))})
    return counted


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(turns, st.booleans(), st.lists(st.text(max_size=40), max_size=4))
def test_the_index_equals_the_transcript_whatever_happens(
    said: list[tuple[str, str, tuple[Block, ...]]], back: bool, asked: list[str]
) -> None:  # P4, P20, P35, P49, BO-040, BO-042
    async def run(folder: Path) -> None:
        async with opened(folder) as store:
            for number, (chat, text, answer) in enumerate(said):
                await accept(store, inbound(str(number), text, chat))
                claimed = await claim(store)
                step = Step(messages=(NewMessage("assistant", answer, NOW),))
                await store.finish(claimed, Outcome("done", step), (), NOW)
            first = (await store.sessions())[0]
            exported = await store.export_session(first.id)
            await store.delete_session(first.id)
            if back:
                await store.import_session(exported, NOW)
                assert await store.export_session(first.id) == exported
            assert await store.check() == []
            kept = [m for row in await store.sessions() for m in await store.transcript(row.id)]
            assert Counter(await store._db.read(lambda db: db.words("messages").counts())) == expected(kept)
            known = {message.id for message in kept}
            for question in asked:
                assert await found(store, question) <= known

    with tempfile.TemporaryDirectory() as name:
        asyncio.run(run(Path(name)))
