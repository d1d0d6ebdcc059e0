"""The MQTT transport against a real broker."""

import asyncio
import json
import shutil
import socket
import subprocess
from pathlib import Path

import aiomqtt
import pytest
import structlog
from pydantic import SecretStr

from clew.plugins import Fault, Remark
from clew.transport import Preview, Refused, Retry, Typing, Unknown
from clew_transports.mqtt import doctor
from clew_transports.mqtt.connection import Broker, Connection
from clew_transports.mqtt.transport import MqttTransport, Settings, plugin
from tests.integration.mqtt_harness import (
    DEADLINE_S,
    Disk,
    Inbox,
    Relay,
    answer_to,
    delivery,
    heard,
    line,
    on,
    payload,
    person,
    process,
    publishing,
    running,
    settings,
)
from tests.servers import Mosquitto, find_program

pytestmark = [
    pytest.mark.mosquitto,
    pytest.mark.skipif(find_program("mosquitto") is None, reason="mosquitto is not installed"),
]

IN, OUT, EV = "chat/v1/clew/in/ada", "chat/v1/clew/out/ada", "chat/v1/clew/ev/ada"
STATUS = "chat/v1/clew/status"


def question(id: str, text: str = "Hello?", **more: object) -> str:
    return json.dumps({"id": id, "text": text, **more})


@pytest.mark.asyncio
async def test_a_question_is_stored_confirmed_and_answered(mosquitto: Mosquitto) -> None:  # P42 P43
    inbox = Inbox()
    async with running(mosquitto.port, inbox) as clew, person(mosquitto.port) as ada:
        await ada.publish(f"{IN}/kitchen", question("q1", "Grüße", sender={"name": "Ada L."}), qos=1)
        await inbox.until(lambda: bool(inbox.rows))
        inbound = inbox.rows["mqtt/clew/ada/kitchen/q1"]
        assert (inbound.text, inbound.client_id, inbound.sender_name) == ("Grüße", "q1", "Ada L.")
        assert (str(inbound.address), inbound.identity, inbound.direct) == ("mqtt:ada/kitchen", "mqtt:ada", True)
        assert payload(await heard(ada, on(f"{EV}/kitchen"))) == {"type": "stored", "id": "q1"}

        await clew.send(answer_to(inbound, "Bonjour", clew))
        message = await heard(ada, on(f"{OUT}/kitchen"))
        assert (message.qos, message.retain) == (1, False)
        assert payload(message) == {
            "v": 1,
            "id": "reply-to-q1",
            "in_reply_to": "q1",
            "answers": ["q1"],
            "text": "Bonjour",
            "part": 1,
            "parts": 1,
            "final": True,
            "ts": "2027-01-15T08:00:00.250Z",
        }


@pytest.mark.asyncio
async def test_what_was_published_while_clew_was_off_arrives_in_order(mosquitto: Mosquitto) -> None:  # P42 P48
    inbox = Inbox()
    async with running(mosquitto.port, inbox):
        pass
    async with person(mosquitto.port) as ada:
        for number in range(5):
            await ada.publish(IN, question(f"q{number}", f"text {number}"), qos=1)
    async with running(mosquitto.port, inbox):
        await inbox.until(lambda: len(inbox.rows) == 5)
    assert inbox.texts == [f"text {number}" for number in range(5)]


@pytest.mark.asyncio
async def test_a_message_sent_again_is_confirmed_again_and_stored_once(mosquitto: Mosquitto) -> None:  # P42
    inbox = Inbox()
    async with running(mosquitto.port, inbox), person(mosquitto.port) as ada:
        for _ in range(2):
            await ada.publish(IN, question("q1"), qos=1)
            assert payload(await heard(ada, on(EV))) == {"type": "stored", "id": "q1"}
    assert len(inbox.rows) == 1
    assert inbox.duplicates == ["mqtt/clew/ada/-/q1"]


