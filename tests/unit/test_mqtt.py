import aiomqtt
import pytest
from paho.mqtt.client import Client as PahoClient
from paho.mqtt.enums import CallbackAPIVersion
from pydantic import ValidationError

from clew.plugins import registry
from clew.transport import Address, Transport, Typing
from clew_transports.mqtt.connection import RECEIVE_MAXIMUM
from clew_transports.mqtt.payload import Packet
from clew_transports.mqtt.redelivery import KEPT, Unnamed
from clew_transports.mqtt.transport import MqttTransport, Settings, plugin


def packet(payload: bytes = b"ok", mid: int = 1, qos: int = 1, *, dup: bool = False) -> Packet:
    return Packet("chat/v1/clew/in/ada", payload, len(payload), qos=qos, mid=mid, dup=dup)


def unnamed(cursor: str | None = None) -> Unnamed:
    names = iter(f"made-{number}" for number in range(1000))
    found = Unnamed(lambda: next(names))
    found.load(cursor)
    return found


def stored(before: Unnamed, each: Packet) -> str:
    made = before.id_for(each)
    before.keep(each, made)
    return made


def test_the_library_still_lets_us_acknowledge_by_hand() -> None:  # P42
    # aiomqtt has no option for it; without these two a message is acknowledged before it is stored.
    paho = PahoClient(CallbackAPIVersion.VERSION2)
    assert callable(paho.manual_ack_set)
    assert callable(paho.ack)
    assert callable(paho._sock_close)
    assert len(paho._out_packet) == 0


@pytest.mark.asyncio
async def test_aiomqtt_still_stands_on_that_client() -> None:  # P42
    client = aiomqtt.Client("127.0.0.1")
    assert isinstance(client._client, PahoClient)
    assert callable(client._client.manual_ack_set)
    assert callable(client._client.ack)


def test_a_redelivery_is_the_same_message() -> None:  # P42
    first = unnamed()
    made = stored(first, packet())
    assert unnamed(str(first)).id_for(packet(dup=True)) == made


def test_the_cursor_is_news_once_and_only_where_it_changed() -> None:  # P42
    names = unnamed()
    names.keep(packet(), None)  # it has an id of its own
    assert names.news() is None
    stored(names, packet())
    assert names.news() == str(names)
    assert names.news() is None
    names.keep(packet(), None)  # its packet identifier is another message's now
    assert names.news() == "[]"


def test_the_same_text_under_the_same_packet_id_is_a_new_message_without_dup() -> None:
    names = unnamed()
    assert stored(names, packet()) != stored(names, packet())


def test_a_redelivery_with_other_content_or_packet_id_is_a_new_message() -> None:
    names = unnamed()
    made = stored(names, packet(b"ok"))
    assert names.id_for(packet(b"no", dup=True)) != made
    assert names.id_for(packet(b"ok", mid=2, dup=True)) != made


def test_a_new_session_forgets() -> None:
    names = unnamed()
    made = stored(names, packet())
    assert names.forget()
    assert not names.forget()
    assert names.id_for(packet(dup=True)) != made


def test_a_packet_id_that_is_used_again_forgets() -> None:
    names = unnamed()
    made = stored(names, packet())
    names.keep(packet(b'{"id":"q1","text":"x"}'), None)
    assert names.id_for(packet(dup=True)) != made


def test_no_more_is_kept_than_can_be_in_flight() -> None:
    names = unnamed()
    made = {mid: stored(names, packet(mid=mid)) for mid in range(1, KEPT + 2)}
    again = unnamed(str(names))
    assert again.id_for(packet(mid=KEPT + 1, dup=True)) == made[KEPT + 1]
    assert again.id_for(packet(mid=2, dup=True)) == made[2]
    assert names.id_for(packet(mid=1, dup=True)) not in made.values()
    assert KEPT >= RECEIVE_MAXIMUM


def test_qos_0_is_never_redelivered() -> None:
    names = unnamed()
    stored(names, packet(mid=0, qos=0))
    assert not names.forget()


@pytest.mark.parametrize("cursor", ["", "{}", "null", "nonsense", "[1]", '[["x","y","z"]]', "[[1]]", '{"a":1}'])
def test_a_cursor_that_is_none_of_ours_counts_as_empty(cursor: str) -> None:
    assert not unnamed(cursor).forget()


def test_the_plugin_is_found() -> None:
    assert registry("clew.transports")["mqtt"] is plugin
    assert isinstance(plugin.build("mqtt", Settings()), MqttTransport)


def test_settings_have_the_documented_defaults() -> None:
    assert Settings().model_dump(mode="json") == {
        "host": "127.0.0.1",
        "port": 1883,
        "bot": "clew",
        "username": None,
        "password": None,
        "tls": False,
        "keepalive": "30s",
        "home_assistant": {"enabled": False, "prefix": "homeassistant", "user": "homeassistant"},
    }


@pytest.mark.parametrize(
    "wrong",
    [{"bot": "a/b"}, {"bot": "+"}, {"bot": ""}, {"bot": "a\n"}, {"port": 0}, {"port": "1883"}, {"keepalive": "0s"},
     {"keepalive": 30}, {"host": ""}, {"hosst": "x"}, {"password": "secret"}, {"tls": "yes"}],
)  # fmt: skip
def test_wrong_settings_are_errors(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(wrong)
    assert "secret" not in str(caught.value)


def test_a_reply_is_one_part_up_to_256_kib() -> None:
    transport: Transport = MqttTransport("mqtt", Settings())
    assert [(part.text, part.index, part.total) for part in transport.parts("Hello")] == [("Hello", 1, 1)]
    assert [part.total for part in transport.parts("x" * 262_144)] == [1]
    assert [part.total for part in transport.parts("x" * 262_145)] == [2, 2]


@pytest.mark.asyncio
async def test_a_hint_without_a_connection_is_lost_quietly() -> None:
    transport = MqttTransport("mqtt", Settings())
    assert await transport.hint(Address("mqtt", "ada"), Typing()) is None
