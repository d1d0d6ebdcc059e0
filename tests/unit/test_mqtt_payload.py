import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from clew.transport import Address, Attachment, Delivery, Inbound, Part
from clew_transports.mqtt.payload import Ignored, Packet, Topics, attachment_bytes, read, reply

TOPICS = Topics("clew")
IN = "chat/v1/clew/in/ada"


def packet(payload: object = b"Hello?", **more: Any) -> Packet:
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return replace(Packet(topic=IN, payload=raw, size=len(raw)), **more)


def inbound(payload: object = b"Hello?", **more: Any) -> Inbound:
    return read(packet(payload, **more), TOPICS, "mqtt", "made", 1000.0).inbound


def refusal(payload: object, **more: Any) -> str:
    found = inbound(payload, **more)
    assert found.refused
    return found.refused


def test_a_message_in_json() -> None:
    found = inbound(
        {"id": "q1", "text": "Hi", "reply_to": "r7", "sender": {"name": "Ada"}, "v": 1, "unknown": {"a": 1}},
        topic=f"{IN}/kitchen",
    )
    assert found == Inbound(
        external_id="mqtt/clew/ada/kitchen/q1",
        address=Address("mqtt", "ada", "kitchen"),
        sender="ada",
        text="Hi",
        client_id="q1",
        sender_name="Ada",
        reply_to="r7",
    )


def test_a_plain_text_is_named_by_us() -> None:
    found = inbound("Grüße 👋".encode())
    assert (found.text, found.external_id, found.client_id) == ("Grüße 👋", "mqtt/clew/ada/-/made", "")


def test_the_payloads_id_goes_before_the_propertys() -> None:
    assert inbound(b"Hi", id="p1").external_id == "mqtt/clew/ada/-/p1"
    assert inbound({"text": "Hi"}, id="p1").client_id == "p1"
    assert inbound({"text": "Hi", "id": "q1"}, id="p1").client_id == "q1"


@pytest.mark.parametrize("text", ["[1, 2]", '"quoted"', "17", "null", "}{"])
def test_json_that_is_no_object_is_plain_text(text: str) -> None:
    assert inbound(text.encode()).text == text


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"\0\0", "empty"),
        ({"text": ""}, "empty"),
        (b"{", "not a JSON object"),
        (b" {hello}", "not a JSON object"),
        (b'{"text": "a"} trailing', "not a JSON object"),
        (b'{"a":' * 50_000, "not a JSON object"),
        (b'{"text": ' + b"9" * 5000 + b"}", "not a JSON object"),
        ({}, 'no "text"'),
        ({"text": 5}, 'no "text"'),
        ({"text": None}, 'no "text"'),
        ({"text": ["a"]}, 'no "text"'),
        ({"text": "a", "id": 5}, "id must be a string"),
        ({"text": "a", "id": ""}, "id must be a string"),
        ({"text": "a", "id": "x" * 201}, "id must be a string"),
        ({"text": "a", "id": "a\nb"}, "id must be a string"),
        ({"text": "a", "id": "a\u0000"}, "id must be a string"),
        ({"text": "a", "id": "\ud800"}, "id must be a string"),
        ({"text": "a", "reply_to": 7}, "reply_to must be a string"),
        ({"text": "a", "sender": "Ada"}, "sender must be an object"),
        ({"text": "a", "sender": {"name": 5}}, "sender must be an object"),
        ({"text": "a", "attachments": {}}, "attachments must be a list"),
        ({"text": "a", "attachments": [{}] * 17}, "attachments must be a list"),
        ({"text": "a", "attachments": [{"url": "http://x"}]}, 'in "data"'),
        ({"text": "a", "attachments": [{"data": "!"}]}, "not base64"),
        ({"text": "a", "attachments": [{"data": "", "mime": "png"}]}, "media type"),
        ({"text": "a", "attachments": [{"data": "A" * 400_000}]}, "300000 bytes"),
    ],
)
def test_a_malformed_message_is_refused_with_its_reason(payload: object, reason: str) -> None:
    assert reason in refusal(payload)


def test_a_refusal_answers_the_id_if_that_was_readable() -> None:
    found = inbound({"id": "q1", "text": 5})
    assert (found.client_id, found.external_id) == ("q1", "mqtt/clew/ada/-/q1")