@pytest.mark.asyncio
async def test_kill_9_before_the_commit_loses_nothing_and_says_offline(mosquitto: Mosquitto) -> None:  # P42 P48
    async with process(mosquitto.port) as clew, person(mosquitto.port) as ada:
        assert await line(clew) == b"connected\n"
        assert (await heard(ada, on(STATUS))).payload == b"online"
        await ada.publish(IN, question("q1", "first"), qos=1)
        assert await line(clew) == b"storing\n"
        await ada.publish(IN, "second, plain", qos=1)
        clew.kill()
        assert (await heard(ada, on(STATUS))).payload == b"offline"
    inbox = Inbox()
    async with running(mosquitto.port, inbox):
        await inbox.until(lambda: len(inbox.rows) == 2)
    assert inbox.texts == ["first", "second, plain"]


@pytest.mark.asyncio
async def test_kill_9_at_any_moment_loses_nothing_and_doubles_nothing(mosquitto: Mosquitto, tmp_path: Path) -> None:
    # P42 P48: the texts come without an id, so that each process has to recognise what the one before it stored.
    path = tmp_path / "inbox.db"
    texts = [f"text {number}" for number in range(300)]
    async with process(mosquitto.port, str(path)) as clew:
        assert await line(clew) == b"connected\n"
    async with person(mosquitto.port) as ada:
        for first in range(0, 300, 60):
            async with process(mosquitto.port, str(path)) as clew, asyncio.TaskGroup() as tasks:
                tasks.create_task(publish_all(ada, texts[first : first + 60]))
                while await line(clew) != b"stored\n":
                    pass
                clew.kill()
    disk = Disk(path)
    async with process(mosquitto.port, str(path)) as clew:
        while len(disk.texts_stored()) < len(texts):
            assert await line(clew), "clew ended"
    assert disk.texts_stored() == texts
    disk.close()


async def publish_all(client: aiomqtt.Client, texts: list[str]) -> None:
    for text in texts:
        await client.publish(IN, text, qos=1)


@pytest.mark.asyncio
async def test_the_status_is_retained_and_says_offline_after_a_graceful_stop(mosquitto: Mosquitto) -> None:
    async with running(mosquitto.port, Inbox()), person(mosquitto.port) as ada:
        message = await heard(ada, on(STATUS))
        assert (message.payload, message.retain) == (b"online", True)
    async with person(mosquitto.port) as ada:
        message = await heard(ada, on(STATUS))
        assert (message.payload, message.retain) == (b"offline", True)


@pytest.mark.asyncio
async def test_a_broker_that_is_killed_twice_is_subscribed_to_again(mosquitto: Mosquitto) -> None:  # P48
    # A public report (BO-092): after the broker's restart the client was connected but deaf.
    inbox = Inbox()
    async with running(mosquitto.port, inbox) as clew:
        for round_ in ("first", "second"):
            mosquitto.kill()
            await inbox.until(lambda: not inbox.up)
            with pytest.raises(Retry):
                await clew.send(delivery("ada"))
            mosquitto.start()
            await inbox.until(lambda: inbox.up)
            async with person(mosquitto.port) as ada:
                await ada.publish(IN, question(round_, round_), qos=1)
                await inbox.until(lambda text=round_: text in inbox.texts)  # type: ignore[misc]
                await clew.send(answer_to(inbox.rows[f"mqtt/clew/ada/-/{round_}"], f"to {round_}", clew))
                assert payload(await heard(ada, on(OUT)))["text"] == f"to {round_}"


@pytest.mark.asyncio
async def test_a_broker_that_has_lost_the_session_is_subscribed_to_again(tmp_path: Path) -> None:  # P48
    inbox = Inbox()
    with Mosquitto(tmp_path, settings="persistence false") as broker:
        async with running(broker.port, inbox):
            async with person(broker.port) as ada:
                await ada.publish(IN, "one", qos=1)
                await inbox.until(lambda: inbox.texts == ["one"])
            broker.kill()
            await inbox.until(lambda: not inbox.up)
            broker.start()
            await inbox.until(lambda: inbox.up)
            async with person(broker.port) as ada:
                await ada.publish(IN, "two", qos=1)
                await inbox.until(lambda: inbox.texts == ["one", "two"])


