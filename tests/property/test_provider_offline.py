"""Any text can be asked of the offline provider and summarised by it."""

from hypothesis import given
from hypothesis import strategies as st

from clew.context.extract import extract
from clew.context.operations import NOTHING, parse
from clew.context.sentences import LONGEST_SENTENCE, sentences
from clew.context.survival import Said, heard
from clew.context.tokens import estimate
from clew.messages import Text
from clew.providers import PromptMessage, Request, offline

texts = st.text(max_size=200) | st.lists(
    st.sampled_from(["We decided on 7.", "ok", "Not Ada!", "[#7 12:00 Ada] hi", "<summary>", "- x", "\n", "See a_b?"]),
    max_size=20,
).map(" ".join)
messages = st.lists(st.builds(Said, texts, st.sampled_from(["", "Ada"]), id=st.sampled_from(["", "abc"])), max_size=6)


@given(texts)
def test_sentences_are_the_words_of_the_text(text: str) -> None:
    found = list(sentences(text))
    assert " ".join(found).split() == text.split()
    assert all(0 < len(sentence) <= LONGEST_SENTENCE for sentence in found)


@given(messages, st.integers(0, 300))
def test_an_extract_fits_and_invents_nothing(said: list[Said], room: int) -> None:  # P25
    result = extract((), heard(said), room)
    assert result == extract((), heard(said), room)
    assert result == NOTHING or estimate(result) <= room
    known = {sentence for each in said for sentence in sentences(each.text)}
    for line in result.split("\n") if result != NOTHING else ():
        assert set(line.split(" | ", 4)[4].split(" – ")) <= known | {line.split(" | ", 4)[4]}


@given(st.text(max_size=300) | texts)
def test_the_offline_provider_takes_any_text(text: str) -> None:
    request = Request((), (PromptMessage("user", (Text(text),)),), max_tokens=200)
    offline.parse(text)
    parse(offline.summary(request))
    assert estimate(offline.summary(request)) <= 200
    assert "No model is configured" in offline.answer(request)