def test_too_long_a_payload_is_refused_and_hardly_any_of_it_kept() -> None:
    found = inbound(b"x" * 1024 * 1024, size=5_000_000)
    assert "5000000 bytes" in found.refused
    assert len(found.text) == 4096


def test_text_is_cleaned_of_what_cannot_be_stored() -> None:
    assert inbound(b"C string\0").text == "C string"
    assert inbound({"text": "a\ud800b"}).text == "a\ufffdb"
    assert inbound(b'{"text": "\\ud83d\\ude00"}').text == "😀"
    assert inbound(b"\xef\xbb\xbfBOM").text == "BOM"
    assert inbound({"text": "a", "sender": {"name": "A\nda\u0007" + "x" * 300}}).sender_name == "Ada" + "x" * 197


def test_an_attachment_comes_inside_the_message() -> None:
    data = base64.b64encode(b"\x89PNG").decode()
    found = inbound({"text": "", "attachments": [{"name": "a.png", "mime": "image/png", "data": data}]})
    assert found.refused == ""
    (attachment,) = found.attachments
    assert attachment == Attachment("a.png", "image/png", 4, attachment.ref)
    assert attachment_bytes(attachment.ref) == b"\x89PNG"
    with pytest.raises(LookupError):
        attachment_bytes("file:///etc/passwd")


def test_the_expiry_interval_counts_from_now() -> None:
    assert inbound().expires_at is None
    assert inbound(expiry=0).expires_at == 1000.0
    assert inbound(expiry=60).expires_at == 1060.0


@pytest.mark.parametrize(
    "topic",
    ["chat/v1/clew/in", "chat/v1/clew/in/", f"{IN}/", f"{IN}/a/b", f"{IN}/a b", f"{IN}/ü", f"{IN}/-", f"{IN}/{'t' * 65}",
     "chat/v1/other/in/ada", "chat/v1/clew/out/ada", f"{IN}/a\n", "chat/v1/clew/in//a"],
)  # fmt: skip
def test_a_topic_that_is_nobodys_is_ignored(topic: str) -> None:
    with pytest.raises(Ignored):
        read(packet(topic=topic), TOPICS, "mqtt", "made", 0.0)


def test_a_retained_message_is_ignored() -> None:
    with pytest.raises(Ignored, match="retained"):
        read(packet(retain=True), TOPICS, "mqtt", "made", 0.0)


@pytest.mark.parametrize("topic", ["chat/v1/clew/out/ada", "chat/v1/clew/out/ada/phone", "chat/v1/clew/out/ada/a/b"])
def test_a_response_topic_inside_the_senders_own_is_kept(topic: str) -> None:
    reading = read(packet(response_topic=topic), TOPICS, "mqtt", "made", 0.0)
    assert reading.inbound.context == {"response_topic": topic}
    assert reading.warnings == ()


@pytest.mark.parametrize(
    "topic",
    ["chat/v1/clew/out/bob", "chat/v1/clew/out/adam", "chat/v1/clew/out/ada/", "chat/v1/clew/out/ada/+",
     "chat/v1/clew/out/ada/#", "chat/v1/clew/in/ada", "home/light/set", "$SYS/x", "chat/v1/clew/out/ada/" + "a/" * 90 + "a"],
)  # fmt: skip
def test_any_other_response_topic_is_not(topic: str) -> None:
    reading = read(packet(response_topic=topic), TOPICS, "mqtt", "made", 0.0)
    assert reading.inbound.context == {}
    assert reading.warnings


def test_each_part_of_a_reply_has_an_id_that_stays() -> None:
    delivery = Delivery("abc", Address("mqtt", "ada"), "onetwo", (Part("one", 1, 2), Part("two", 2, 2)), 0.5)
    first, second = (json.loads(reply(delivery, part)) for part in delivery.parts)
    assert first == {
        "v": 1,
        "id": "abc.1",
        "in_reply_to": None,
        "answers": [],
        "text": "one",
        "part": 1,
        "parts": 2,
        "final": False,
        "ts": "1970-01-01T00:00:00.500Z",
    }
    assert (second["id"], second["final"]) == ("abc.2", True)