@pytest.mark.asyncio
async def test_bad_payloads_are_refused_and_the_next_good_one_is_taken(mosquitto: Mosquitto) -> None:
    # A public report (BO-126): bytes that are not UTF-8 hung the client.
    inbox = Inbox()
    bad = (b"\xff\xfe", b"", b"x" * 5_000_000, b"{", b'{"text": 5}', b"[" * 3, b'{"a":' * 100_000)
    async with running(mosquitto.port, inbox), person(mosquitto.port) as ada:
        for each in (*bad, b"good"):
            await ada.publish(IN, each, qos=1)
        await inbox.until(lambda: "good" in inbox.texts)
        assert inbox.reports == [(True, f"127.0.0.1:{mosquitto.port}")]
    assert inbox.texts == ["[[[", "good"]
    reasons = [inbound.refused for inbound in inbox.rows.values() if inbound.refused]
    assert [reason.split(".")[0] for reason in reasons] == [
        "The message is not UTF-8 text (byte 1)",
        "The message is empty",
        "The message is too long: 5000000 bytes, 1048576 are allowed",
        'The message begins with "{" but is not a JSON object',
        'The message has no "text" that is a string',
        'The message begins with "{" but is not a JSON object',
    ]
    assert max(len(inbound.text) for inbound in inbox.rows.values()) <= 4096


@pytest.mark.asyncio
async def test_a_retained_message_in_the_inbox_is_ignored(mosquitto: Mosquitto) -> None:  # P42
    inbox = Inbox()
    async with person(mosquitto.port) as ada:
        await ada.publish(IN, question("old"), qos=1, retain=True)
        for _ in range(2):
            async with running(mosquitto.port, inbox):
                await ada.publish(IN, question("new"), qos=1)
                await inbox.until(lambda: bool(inbox.batches))
                inbox.batches.clear()
    assert list(inbox.rows) == ["mqtt/clew/ada/-/new"]


@pytest.mark.asyncio
async def test_topics_that_are_nobodys_are_ignored_and_hold_up_nothing(mosquitto: Mosquitto) -> None:
    inbox = Inbox()
    nobodys = ("chat/v1/clew/in", f"{IN}/a/b", f"{IN}/", f"{IN}/ü", f"{IN}/-", "chat/v1/clew/in/a b", f"{IN}/{'t' * 65}")
    async with running(mosquitto.port, inbox), person(mosquitto.port) as ada:
        for topic in nobodys * 10:  # more than may be in flight
            await ada.publish(topic, "lost", qos=1)
        await ada.publish(IN, "good", qos=1)
        await inbox.until(lambda: bool(inbox.rows))
    assert inbox.texts == ["good"]


@pytest.mark.asyncio
async def test_many_messages_are_stored_in_few_commits_and_in_order(mosquitto: Mosquitto) -> None:  # P42
    inbox = Inbox()
    async with running(mosquitto.port, inbox):
        pass
    async with person(mosquitto.port) as ada:
        for number in range(200):
            await ada.publish(IN, f"text {number}", qos=1)
    async with running(mosquitto.port, inbox):
        await inbox.until(lambda: len(inbox.rows) == 200)
    assert inbox.texts == [f"text {number}" for number in range(200)]
    assert max(len(batch) for batch in inbox.batches) <= 64


@pytest.mark.asyncio
async def test_equal_plain_texts_are_two_messages(mosquitto: Mosquitto) -> None:
    inbox = Inbox()
    async with running(mosquitto.port, inbox), person(mosquitto.port) as ada:
        for _ in range(2):
            await ada.publish(IN, "ok", qos=1)
        await inbox.until(lambda: len(inbox.rows) == 2)
    assert inbox.texts == ["ok", "ok"]


@pytest.mark.asyncio
async def test_a_plain_text_stored_but_not_acknowledged_is_recognised_when_it_comes_again(mosquitto: Mosquitto) -> None:  # P42
    class DiesAfterCommit(Inbox):
        async def accept(self, batch, cursor=None):  # type: ignore[no-untyped-def]
            await super().accept(batch, cursor)
            await asyncio.Event().wait()

    first = DiesAfterCommit()
    async with running(mosquitto.port, first):
        async with person(mosquitto.port) as ada:
            await ada.publish(IN, "ok", qos=1)
        await first.until(lambda: bool(first.rows))
    second = Inbox()
    second.rows, second.stored_cursor = first.rows, first.stored_cursor
    async with running(mosquitto.port, second), person(mosquitto.port) as ada:
        await second.until(lambda: bool(second.duplicates))
        await ada.publish(IN, "ok", qos=1)
        await second.until(lambda: len(second.rows) == 2)
    assert second.duplicates == [next(iter(first.rows))]


