"""The chat's WebSocket over real sockets, with a real store and an emulated model."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from clew.bus import QUEUE
from clew.transport import Address, Preview
from clew.web import chat
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import echo, say
from tests.emulators.server import Stall
from tests.integration.web_harness import DEADLINE_S, Clew, Tab, running, settings


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[OpenAIEmulator]:
    async with OpenAIEmulator(script=echo) as server:
        yield server


@pytest_asyncio.fixture
async def clew(tmp_path: Path, emulator: OpenAIEmulator) -> AsyncIterator[Clew]:
    async with running(settings(tmp_path / "c", base_url=emulator.base_url)) as found:
        yield found


@pytest.mark.asyncio
async def test_a_message_is_acknowledged_and_answered(clew: Clew) -> None:
    async with Tab.open(clew) as tab:
        await tab.say("m1", "Grüße")
        await tab.until("ack", id="m1")
        reply = await tab.until("message", role="assistant")
        assert reply["in_reply_to"] == "m1"
        assert "Grüße" in reply["text"]
        assert reply["seq"] > 1
        assert tab.texts("user") == []


@pytest.mark.asyncio
async def test_what_is_acknowledged_is_stored(clew: Clew, emulator: OpenAIEmulator) -> None:  # P42
    hold = emulator.hold()
    async with Tab.open(clew) as tab:
        await tab.say("m1", "keep this")
        await tab.until("ack", id="m1")
        stored = await clew.service.store.history("web:local", 0, 10, newest=True)
        assert [said.id for said in stored] == ["m1"]
        hold.release()
        await tab.until("message", role="assistant")


@pytest.mark.asyncio
async def test_two_sockets_of_one_client_make_one_turn(clew: Clew, emulator: OpenAIEmulator) -> None:  # BO-122, P42
    async with Tab.open(clew) as first, Tab.open(clew) as second:
        await asyncio.gather(first.say("same", "once"), second.say("same", "once"))
        for tab in (first, second):
            await tab.until("ack", id="same")
            await tab.until("message", role="assistant")
        await first.say("next", "then this")
        for tab in (first, second):
            await tab.until("message", role="assistant", in_reply_to="next")
            assert [frame["in_reply_to"] for frame in tab.of("message") if frame["role"] == "assistant"] == ["same", "next"]
        assert len(emulator.calls) == 2
    async with Tab.open(clew) as reloaded:
        await reloaded.until("message", in_reply_to="next")
        assert reloaded.texts("user") == ["once", "then this"]
        assert len(reloaded.texts("assistant")) == 2


@pytest.mark.asyncio
async def test_another_tab_sees_both_sides(clew: Clew) -> None:
    async with Tab.open(clew) as writing, Tab.open(clew) as watching:
        await writing.say("m1", "from the other tab")
        await watching.until("message", role="assistant")
        assert [(frame["role"], frame["in_reply_to"]) for frame in watching.of("message")] == [("user", None), ("assistant", "m1")]
        assert watching.of("message")[0]["id"] == "m1"


@pytest.mark.asyncio
async def test_other_chats_see_nothing(clew: Clew) -> None:
    async with Tab.open(clew) as writing, Tab.open(clew, "chat=kitchen") as other:
        await writing.say("m1", "private")
        await writing.until("message", role="assistant")
        await other.say("k1", "hello kitchen")
        await other.until("message", role="assistant")
        assert all(frame.get("in_reply_to") in (None, "k1") for frame in other.frames)


@pytest.mark.asyncio
async def test_after_brings_what_was_missed_and_nothing_else(clew: Clew) -> None:
    async with Tab.open(clew) as tab:
        await tab.say("m1", "first")
        seen = (await tab.until("message", role="assistant"))["seq"]
        await tab.say("m2", "second")
        await tab.until("message", in_reply_to="m2")
    async with Tab.open(clew, f"chat=local&after={seen}") as back:
        await back.until("message", in_reply_to="m2")
        assert [frame["seq"] > seen for frame in back.of("message")] == [True, True]
        assert back.texts("user") == ["second"]


@pytest.mark.asyncio
async def test_a_missed_stretch_longer_than_a_page_comes_whole(clew: Clew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "PAGE", 3)
    async with Tab.open(clew) as tab:
        for number in range(5):
            await tab.say(f"m{number}", f"text {number}")
            await tab.until("message", in_reply_to=f"m{number}")
        first = tab.of("message")[0]["seq"]
    async with Tab.open(clew, f"chat=local&after={first}") as back:
        await back.until("message", in_reply_to="m4")
        assert [frame["id"] for frame in back.of("message") if frame["role"] == "user"] == ["m1", "m2", "m3", "m4"]
    async with Tab.open(clew) as fresh:
        await fresh.until("message", in_reply_to="m4")
        assert len(fresh.of("message")) == 3


@pytest.mark.asyncio
async def test_deltas_add_up_to_the_reply_and_end_with_it(clew: Clew, emulator: OpenAIEmulator) -> None:
    emulator.script = lambda body: say("One two three, 東京 and four.")
    async with Tab.open(clew) as tab:
        await tab.say("m1", "count")
        reply = await tab.until("message", role="assistant")
        deltas = tab.of("delta")
        assert "".join(frame["text"] for frame in deltas) == reply["text"]
        assert {(frame["turn"], frame["in_reply_to"]) for frame in deltas} == {(deltas[0]["turn"], "m1")}
        await tab.say("m2", "again")
        await tab.until("message", in_reply_to="m2")
        end = tab.frames.index(reply)
        assert all(frame.get("in_reply_to") != "m1" for frame in tab.frames[end + 1 :])


@pytest.mark.asyncio
async def test_who_comes_late_sees_the_reply_from_its_beginning(clew: Clew, emulator: OpenAIEmulator) -> None:
    emulator.script = lambda body: say("alpha beta gamma delta epsilon zeta")
    stall = Stall(after=4)
    emulator.faults.append(stall)
    async with Tab.open(clew) as tab:
        await tab.say("m1", "speak")
        await tab.until("delta")
        async with Tab.open(clew) as late:
            await late.until("message", role="user")
            stall.until.set()
            reply = await late.until("message", role="assistant")
            shown = "".join(frame["text"] for frame in late.of("delta"))
            assert shown in ("", reply["text"])


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ("not json", "not JSON"),
        ("[1]", "JSON object"),
        ('{"type":"message","id":7,"text":"x"}', "id must be"),
        ('{"type":"message","id":"e","text":"  "}', "empty"),
        ('{"type":"message","id":"s","text":"\\ud800"}', "half a character"),
        ('{"type":"message","id":"l","text":"%s"}' % ("x" * 200_000), "too long"),
        (b"\x00\x01", "binary"),
    ],
    ids=["bad json", "no object", "wrong type", "empty", "surrogate", "long", "binary"],
)
async def test_a_bad_frame_is_named_and_the_socket_stays(clew: Clew, frame: str | bytes, words: str) -> None:
    async with Tab.open(clew) as tab:
        if isinstance(frame, bytes):
            await tab.ws.send_bytes(frame)
        else:
            await tab.ws.send_str(frame)
        error = await tab.until("error")
        assert words in error["text"]
        await tab.say("good", "hello")
        await tab.until("ack", id="good")
        await tab.until("message", in_reply_to="good")


@pytest.mark.asyncio
async def test_a_huge_frame_ends_the_socket_and_nothing_more(clew: Clew) -> None:
    async with Tab.open(clew) as tab:
        await tab.ws.send_str("x" * (chat.frame_limit(128 * 1024) + 1))
        frame = await tab.ws.receive(DEADLINE_S)
        assert frame.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.ERROR, aiohttp.WSMsgType.CLOSED)
    async with Tab.open(clew) as tab:
        await tab.say("m1", "still there")
        await tab.until("message", role="assistant")


@pytest.mark.asyncio
async def test_half_a_character_in_a_stream_does_not_end_the_socket(clew: Clew) -> None:
    address = Address("web", "local")
    async with Tab.open(clew) as tab:
        await tab.say("m1", "/help")
        await tab.until("message", in_reply_to="m1")
        clew.service.bus.publish(address, Preview("turn", "half \ud83d", "half \ud83d"))
        assert (await tab.until("delta"))["text"] == "half ?"


@pytest.mark.asyncio
async def test_events_that_the_bus_dropped_are_made_good(clew: Clew) -> None:
    address = Address("web", "local")
    async with Tab.open(clew) as tab:
        await tab.say("m1", "/help")
        await tab.until("message", in_reply_to="m1")
        for length in range(1, QUEUE * 2):
            clew.service.bus.publish(address, Preview("turn", "x" * length, "x"))
        clew.service.bus.publish(address, Preview("turn", "x" * (QUEUE * 2 - 1) + ".", "."))
        while not (tab.of("delta") and tab.of("delta")[-1]["text"].endswith(".")):
            tab.frames.append(await tab.ws.receive_json(timeout=DEADLINE_S))
        assert "".join(frame["text"] for frame in tab.of("delta")) == "x" * (QUEUE * 2 - 1) + "."


@pytest.mark.asyncio
async def test_a_stale_preview_does_not_begin_an_answered_reply_anew(clew: Clew) -> None:
    address = Address("web", "local")
    async with Tab.open(clew) as tab:
        await tab.say("m1", "hello")
        await tab.until("message", in_reply_to="m1")
        clew.service.bus.publish(address, Preview("late", "a second beginning", "", "m1"))
        clew.service.bus.publish(address, Preview("next", "the next one", "", "m2"))
        assert (await tab.until("delta", in_reply_to="m2"))["text"] == "the next one"
        assert "a second beginning" not in [frame["text"] for frame in tab.of("delta")]


@pytest.mark.asyncio
async def test_a_deleted_session_leaves_no_empty_lines(clew: Clew) -> None:
    async with Tab.open(clew) as tab:
        await tab.say("m1", "to be deleted")
        await tab.until("message", in_reply_to="m1")
    (session,) = await clew.service.store.sessions("web:local")
    await clew.service.store.delete_session(session.id)
    async with Tab.open(clew) as tab:
        await tab.say("m2", "afterwards")
        await tab.until("message", in_reply_to="m2")
        assert [frame["in_reply_to"] for frame in tab.of("message")] == ["m2"]
    _, page = await clew.get("/api/v1/chats/local/messages")
    assert [said["text"] for said in page["messages"] if said["role"] == "user"] == ["afterwards"]


@pytest.mark.asyncio
async def test_a_command_is_answered_like_a_message(clew: Clew) -> None:
    async with Tab.open(clew) as tab:
        await tab.say("c1", "/help")
        reply = await tab.until("message", role="assistant")
        assert "/new" in reply["text"]


@pytest.mark.asyncio
async def test_a_full_chat_refuses_with_the_message_named(tmp_path: Path, emulator: OpenAIEmulator) -> None:
    config = settings(tmp_path / "full", base_url=emulator.base_url, limits={"queued_per_chat": 1})
    async with running(config) as clew, Tab.open(clew) as tab:
        hold = emulator.hold()
        await tab.say("m1", "runs")
        await tab.until("ack", id="m1")
        async with asyncio.timeout(DEADLINE_S):
            await hold.reached.wait()
        await tab.say("m2", "waits")
        await tab.until("ack", id="m2")
        await tab.say("m3", "too many")
        error = await tab.until("error", id="m3")
        assert "must be answered first" in error["text"]
        hold.release()
        await tab.until("message", in_reply_to="m2")


@pytest.mark.asyncio
@pytest.mark.parametrize("query", ["chat=a/b", "chat=" + "x" * 65, "after=-1", "after=x", "after=" + "9" * 30])
async def test_a_bad_place_is_refused_before_the_socket_opens(clew: Clew, query: str) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        async with Tab.open(clew, query):
            pass
    assert caught.value.status == 400


@pytest.mark.asyncio
async def test_a_client_that_takes_nothing_is_hung_up_on(clew: Clew, monkeypatch: pytest.MonkeyPatch) -> None:  # BO-045
    monkeypatch.setattr(chat, "SEND_S", 0.2)
    async with Tab.open(clew) as tab:
        for number in range(100):
            await tab.say(f"m{number}", f"/help {number} " + "x" * 120_000)
            await tab.until("message", in_reply_to=f"m{number}")
    with capture_logs() as logs, stuck_client(clew.listening.port):
        async with asyncio.timeout(DEADLINE_S):
            while "web.client_slow" not in [each["event"] for each in logs]:
                await asyncio.sleep(0.02)
    async with Tab.open(clew) as tab:
        await tab.until("message", in_reply_to="m99")


@contextmanager
def stuck_client(port: int) -> Iterator[None]:
    """A browser that opens the chat and then reads nothing: 12 MB wait for it."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        upgrade = (
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        )
        client.sendall(f"GET /chat/ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{upgrade}\r\n".encode())
        yield


