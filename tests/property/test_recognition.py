"""Any text: what is recognised in it stands in it, its clauses add to what its words say, and the same text reads the same."""

from hypothesis import given
from hypothesis import strategies as st

from clew.context import clauses, phrases
from clew.context.evidence import normal
from clew.context.phrases import ALL
from clew.context.survival import Said, heard

SENTENCES = [
    "The lamp is green, not blue.",
    "£87.40.",
    "It must stay shut.",
    "二社に頼みます。",
    "安いからです。",
    "No dogs, she was clear.",
    "Because it rains.",
    "(-104)",
    "Die dürfen nicht weg.",
    "ok",
]
texts = st.lists(st.text(st.characters(), max_size=25) | st.sampled_from(SENTENCES), max_size=5).map(" ".join)


@given(texts)
def test_clauses_only_add_to_what_the_words_say(text: str) -> None:
    by_words, whole = phrases.read(text, ALL), clauses.read(text, ALL)
    assert whole & by_words == by_words
    assert phrases.denials(text, ALL) >= 0
    assert clauses.read(text, ALL) == whole


@given(st.lists(texts, max_size=4))
def test_every_statement_stands_in_its_message_word_for_word(told: list[str]) -> None:  # P17
    said = [Said(text, "Ada", ("user", "assistant")[n % 2], f"m{n}", n, 60.0 * n) for n, text in enumerate(told, 1)]
    for each in heard(said).statements:
        sources = [each.said.text] if each.also is None else [each.also.text, each.said.text]
        parts = [each.text] if each.also is None else each.text.split(" – ")
        packed = "".join(normal(" ".join(sources)).split())
        assert all("".join(normal(part).split()) in packed for part in parts)