@pytest.mark.asyncio
async def test_the_response_topic_and_correlation_data_come_back(mosquitto: Mosquitto) -> None:
    inbox = Inbox()
    async with running(mosquitto.port, inbox) as clew, person(mosquitto.port) as ada:
        asked = publishing(ResponseTopic=f"{OUT}/phone/7", CorrelationData=b"\x00\xff7", UserProperty=[("id", "q9")])
        await ada.publish(IN, "Hello?", qos=1, properties=asked)
        await inbox.until(lambda: bool(inbox.rows))
        inbound = inbox.rows["mqtt/clew/ada/-/q9"]
        await clew.send(answer_to(inbound, "Hello!", clew))
        message = await heard(ada, on(f"{OUT}/phone/7"))
        properties = vars(message.properties)
        assert (properties["CorrelationData"], properties["ContentType"]) == (b"\x00\xff7", "application/json")


@pytest.mark.asyncio
async def test_a_response_topic_outside_the_senders_own_is_not_used(mosquitto: Mosquitto) -> None:
    inbox = Inbox()
    async with running(mosquitto.port, inbox) as clew, person(mosquitto.port) as ada, person(mosquitto.port, "bob") as bob:
        for topic in ("chat/v1/clew/out/bob", "chat/v1/clew/out/adabob", "lights/set", f"{OUT}/a//b"):
            asked = publishing(ResponseTopic=topic)
            await ada.publish(IN, question(topic), qos=1, properties=asked)
            await inbox.until(lambda id=topic: f"mqtt/clew/ada/-/{id}" in inbox.rows)  # type: ignore[misc]
            await clew.send(answer_to(inbox.rows[f"mqtt/clew/ada/-/{topic}"], topic, clew))
            assert payload(await heard(ada, on(OUT)))["text"] == topic
        await bob.publish("chat/v1/clew/out/bob", "the first that bob hears", qos=1)
        assert (await heard(bob, on("chat/v1/clew/out/bob"))).payload == b"the first that bob hears"


@pytest.mark.asyncio
async def test_the_time_left_to_answer_is_passed_on(mosquitto: Mosquitto) -> None:
    inbox = Inbox()
    async with running(mosquitto.port, inbox), person(mosquitto.port) as ada:
        await ada.publish(IN, question("q1"), qos=1, properties=publishing(MessageExpiryInterval=600))
        await inbox.until(lambda: bool(inbox.rows))
        assert inbox.rows["mqtt/clew/ada/-/q1"].expires_at is not None


@pytest.mark.asyncio
async def test_typing_and_previews_are_events(mosquitto: Mosquitto) -> None:
    inbox = Inbox()
    to = delivery("ada").address
    async with running(mosquitto.port, inbox) as clew, person(mosquitto.port) as ada:
        await clew.hint(to, Typing())
        assert payload(await heard(ada, on(EV))) == {"type": "typing"}
        for seq, text in enumerate(("It", "It is"), 1):
            await clew.hint(to, Preview("turn-1", text, text[-2:]))
            expected = {"type": "partial", "turn": "turn-1", "seq": seq, "text": text}
            assert payload(await heard(ada, on(EV))) == expected
    await clew.hint(to, Typing())


@pytest.mark.asyncio
async def test_a_long_reply_comes_in_order_and_resumes_behind_what_was_sent(mosquitto: Mosquitto) -> None:  # P43
    inbox = Inbox()
    async with running(mosquitto.port, inbox) as clew, person(mosquitto.port) as ada:
        long = delivery("ada", "word " * 120_000)
        await clew.send(long)
        got = [payload(await heard(ada, on(OUT))) for _ in long.parts]
    assert len(got) == 3
    assert "".join(each["text"] for each in got) == long.text
    assert [(each["id"], each["part"], each["parts"], each["final"]) for each in got] == [
        (f"{long.id}.{number}", number, 3, number == 3) for number in (1, 2, 3)
    ]


