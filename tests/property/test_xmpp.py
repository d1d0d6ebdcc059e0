"""XMPP's styling for any Markdown, and its stanzas of any shape."""

from xml.etree.ElementTree import Element, fromstring

from hypothesis import given
from hypothesis import strategies as st

from clew_transports.text import parts
from clew_transports.xmpp.stanzas import Reader, archived, live
from clew_transports.xmpp.styling import rendered
from clew_transports.xmpp.transport import size

MARKDOWN = st.text(alphabet=st.sampled_from(list("ab *_~`>#-|[]()\n1.äß👩‍🔬你")), max_size=300)
TAGS = (
    "{jabber:client}body",
    "{jabber:client}message",
    "{urn:xmpp:sid:0}stanza-id",
    "{urn:xmpp:delay}delay",
    "{urn:xmpp:message-correct:0}replace",
    "{urn:xmpp:reactions:0}reactions",
    "{urn:xmpp:mam:2}result",
    "{urn:xmpp:forward:0}forwarded",
)
NAMES = st.sampled_from(["from", "id", "type", "by", "stamp", "to"])
VALUES = st.sampled_from(["a@b.c/x", "club@r/ada", "groupchat", "chat", "1", "", "never", "2026-11-30T10:00:00Z"])


def element(tag: str, attributes: dict[str, str], text: str, children: list[Element]) -> Element:
    made = Element(tag, attributes)
    made.text = text
    made.extend(children)
    return made


ELEMENTS = st.recursive(
    st.builds(element, st.sampled_from(TAGS), st.dictionaries(NAMES, VALUES, max_size=4), st.text(max_size=8), st.just([])),
    lambda inner: st.builds(
        element, st.sampled_from(TAGS), st.dictionaries(NAMES, VALUES, max_size=4), st.text(max_size=8), st.lists(inner, max_size=4)
    ),
    max_leaves=10,
)


@given(MARKDOWN)
def test_words_stay_and_blocks_are_closed(markdown: str) -> None:  # BO-059
    text = rendered(markdown)
    assert sum(line.startswith("```") for line in text.split("\n")) % 2 == 0
    for letter in "abäß你":
        assert text.count(letter) >= markdown.count(letter)


@given(st.lists(MARKDOWN, min_size=1, max_size=40).map("\n\n".join))
def test_parts_fit_after_they_are_rendered(markdown: str) -> None:  # BO-055
    for part in parts(markdown, 300, "bytes", size):
        assert len(rendered(part.text).encode()) <= 300


@given(ELEMENTS)
def test_any_stanza_is_read_or_let_pass(found: Element) -> None:
    reader = Reader("xmpp", "clew@b.c", "clew", "all", None, lambda room, nick: "ada@b.c")
    reader.read(live(found, "clew@b.c"))
    if stanza := archived(found, "clew@b.c"):
        reader.read(stanza)


def test_ids_of_others_count_for_nothing() -> None:  # P42
    message = fromstring(
        "<message xmlns='jabber:client' from='eve@evil.org/x' type='chat' id='e'><body>hi</body>"
        "<stanza-id xmlns='urn:xmpp:sid:0' by='eve@evil.org' id='1'/><stanza-id xmlns='urn:xmpp:sid:0' by='clew@b.c' id='2'/></message>"
    )
    assert live(message, "clew@b.c").number == "2"
    assert live(message, "other@b.c").number == ""
