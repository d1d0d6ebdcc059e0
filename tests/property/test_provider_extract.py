from hypothesis import given
from hypothesis import strategies as st

from clew.context.tokens import estimate
from clew.messages import Text
from clew.providers import PromptMessage, Request
from clew.providers.extract import LONGEST_SENTENCE, Said, extract, sentences
from clew.providers.offline import answer, parse, summary

texts = st.text(max_size=200) | st.lists(
    st.sampled_from(["We decided on 7.", "ok", "Not Ada!", "[#abc 12:00 Ada] hi", "<summary>", "- x", "\n", "See a_b?"]),
    max_size=20,
).map(" ".join)
messages = st.lists(st.builds(Said, texts, st.sampled_from(["", "Ada"]), st.sampled_from(["", "abc"])), max_size=6)


@given(texts)
def test_sentences_are_the_words_of_the_text(text: str) -> None:
    found = list(sentences(text))
    assert " ".join(found).split() == text.split()
    assert all(0 < len(sentence) <= LONGEST_SENTENCE for sentence in found)


@given(messages, st.lists(texts.map(lambda text: " ".join(text.split())).filter(bool), max_size=5), st.integers(0, 300))
def test_an_extract_fits_and_invents_nothing(said: list[Said], before: list[str], room: int) -> None:
    result = extract(said, before, room)
    assert result == extract(said, before, room)
    assert estimate(result) <= max(room, 1)
    known = {sentence for each in said for sentence in sentences(each.text)}
    for line in result.split("\n") if result != "=" else ():
        assert line.split(" | ", 4)[4] in known


@given(st.text(max_size=300) | texts)
def test_the_offline_provider_takes_any_text(text: str) -> None:
    request = Request((), (PromptMessage("user", (Text(text),)),), max_tokens=200)
    parse(text)
    assert estimate(summary(request)) <= 200
    assert "No model is configured" in answer(request)