@pytest.mark.asyncio
async def test_a_publish_that_the_acl_forbids_is_refused(tmp_path: Path) -> None:  # P43
    acl = tmp_path / "acl-file"
    acl.write_text("topic read chat/v1/clew/in/#\ntopic write chat/v1/clew/status\ntopic write chat/v1/clew/out/ada\n")
    directory = tmp_path / "broker"
    directory.mkdir()
    with Mosquitto(directory, acl=acl) as broker:
        async with running(broker.port, Inbox()) as clew:
            with pytest.raises(Refused, match="Not authorized"):
                await clew.send(delivery("bob"))
            await clew.send(delivery("ada"))


@pytest.mark.asyncio
async def test_a_status_that_the_acl_forbids_is_reported(tmp_path: Path) -> None:
    acl = tmp_path / "acl-file"
    acl.write_text("topic read chat/v1/clew/in/#\n")
    directory = tmp_path / "broker"
    directory.mkdir()
    inbox = Inbox()
    with Mosquitto(directory, acl=acl) as broker:
        async with running(broker.port, inbox):
            assert inbox.up
            assert "chat/v1/clew/status" in inbox.reports[-1][1]


@pytest.mark.asyncio
async def test_a_wrong_password_is_reported_and_the_right_one_works(tmp_path: Path) -> None:
    inbox = Inbox()
    with Mosquitto(tmp_path, users={"clew": "right"}) as broker:
        wrong = MqttTransport("mqtt", settings(broker.port, username="clew", password="wrong"), first_pause=0.01)
        task = asyncio.create_task(wrong.run(inbox))
        await inbox.until(lambda: bool(inbox.reports))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        up, detail = inbox.reports[0]
        assert not up
        assert "Not authorized" in detail
        assert "wrong" not in detail
        async with running(broker.port, inbox, username="clew", password="right"):
            assert inbox.up


@pytest.mark.asyncio
async def test_an_address_that_no_topic_can_name_is_refused(mosquitto: Mosquitto) -> None:  # P43
    async with running(mosquitto.port, Inbox()) as clew:
        for chat in ("a/b", "#", "+", ""):
            with pytest.raises(Refused):
                await clew.send(delivery(chat))


@pytest.mark.asyncio
async def test_two_clews_for_one_bot_are_told(mosquitto: Mosquitto) -> None:
    inbox = Inbox()
    async with running(mosquitto.port, inbox), running(mosquitto.port, Inbox()):
        await inbox.until(lambda: any("does a second clew run" in detail for up, detail in inbox.reports if not up))


@pytest.mark.asyncio
async def test_a_session_taken_over_is_reported_as_such(free_port: int) -> None:
    """Not every broker says so; this one, which knows four packets, does."""

    async def take_over(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(b"\x20\x03\x00\x00\x00")
        subscribe = await reader.read(65536)
        writer.write(b"\x90\x04" + subscribe[2:4] + b"\x00\x01")
        publish = await reader.read(65536)
        topic_end = 4 + len(STATUS)
        writer.write(b"\x40\x02" + publish[topic_end : topic_end + 2] + b"\xe0\x02\x8e\x00")
        writer.close()

    inbox = Inbox()
    async with await asyncio.start_server(take_over, "127.0.0.1", free_port), running(free_port, inbox):
        await inbox.until(lambda: not inbox.up)
    assert inbox.reports[-1][1].endswith("another client with the same id: does a second clew run for this bot?")


@pytest.mark.asyncio
async def test_no_broker_is_reported_until_there_is_one(tmp_path: Path, free_port: int) -> None:  # P48
    inbox = Inbox()
    transport = MqttTransport("mqtt", settings(free_port), first_pause=0.01)
    task = asyncio.create_task(transport.run(inbox))
    await inbox.until(lambda: len(inbox.reports) >= 2)
    assert "cannot connect" in inbox.reports[0][1]
    with Mosquitto(tmp_path, port=free_port):
        await inbox.until(lambda: inbox.up)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.asyncio
async def test_a_server_that_is_no_mqtt_5_broker_is_reported(free_port: int) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    inbox = Inbox()
    async with await asyncio.start_server(hang_up, "127.0.0.1", free_port):
        task = asyncio.create_task(MqttTransport("mqtt", settings(free_port), first_pause=0.01).run(inbox))
        await inbox.until(lambda: bool(inbox.reports))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert "MQTT 5" in inbox.reports[0][1]


@pytest.mark.asyncio
async def test_a_reply_cut_off_before_its_acknowledgement_is_unknown(mosquitto: Mosquitto, free_port: int) -> None:
    # P43
    relay = Relay(mosquitto.port, breaks_under=b"goes wrong")
    async with relay.listening(free_port), running(free_port, Inbox()) as clew:
        with pytest.raises(Unknown):
            await clew.send(delivery("ada", "goes wrong"))
        assert relay.broken


@pytest.mark.asyncio
async def test_a_dead_wire_is_noticed_and_mended(mosquitto: Mosquitto, free_port: int) -> None:  # P48
    relay, inbox = Relay(mosquitto.port), Inbox()
    async with relay.listening(free_port), running(free_port, inbox, keepalive=1.0):
        relay.dead = True
        await inbox.until(lambda: not inbox.up)
        async with person(mosquitto.port) as ada:
            await ada.publish(IN, "in the meantime", qos=1)
        relay.dead = False
        await inbox.until(lambda: inbox.texts == ["in the meantime"])


@pytest.mark.asyncio
async def test_it_can_be_stopped_at_any_moment(mosquitto: Mosquitto) -> None:  # P48
    for rounds in range(0, 3000, 40):
        task = asyncio.create_task(MqttTransport("mqtt", settings(mosquitto.port)).run(Inbox()))
        for _ in range(rounds):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=DEADLINE_S)
        assert done, f"not stopped after {rounds} rounds of the loop"
        assert task.cancelled()