@pytest.mark.asyncio
async def test_the_terminal_is_the_unix_user_behind_the_socket(clew: Clew) -> None:
    status, entry = await clew.ask_locally("POST", "/api/v1/terminal/session", {"session": None, "title": "from a test"})
    assert status == 200
    async with Tab.open(clew, f"transport=terminal&after={entry['after']}", local=True) as tab:
        await tab.say("t1", "hello from the terminal")
        await tab.until("message", in_reply_to="t1")
    stored = await clew.service.store.sessions(entry["address"])
    assert [(row.id, row.title) for row in stored] == [(entry["session"], "from a test")]
    status, again = await clew.ask_locally("POST", "/api/v1/terminal/session", {"session": "latest"})
    assert (status, again["session"]) == (200, entry["session"])
    assert again["after"] > entry["after"]


@pytest.mark.asyncio
async def test_the_terminal_is_not_reached_by_tcp(clew: Clew) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        async with Tab.open(clew, "transport=terminal"):
            pass
    assert caught.value.status == 400


@pytest.mark.asyncio
async def test_a_daemon_that_stops_says_so(tmp_path: Path) -> None:
    async with aiohttp.ClientSession() as session:
        async with running(settings(tmp_path / "s")) as clew:
            ws = await session.ws_connect(f"{clew.url}/chat/ws")
            last = asyncio.create_task(ws.receive(DEADLINE_S))
        assert (await last).data == aiohttp.WSCloseCode.GOING_AWAY


@pytest.mark.asyncio
async def test_a_client_that_hangs_up_before_the_socket_opens_is_no_error(clew: Clew, caplog: pytest.LogCaptureFixture) -> None:
    request = (
        f"GET /chat/ws?chat=gone HTTP/1.1\r\nHost: 127.0.0.1:{clew.listening.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", clew.listening.port)) as client:
            client.sendall(request.encode())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    async with Tab.open(clew) as tab:
        await tab.say("m1", "still there?")
        await tab.until("message", role="assistant")
    assert not [each for each in caplog.records if each.levelname == "ERROR"]
