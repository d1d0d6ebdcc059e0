import base64
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clew.transport import Address, Delivery, Part
from clew_transports.mqtt.payload import Packet, Topics, correlation, read, reply

TOPICS = Topics("clew")

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
keys = st.sampled_from(["id", "text", "reply_to", "sender", "attachments", "v", "ts"])
messages = st.dictionaries(keys, anything, max_size=7).map(lambda body: json.dumps(body).encode())
payloads = st.one_of(st.binary(max_size=200), messages, messages.map(lambda raw: raw[:-1]), st.text().map(str.encode))
names = st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True)


@given(payloads, st.none() | st.text(max_size=250))
def test_any_payload_is_a_message_or_a_refusal_that_can_be_stored(payload: bytes, id: str | None) -> None:
    packet = Packet("chat/v1/clew/in/ada", payload, len(payload), id=id)
    found = read(packet, TOPICS, "mqtt", "made", 0.0).inbound
    assert found.refused or found.text.strip() or found.attachments
    for stored in (found.text, found.external_id, found.client_id, found.refused, found.sender_name, found.reply_to or ""):
        assert "\0" not in stored
        stored.encode()
    assert len(found.client_id) <= 200


@given(payloads)
def test_a_redelivery_has_the_same_external_id(payload: bytes) -> None:  # P42
    first = Packet("chat/v1/clew/in/ada", payload, len(payload))
    again = Packet("chat/v1/clew/in/ada", payload, len(payload), dup=True)
    ids = [read(each, TOPICS, "mqtt", "made", now).inbound.external_id for each, now in ((first, 1.0), (again, 2.0))]
    assert ids[0] == ids[1]


ids = st.text(min_size=1, max_size=8).filter(str.isprintable)


@given(*[st.tuples(names, st.none() | names.filter(lambda name: name != "-"), ids)] * 2)
def test_two_messages_never_share_an_external_id(one: Any, other: Any) -> None:
    def external(user: str, thread: str | None, id: str) -> str:
        topic = "/".join(["chat/v1/clew/in", user, *([thread] if thread else [])])
        payload = json.dumps({"id": id, "text": "Hi"}).encode()
        return read(Packet(topic, payload, len(payload)), TOPICS, "mqtt", "made", 0.0).inbound.external_id

    assert (external(*one) == external(*other)) == (one == other)


@given(st.binary(max_size=300))
def test_correlation_data_comes_back_byte_for_byte(data: bytes) -> None:
    packet = Packet("chat/v1/clew/in/ada", b"Hi", 2, correlation=data)
    assert correlation(read(packet, TOPICS, "mqtt", "made", 0.0).inbound.context) == data


@given(names, st.none() | names)
def test_an_address_and_its_topic_name_the_same_place(user: str, thread: str | None) -> None:
    to = Address("mqtt", user, thread)
    inbox = TOPICS.replies(to).replace("/out/", "/in/", 1)
    if thread != "-":
        assert TOPICS.sender("mqtt", inbox) == to
    assert TOPICS.allows_reply(user, TOPICS.replies(to))


@given(st.text(max_size=300), st.floats(0, 4e9), st.lists(st.text(max_size=9), max_size=3))
def test_a_reply_says_what_was_written(text: str, ts: float, answers: list[str]) -> None:
    delivery = Delivery("abc", Address("mqtt", "ada"), text, (Part(text),), ts, "q1", tuple(answers))
    found = json.loads(reply(delivery, delivery.parts[0]))
    assert (found["text"], found["answers"], found["ts"][-1]) == (text, answers, "Z")


def test_the_context_is_text() -> None:
    packet = Packet("chat/v1/clew/in/ada", b"Hi", 2, correlation=b"")
    assert read(packet, TOPICS, "mqtt", "made", 0.0).inbound.context == {"correlation": base64.b64encode(b"").decode()}