@pytest.mark.asyncio
async def test_a_store_that_fails_ends_the_transport_unacknowledged(mosquitto: Mosquitto) -> None:  # P42
    class Broken(Inbox):
        async def accept(self, batch, cursor=None):  # type: ignore[no-untyped-def]
            raise OSError("disk full")

    task = asyncio.create_task(MqttTransport("mqtt", settings(mosquitto.port)).run(broken := Broken()))
    await broken.until(lambda: broken.up)
    async with person(mosquitto.port) as ada:
        await ada.publish(IN, question("q1"), qos=1)
    with pytest.raises(OSError, match="disk full"):
        await asyncio.wait_for(task, DEADLINE_S)
    inbox = Inbox()
    async with running(mosquitto.port, inbox):
        await inbox.until(lambda: bool(inbox.rows))


@pytest.mark.asyncio
@pytest.mark.filterwarnings("ignore:.*ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")  # paho closes it late
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
async def test_tls_checks_the_brokers_certificate(tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = tmp_path / "broker.crt", tmp_path / "broker.key"
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=broker"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", *kind, *names], check=True, capture_output=True)
    tls = f"listener {free_port} 127.0.0.1\ncertfile {certificate}\nkeyfile {key}"
    inbox = Inbox()
    with Mosquitto(tmp_path, settings=tls) as broker:
        task = asyncio.create_task(MqttTransport("mqtt", settings(free_port, tls=True)).run(inbox))
        await inbox.until(lambda: bool(inbox.reports))
        task.cancel()
        await asyncio.wait([task])
        assert "certificate verify failed" in inbox.reports[0][1]

        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        async with running(free_port, inbox, tls=True) as clew, person(broker.port) as ada:
            await ada.publish(IN, "x" * 100_000, qos=1)
            await inbox.until(lambda: bool(inbox.rows))
            await clew.send(delivery("ada", "y" * 100_000))
            assert payload(await heard(ada, on(OUT)))["text"] == "y" * 100_000


# Doctor ----------------------------------------------------------------------------------------------------------

ALL_WRITE = "whoever reaches the broker"
NO_LIST = "clew's account may write as anybody"
MUTE = "clew's account may not write chat/v1/clew/out/…: no reply can be sent"
UNSEEN = "clew's account may not write chat/v1/clew/ev/…: nobody sees that it is typing"
OPEN_LIST = "topic write chat/v1/clew/in/#\nuser clew\ntopic write chat/v1/clew/#\n"
SHIPPED = Path(__file__).parents[2] / "deploy" / "mosquitto.acl"


async def examined(broker: Mosquitto, password: str | None = "right", username: str = "clew") -> tuple[list[Fault], str]:
    """(the faults, all remarks together)."""
    assert plugin.examine is not None
    account = {"username": username, "password": SecretStr(password)} if password else {}
    found = await plugin.examine("mqtt", Settings(port=broker.port, **account))  # type: ignore[arg-type]
    return [each for each in found if isinstance(each, Fault)], "; ".join(each.text for each in found if isinstance(each, Remark))


@pytest.mark.asyncio
async def test_the_doctor_logs_in(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, users={"clew": "right"}, acl=SHIPPED) as broker:
        faults, remarks = await examined(broker)
        assert faults == []
        assert "cannot be seen from here" in remarks
        [fault] = (await examined(broker, "wrong"))[0]
        assert (fault.serious, "the broker refused the connection" in fault.text) == (True, True)
    [fault] = (await examined(broker))[0]
    assert "cannot connect" in fault.text


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("users", "acl", "settings", "said"),
    [
        ({}, None, "", [(ALL_WRITE, False)]),
        ({"clew": "right"}, None, "", [(NO_LIST, False)]),
        (
            {"clew": "right"},
            "user clew\ntopic read chat/v1/clew/in/#\n",
            "",
            [(MUTE, True), ("clew's account may not write chat/v1/clew/ev", False)],
        ),
        (
            {"clew": "right"},
            "topic write chat/v1/clew/in/#\nuser clew\ntopic write chat/v1/clew/#\n",
            "allow_anonymous true",
            [(NO_LIST, False), (ALL_WRITE, False)],
        ),
        ({"clew": "right"}, None, "retain_available false", [("the broker keeps no retained messages", False), (NO_LIST, False)]),
    ],
)
async def test_the_doctor_sees_what_a_client_can_see(
    tmp_path: Path, users: dict[str, str], acl: str | None, settings: str, said: list[tuple[str, bool]]
) -> None:
    path = tmp_path / "list"
    path.write_text(acl or "")
    (tmp_path / "broker").mkdir()
    with Mosquitto(tmp_path / "broker", users=users or None, acl=path if acl else None, settings=settings) as broker:
        faults, remarks = await examined(broker, "right" if users else None)
    assert [(fault.text.startswith(text), fault.serious) for fault, (text, _) in zip(faults, said, strict=True)] == [
        (True, serious) for _, serious in said
    ]
    assert ("the broker is mosquitto version" in remarks) == (acl is None and not settings)


@pytest.mark.asyncio
async def test_the_doctor_disturbs_neither_clew_nor_its_session(mosquitto: Mosquitto) -> None:
    inbox = Inbox()
    async with running(mosquitto.port, inbox), person(mosquitto.port) as ada:
        with structlog.testing.capture_logs() as logs:
            await examined(mosquitto, None)
            await ada.publish(IN, "Good morning!", qos=1)
            await inbox.until(lambda: bool(inbox.rows))
        assert len(inbox.rows) == 1
        assert inbox.reports == inbox.reports[:1]  # it was never thrown out
        assert {each["event"] for each in logs} <= {"inbox.rejected"}


@pytest.mark.parametrize(
    ("present", "told", "text"),
    [
        (True, {}, ""),
        (False, {}, "the broker keeps no sessions: what is sent while clew is off is lost"),
        (True, {"SessionExpiryInterval": 5}, "the broker keeps sessions for 5 s, and clew asks for 30 days"),
    ],
)
def test_a_broker_that_keeps_no_sessions_is_named(present: bool, told: dict[str, int], text: str) -> None:
    assert "".join(fault.text for fault in doctor.session(present, told)) == text


def test_what_a_broker_does_not_do_is_named() -> None:
    told = {"MaximumQoS": 0, "WildcardSubscriptionAvailable": 0, "RetainAvailable": 0}
    assert [fault.serious for fault in doctor.limits(told)] == [True, True, False]
    assert list(doctor.limits({"MaximumQoS": 1, "RetainAvailable": 1})) == []


@pytest.mark.asyncio
async def test_a_small_packet_leaves_right_behind_another(mosquitto: Mosquitto) -> None:
    async with Connection(Broker("127.0.0.1", mosquitto.port, "clew-clew", "")) as connection:
        opened = connection._client.socket()
        assert isinstance(opened, socket.socket)
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
