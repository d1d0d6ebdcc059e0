"""The Matrix transport against a real synapse, with a host that remembers."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from clew.transport import Address, Delivery, Gone, Preview, Refused, Retry, Sent, Typing, Unknown
from clew_transports.matrix.doctor import NO_PASSWORDS
from clew_transports.matrix.events import Place
from clew_transports.matrix.html import LIMIT
from clew_transports.matrix.settings import NO_ACCOUNT, Settings
from clew_transports.matrix.signing import BAD_PASSWORD, BAD_TOKEN
from clew_transports.matrix.transport import MatrixTransport, plugin
from clew_transports.reading import READABLE
from tests.emulators import matrix
from tests.emulators.matrix import Gateway
from tests.integration.matrix_harness import PASSWORD, Someone, people
from tests.integration.mqtt_harness import Inbox
from tests.synapse import Synapse

pytestmark = pytest.mark.asyncio


@contextlib.asynccontextmanager
async def running(url: str, clew: Someone, inbox: Inbox, *, answer_s: float = 20.0, **more: Any) -> AsyncIterator[MatrixTransport]:
    if "password" not in more:
        more = {"token": SecretStr(clew.token), **more}
    transport = MatrixTransport("matrix", Settings(base_url=url, **more), first_pause=0.02, poll_s=10.0, answer_s=answer_s)
    task = asyncio.create_task(transport.run(inbox))
    try:
        yield transport
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def connected(url: str, clew: Someone, inbox: Inbox | None = None, **more: Any) -> AsyncIterator[tuple[MatrixTransport, Inbox]]:
    inbox = inbox or Inbox()
    seen = len(inbox.reports)
    async with running(url, clew, inbox, **more) as transport:
        await inbox.until(lambda: any(up for up, _ in inbox.reports[seen:]))
        yield transport, inbox


async def direct(ada: Someone, clew: Someone) -> str:
    """A room of the two."""
    room = await ada.room(clew)
    await clew.join(room)
    return room


async def group(clew: Someone, ada: Someone, *others: Someone) -> str:
    room = await ada.room(clew, *others)
    for each in (clew, *others):
        await each.join(room)
    return room


def delivery(transport: MatrixTransport, text: str, room: str, thread: str | None = None, **more: Any) -> Delivery:
    return Delivery("k3v9", Address("matrix", room, thread), text, tuple(transport.parts(text)), 1.0, **more)


async def sent(transport: MatrixTransport, whole: Delivery) -> Delivery:
    """Sends part after part, as the host does."""
    while whole.sent < len(whole.parts):
        upto = (await transport.send(whole)).upto
        assert upto == whole.sent + 1
        whole = replace(whole, sent=upto)
    return whole


# In --------------------------------------------------------------------------------------------------------------


async def test_old_history_is_not_answered_and_what_comes_then_is(homeserver: Synapse) -> None:  # P42, BO-049
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada):
        room = await direct(ada, clew)
        for number in range(10):
            await ada.say(room, f"old {number}")
        async with connected(homeserver.url, clew) as (_, inbox):
            first = await ada.say(room, "hello")
            await inbox.until(lambda: bool(inbox.rows))
            (row,) = inbox.rows.values()
            assert row.external_id == f"matrix/{clew.id}/{first}"
            assert (row.address, row.identity, row.sender_name, row.direct) == (Address("matrix", room), f"matrix:{ada.id}", ada.name, True)
        await ada.say(room, "while it was off")
        async with connected(homeserver.url, clew, inbox):
            await inbox.until(lambda: len(inbox.rows) == 2)
        assert inbox.texts == ["hello", "while it was off"]
        assert inbox.duplicates == []


async def test_a_gap_is_filled_in_order(homeserver: Synapse) -> None:  # P42
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada):
        room = await direct(ada, clew)
        for number in range(10):
            await ada.say(room, f"old {number}")
        async with connected(homeserver.url, clew) as (_, inbox):
            pass
        for number in range(130):
            await ada.say(room, f"message {number}")
        async with connected(homeserver.url, clew, inbox):
            await inbox.until(lambda: len(inbox.rows) == 130)
        assert inbox.texts == [f"message {number}" for number in range(130)]


async def test_nothing_is_passed_over_before_it_is_stored(homeserver: Synapse) -> None:  # P42, BO-047
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), Gateway(homeserver.url) as gateway:
        room = await direct(ada, clew)
        async with connected(gateway.url, clew) as (_, inbox):
            pass
        before = inbox.stored_cursor
        inbox.stuck = True
        await ada.say(room, "hello")
        async with running(gateway.url, clew, inbox):
            await inbox.until(lambda: bool(inbox.batches and inbox.batches[-1]))
        assert inbox.stored_cursor == before
        inbox.stuck = False
        async with running(gateway.url, clew, inbox):
            await inbox.until(lambda: inbox.texts == ["hello"])
            gateway.rewind()
            await inbox.until(lambda: bool(inbox.duplicates))
        assert inbox.texts == ["hello"]


async def test_no_message_is_handled_before_the_own_id_is_known(homeserver: Synapse) -> None:  # BO-073
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), Gateway(homeserver.url) as gateway:
        room = await direct(ada, clew)
        async with connected(gateway.url, clew) as (_, inbox):
            pass
        gateway.calls.clear()
        await ada.say(room, "meanwhile")
        await clew.say(room, "my own words")
        gateway.next["whoami"].extend([matrix.refuses(500, "M_UNKNOWN"), matrix.drops])
        async with running(gateway.url, clew, inbox):
            await inbox.until(lambda: bool(inbox.rows))
        assert [call[0] for call in gateway.calls][:3] == ["whoami"] * 3
        assert inbox.texts == ["meanwhile"]


async def test_notices_state_and_the_own_words_are_ignored(homeserver: Synapse) -> None:  # BO-072, BO-074
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada):
        room = await direct(ada, clew)
        async with connected(homeserver.url, clew) as (transport, inbox):
            await sent(transport, delivery(transport, "my own words", room))
            await ada.send(room, {"msgtype": "m.notice", "body": "I am a bot"})
            await ada.call("PUT", "rooms", room, "state", "m.room.topic", "", body={"topic": "x"})
            await ada.send(room, {"x": 1}, "org.example.other")
            await ada.say(room, "a person")
            await inbox.until(lambda: bool(inbox.rows))
        assert [row.text for row in inbox.rows.values()] == ["a person"]


async def test_of_a_group_only_what_speaks_to_clew_is_taken(homeserver: Synapse) -> None:  # BO-069, BO-070, BO-071
    async with people(homeserver, "clew", "ada", "bob", watching=False) as (clew, ada, bob), Gateway(homeserver.url) as gateway:
        await clew.call("PUT", "profile", clew.id, "displayname", body={"displayname": "Clew (bot)"})
        room, alone = await group(clew, ada, bob), await direct(ada, clew)
        mine = await clew.say(room, "an answer")
        other = await ada.say(room, "mine")
        async with connected(gateway.url, clew, prefix="!") as (_, inbox):
            pass
        # What it knew of its rooms is gone with the process.
        for text, more in (
            ("lunch?", {}),
            ("@room lunch", {"m.mentions": {"room": True}}),
            ("the clew (bot) is nice", {}),
            ("Clewless: hello", {}),
            ("no", {"m.relates_to": {"m.in_reply_to": {"event_id": other}}}),
            ("nobody", {"m.relates_to": {"m.in_reply_to": {"event_id": "$none"}}}),
            ("in a thread", {"m.relates_to": thread(mine, falling_back=mine)}),
            ("a quote", {"m.mentions": {}, "formatted_body": f'<a href="https://matrix.to/#/{clew.id}">Clew</a>'}),
            ("Clew (bot): what is 👍 2+2?", {}),
            (f"hey {clew.name}", {"m.mentions": {"user_ids": [clew.id]}}),
            ("an old client", {"formatted_body": f'<a href="https://matrix.to/#/{clew.id}">Clew</a> an old client'}),
            ("> <@x:y> an answer\n> more\n\nyes", {"m.relates_to": {"m.in_reply_to": {"event_id": mine}}}),
            ("!status", {}),
            (f"{clew.id} /new", {}),
        ):
            await bob.say(room, text, **more)
        await ada.say(alone, "just us")
        async with connected(gateway.url, clew, inbox, prefix="!"):
            await inbox.until(lambda: len(inbox.rows) == 7)
        texts = ["what is 👍 2+2?", f"hey {clew.name}", "an old client", "yes", "status", "/new"]
        assert sorted(inbox.texts) == sorted([*texts, "just us"])
        row = next(row for row in inbox.rows.values() if row.text == "yes")
        assert (row.direct, row.sender, row.reply_to, str(row.address)) == (False, bob.id, mine, f"matrix:{room}")


def thread(root: str, falling_back: str = "") -> dict[str, Any]:
    more = {"is_falling_back": True, "m.in_reply_to": {"event_id": falling_back}} if falling_back else {}
    return {"rel_type": "m.thread", "event_id": root, **more}


async def test_all_of_a_group_is_taken_where_the_config_says_so(homeserver: Synapse) -> None:
    async with people(homeserver, "clew", "ada", "bob", watching=False) as (clew, ada, bob):
        room = await group(clew, ada, bob)
        async with connected(homeserver.url, clew, groups="all") as (_, inbox):
            await bob.say(room, "lunch?")
            await inbox.until(lambda: inbox.texts == ["lunch?"])


async def test_a_group_can_be_listened_to(homeserver: Synapse) -> None:  # BO-069
    async with people(homeserver, "clew", "ada", "bob", watching=False) as (clew, ada, bob):
        room, alone = await group(clew, ada, bob), await direct(ada, clew)
        async with connected(homeserver.url, clew, groups="listen") as (transport, inbox):
            mine = (await transport.send(delivery(transport, "an answer", room))).ref
            line = await bob.say(room, f"lunch, {clew.name}?")
            await bob.say(room, "really?", **{"m.relates_to": {"m.in_reply_to": {"event_id": mine}}})
            await bob.say(room, f"{clew.name}: where?")
            await bob.edit(room, line, "dinner?")
            await bob.send(room, {"msgtype": "m.notice", "body": "a bot"})
            await bob.redact(room, line)
            await ada.say(alone, "just us")
            await inbox.until(lambda: len(inbox.rows) == 6)
        rows = [row for row in inbox.rows.values() if not row.direct]
        assert [(row.kind, row.text) for row in rows] == [
            ("context", f"lunch, {clew.name}?"),
            ("message", "really?"),
            ("message", "where?"),
            ("edit", "dinner?"),
            ("delete", ""),
        ]
        assert {row.edits for row in rows[3:]} == {rows[0].external_id}


async def test_a_chat_of_two_is_a_group_as_soon_as_somebody_is_invited(homeserver: Synapse) -> None:  # BO-069
    async with people(homeserver, "clew", "ada", "bob", watching=False) as (clew, ada, bob):
        room = await direct(ada, clew)
        async with connected(homeserver.url, clew) as (_, inbox):
            await ada.say(room, "alone")
            await inbox.until(lambda: bool(inbox.rows))
            await ada.invite(room, bob)
            await ada.say(room, "not for clew")
            await ada.say(room, "for it", **{"m.mentions": {"user_ids": [clew.id]}})
            await inbox.until(lambda: len(inbox.rows) == 2)
            await ada.call("POST", "rooms", room, "kick", body={"user_id": bob.id})
            await ada.say(room, "alone again")
            await inbox.until(lambda: len(inbox.rows) == 3)
        assert [(row.text, row.direct) for row in inbox.rows.values()] == [("alone", True), ("for it", False), ("alone again", True)]


async def test_threads_are_chats_and_edits_name_what_they_change(homeserver: Synapse) -> None:  # BO-075
    async with people(homeserver, "clew", "ada", "bob") as (clew, ada, bob):
        room = await group(clew, ada, bob)
        to_clew = {"m.mentions": {"user_ids": [clew.id]}}
        async with connected(homeserver.url, clew) as (transport, inbox):
            root = await ada.say(room, "the root")
            first = await ada.say(room, "helo", **to_clew, **{"m.relates_to": thread(root, falling_back=root)})
            await ada.edit(room, first, "hello", **to_clew)
            await inbox.until(lambda: len(inbox.rows) == 2)
            said, edited = inbox.rows.values()
            assert str(said.address) == f"matrix:{room}/{root}"
            assert (edited.kind, edited.text, edited.edits) == ("edit", "hello", said.external_id)
            answer = delivery(transport, "hi", room, root, in_reply_to=first, context=said.context)
            await sent(transport, answer)
            (content,) = await ada.until(lambda: ada.seen(room, clew.id))
            assert content["m.relates_to"] == {
                "rel_type": "m.thread",
                "event_id": root,
                "is_falling_back": False,
                "m.in_reply_to": {"event_id": first},
            }
            assert content["m.mentions"] == {"user_ids": [ada.id]}


async def test_an_emoji_on_a_message_comes_as_a_reaction_to_it(homeserver: Synapse) -> None:
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada):
        room = await direct(ada, clew)
        async with connected(homeserver.url, clew) as (transport, inbox):
            ref = (await transport.send(delivery(transport, "May I?", room))).ref
            await ada.send(room, {"m.relates_to": {"rel_type": "m.annotation", "event_id": ref, "key": "👍"}}, "m.reaction")
            await inbox.until(lambda: bool(inbox.rows))
            (row,) = inbox.rows.values()
            assert (row.kind, row.text, row.reply_to, row.direct) == ("reaction", "👍", ref, True)


async def test_files_come_with_their_bytes_and_other_things_are_named(homeserver: Synapse) -> None:
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada):
        room = await direct(ada, clew)
        data = b"\x89PNG" * 50_000
        uri = await ada.upload(data)
        info = {"mimetype": "image/png", "size": len(data)}
        async with connected(homeserver.url, clew) as (transport, inbox):
            await ada.send(room, {"msgtype": "m.image", "body": "a.png", "url": uri, "info": info})
            await ada.send(room, {"msgtype": "m.file", "body": "read this", "filename": "b.pdf", "url": uri})
            await ada.send(room, {"msgtype": "m.location", "body": "here", "geo_uri": "geo:1,2"})
            spoken = {"msgtype": "m.audio", "body": "Voice message", "url": uri, "org.matrix.msc3245.voice": {}}
            await ada.send(room, spoken)
            await inbox.until(lambda: len(inbox.rows) == 4)
            picture, document, place, voice = inbox.rows.values()
            assert [row.attachments[0].voice for row in (picture, document, voice)] == [False, False, True]
            assert (voice.text, voice.refused) == ("", "")
            (held,) = picture.attachments
            assert (picture.text, held.name, held.mime, held.size) == ("", "a.png", "image/png", len(data))
            assert (document.text, document.attachments[0].name) == ("read this", "b.pdf")
            assert place.refused == READABLE
            assert b"".join([piece async for piece in transport.fetch(held.ref)]) == data
            for none in (f"{uri}x", "mxc://../x", "https://e.org/x"):
                with pytest.raises(LookupError):
                    [piece async for piece in transport.fetch(none)]


async def test_files_of_an_older_homeserver_are_fetched_the_old_way(homeserver: Synapse) -> None:
    async with (
        people(homeserver, "clew", watching=False) as (clew,),
        Gateway(homeserver.url) as gateway,
        connected(gateway.url, clew) as (transport, _),
    ):
        gateway.next["download"].append(matrix.refuses(404, "M_UNRECOGNIZED"))
        gateway.next["download"].append(matrix.answers(200, "the bytes"))
        assert b"".join([piece async for piece in transport.fetch("mxc://test.example/abc")]) == b"the bytes"
        assert [path for _, path, _, _ in gateway.of("download")] == [
            "/_matrix/client/v1/media/download/test.example/abc",
            "/_matrix/media/v3/download/test.example/abc",
        ]


# Invitations -----------------------------------------------------------------------------------------------------


async def test_only_invitations_of_known_people_are_accepted(homeserver: Synapse) -> None:  # P46
    async with people(homeserver, "clew", "ada", "eve", watching=False) as (clew, ada, eve):
        inbox = Inbox()
        inbox.people = {ada.id}
        async with connected(homeserver.url, clew, inbox):
            hers = await eve.room(clew)
            room = await ada.room(clew)
            await ada.say(room, "hello, are you there?")
            await inbox.until(lambda: inbox.texts == ["hello, are you there?"])
            assert Place.load(inbox.stored_cursor).invites == {hers: eve.id}
        inbox.people |= {eve.id}  # approved later, while clew is off
        async with connected(homeserver.url, clew, inbox):
            await eve.say(hers, "and now?")
            await inbox.until(lambda: "and now?" in inbox.texts)
            assert Place.load(inbox.stored_cursor).invites == {}


async def test_what_was_said_before_the_invitation_is_not_answered(homeserver: Synapse) -> None:  # P42
    async with people(homeserver, "clew", "ada", "bob", watching=False) as (clew, ada, bob):
        to_clew = {"m.mentions": {"user_ids": [clew.id]}}
        room = await group(bob, ada)
        for number in range(30):
            await ada.say(room, f"old {number}", **to_clew)
        async with connected(homeserver.url, clew, invites="anyone") as (_, inbox):
            await ada.invite(room, clew)
            for number in range(30):
                await ada.say(room, f"new {number}", **to_clew)
            await inbox.until(lambda: "new 29" in inbox.texts)
        assert inbox.texts == [f"new {number}" for number in range(30)]


async def test_an_invitation_that_is_withdrawn_is_forgotten(homeserver: Synapse) -> None:
    async with (
        people(homeserver, "clew", "ada", watching=False) as (clew, ada),
        Gateway(homeserver.url) as gateway,
        connected(gateway.url, clew, invites="anyone") as (_, inbox),
    ):
        gateway.next["join"].append(matrix.refuses(403, "M_FORBIDDEN"))
        gone = await ada.room(clew)
        await inbox.until(lambda: gone in (inbox.stored_cursor or ""))
        await gateway.until(lambda: not gateway.next["join"])
        room = await ada.room(clew)
        await ada.say(room, "hello")
        await inbox.until(lambda: inbox.texts == ["hello"])
        assert Place.load(inbox.stored_cursor).invites == {}


# Connection ------------------------------------------------------------------------------------------------------


async def test_a_password_makes_one_session_that_lasts(homeserver: Synapse) -> None:  # P42
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada):
        room = await direct(ada, clew)
        inbox = Inbox()
        more = {"user": clew.id, "password": SecretStr(PASSWORD)}
        async with connected(homeserver.url, clew, inbox, **more) as (transport, _):
            first = await transport.send(delivery(transport, "hello", room))
        async with connected(homeserver.url, clew, inbox, **more) as (transport, _):
            assert await transport.send(delivery(transport, "hello", room)) == first
        devices = (await clew.call("GET", "devices"))["devices"]
        assert [each["display_name"] for each in devices if each["device_id"].startswith("CLEW")] == ["clew"]


async def test_a_session_that_was_ended_is_begun_again_with_a_password(homeserver: Synapse) -> None:
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada):
        room = await direct(ada, clew)
        async with connected(homeserver.url, clew, user=clew.id, password=SecretStr(PASSWORD)) as (_, inbox):
            await clew.call("POST", "logout", "all", body={})
            await ada.say(room, "still there?")
            await inbox.until(lambda: inbox.texts == ["still there?"])


async def test_a_wrong_token_or_password_is_told_without_it(homeserver: Synapse) -> None:
    async with people(homeserver, "clew", watching=False) as (clew,):
        for more, told in (
            ({"token": SecretStr("wrong")}, BAD_TOKEN),
            ({"user": clew.id, "password": SecretStr("wrong")}, BAD_PASSWORD),
        ):
            inbox = Inbox()
            async with running(homeserver.url, clew, inbox, **more):
                await inbox.until(lambda inbox=inbox, told=told: (False, told) in inbox.reports)  # type: ignore[misc]
            assert not inbox.up


async def test_a_homeserver_that_is_down_or_silent_is_told_and_met_again(homeserver: Synapse) -> None:  # BO-091
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), Gateway(homeserver.url) as gateway:
        room = await direct(ada, clew)
        async with connected(gateway.url, clew) as (_, inbox):
            await gateway.down()
            await inbox.until(lambda: not inbox.up)
            await ada.say(room, "said meanwhile")
            await gateway.up()
            await inbox.until(lambda: inbox.up and inbox.texts == ["said meanwhile"])
        gateway.next["sync"].append(matrix.hangs)
        async with running(gateway.url, clew, inbox, answer_s=1.0):
            await inbox.until(lambda: any(not up and "no answer" in detail for up, detail in inbox.reports))
            await ada.say(room, "after the silence")
            await inbox.until(lambda: "after the silence" in inbox.texts)


async def test_a_flood_of_429_is_waited_out(homeserver: Synapse) -> None:  # BO-064
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), Gateway(homeserver.url) as gateway:
        room = await direct(ada, clew)
        gateway.next["sync"].extend([matrix.too_many(0.1)] * 4)
        async with connected(gateway.url, clew) as (_, inbox):
            gateway.next["members"].append(matrix.too_many(0.1))
            await ada.say(room, "hello")
            await inbox.until(lambda: inbox.texts == ["hello"])
            assert [row.direct for row in inbox.rows.values()] == [True]


async def test_members_that_cannot_be_had_make_a_group(homeserver: Synapse) -> None:  # BO-071
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), Gateway(homeserver.url) as gateway:
        room = await direct(ada, clew)
        async with connected(gateway.url, clew) as (_, inbox):
            gateway.next["members"].extend([matrix.drops] * 6)  # aiohttp asks twice
            await ada.say(room, "hello")
            await ada.say(room, f"{clew.name}: hello")
            await inbox.until(lambda: inbox.texts == ["hello"])
            assert [row.direct for row in inbox.rows.values()] == [False]


# Out -------------------------------------------------------------------------------------------------------------


async def test_a_reply_is_rendered_and_split_by_what_an_event_holds(homeserver: Synapse) -> None:  # P43, BO-055, BO-059, BO-061
    code = "\n".join(f"print({number})  # <&>" for number in range(400))
    text = f"**Look** [here](https://e.org):\n\n```python\n{code}\n```\n\n- א שלום\n- 你好。\n" + "Sentence 😀. " * 3000 + '\x01"' * 9000
    async with people(homeserver, "clew", "ada") as (clew, ada):
        room = await direct(ada, clew)
        async with connected(homeserver.url, clew) as (transport, _):
            whole = await sent(transport, delivery(transport, text, room))
        assert len(whole.parts) > 3
        contents = await ada.until(lambda: len(found := ada.seen(room, clew.id)) == len(whole.parts) and found)
        assert all(len(json.dumps(each, ensure_ascii=False).encode()) < LIMIT + 1000 for each in contents)
        shown = "".join(each["body"] for each in contents)
        for number in range(400):
            assert shown.count(f"print({number})  # <&>") == 1
        assert shown.count("😀") == 3000
        assert "<b>Look</b>" in contents[0]["formatted_body"]
        assert "language-python" in contents[0]["formatted_body"]


async def test_a_part_that_is_sent_again_is_there_once(homeserver: Synapse) -> None:  # P43
    async with people(homeserver, "clew", "ada") as (clew, ada), Gateway(homeserver.url) as gateway:
        room = await direct(ada, clew)
        async with connected(gateway.url, clew) as (transport, _):
            gateway.next["send"].extend([matrix.does_and_drops] * 2)  # aiohttp asks twice
            with pytest.raises(Unknown):
                await transport.send(delivery(transport, "hello", room))
            again = await transport.send(delivery(transport, "hello", room))
            last = await transport.send(replace(delivery(transport, "bye", room), id="other"))
            await ada.until(lambda: last.ref in {each["event_id"] for each in ada.seen(room, clew.id)})
            assert [each["event_id"] for each in ada.seen(room, clew.id)] == [again.ref, last.ref]


async def test_markup_that_is_refused_is_sent_as_it_was_written(homeserver: Synapse) -> None:  # BO-062
    async with people(homeserver, "clew", "ada") as (clew, ada), Gateway(homeserver.url) as gateway:
        room = await direct(ada, clew)
        async with connected(gateway.url, clew) as (transport, _):
            gateway.next["send"].append(matrix.refuses(413, "M_TOO_LARGE"))
            await sent(transport, delivery(transport, "**bold**", room))
            (content,) = await ada.until(lambda: ada.seen(room, clew.id))
            assert (content["body"], "formatted_body" in content) == ("**bold**", False)


async def test_nobody_is_mentioned_by_what_the_model_says(homeserver: Synapse) -> None:  # BO-125
    async with people(homeserver, "clew", "ada") as (clew, ada):
        room = await direct(ada, clew)
        async with connected(homeserver.url, clew) as (transport, _):
            await sent(transport, delivery(transport, f"@room @everyone {ada.id} [x](https://matrix.to/#/{ada.id})", room))
            (content,) = await ada.until(lambda: ada.seen(room, clew.id))
            assert content["m.mentions"] == {}
            assert "@room" in content["body"]


async def test_a_reply_in_a_group_is_one_to_the_question_and_in_a_chat_of_two_it_is_none(homeserver: Synapse) -> None:
    async with people(homeserver, "clew", "ada", "bob") as (clew, ada, bob):
        room, alone = await group(clew, ada, bob), await direct(ada, clew)
        async with connected(homeserver.url, clew) as (transport, _):
            for where in (room, alone):
                asked = await ada.say(where, "hm?")
                await sent(transport, delivery(transport, "hi", where, in_reply_to=asked, context={"sender": ada.id}))
                (content,) = await ada.until(lambda where=where: ada.seen(where, clew.id))  # type: ignore[misc]
                if where == room:
                    assert content["m.relates_to"] == {"m.in_reply_to": {"event_id": asked}}
                    assert content["m.mentions"] == {"user_ids": [ada.id]}
                else:
                    assert "m.relates_to" not in content


async def test_a_429_is_kept_for_its_chat_and_not_for_others(homeserver: Synapse) -> None:  # BO-064
    async with people(homeserver, "clew", "ada") as (clew, ada), Gateway(homeserver.url) as gateway:
        room, other = await direct(ada, clew), await direct(ada, clew)
        async with connected(gateway.url, clew) as (transport, _):
            gateway.next["send"].append(matrix.too_many(40))
            with pytest.raises(Retry) as caught:
                await transport.send(delivery(transport, "hello", room))
            assert caught.value.after == 40
            await sent(transport, delivery(transport, "to another", other))


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (matrix.refuses(403, "M_FORBIDDEN"), Refused),
        (matrix.refuses(401, "M_UNKNOWN_TOKEN", soft_logout=True), Retry),
        (matrix.refuses(500, "M_UNKNOWN"), Unknown),
        (matrix.refuses(503, "M_UNKNOWN"), Retry),
        (matrix.answers(502), Retry),
        (matrix.answers(504), Unknown),
        (matrix.answers(200), Unknown),
        (matrix.drops, Unknown),
        (matrix.hangs, Unknown),
    ],
)
async def test_what_failures_of_a_send_mean(homeserver: Synapse, fault: matrix.Fault, outcome: type[Exception]) -> None:  # P43
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), Gateway(homeserver.url) as gateway:
        room = await direct(ada, clew)
        async with connected(gateway.url, clew, answer_s=1.0 if fault is matrix.hangs else 20.0) as (transport, _):
            gateway.next["send"].extend([fault] * (2 if fault is matrix.drops else 1))  # aiohttp asks twice
            with pytest.raises(outcome) as caught:
                await transport.send(delivery(transport, "hello", room))
            assert clew.token not in str(caught.value)


async def test_what_cannot_be_sent_to_is_refused(homeserver: Synapse) -> None:  # P43, BO-054
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), Gateway(homeserver.url) as gateway:
        left = await ada.room()
        async with connected(gateway.url, clew) as (transport, _):
            for room, why in (("#alias:test.example", "id of a room"), (left, "M_FORBIDDEN")):
                with pytest.raises(Refused, match=why):
                    await transport.send(delivery(transport, "hello", room))
            await gateway.down()
            with pytest.raises(Retry):
                await transport.send(delivery(transport, "hello", await direct(ada, clew)))


def encryption() -> dict[str, Any]:
    return {"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}


async def test_typing_is_shown(homeserver: Synapse) -> None:
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), Gateway(homeserver.url) as gateway:
        room = await direct(ada, clew)
        async with connected(gateway.url, clew) as (transport, _):
            await transport.hint(Address("matrix", room), Typing())
            await gateway.until(lambda: bool(gateway.of("typing")))
            (method, _, _, body), *_ = gateway.of("typing")
            assert (method, body) == ("PUT", {"typing": True, "timeout": 30_000})
            for fault in (matrix.too_many(5), matrix.drops, matrix.answers(502)):
                gateway.next["typing"].append(fault)
                other = await direct(ada, clew)
                await transport.hint(Address("matrix", other), Typing())
                await gateway.until(lambda: not gateway.next["typing"])
            assert isinstance(await transport.send(delivery(transport, "the reply", room)), Sent)


# While the model speaks ------------------------------------------------------------------------------------------


def preview(text: str, ref: str | None = None) -> Preview:
    return Preview("turn1", text, text, "", ref, "k3v9", {})


async def test_what_is_being_said_is_one_message_that_becomes_the_reply(homeserver: Synapse) -> None:  # P43
    async with people(homeserver, "clew", "ada") as (clew, ada):
        room = await direct(ada, clew)
        to = Address("matrix", room)
        async with connected(homeserver.url, clew) as (transport, inbox):
            ref = await transport.hint(to, preview("**half**"))
            assert ref is not None
            assert await transport.hint(to, preview("**half**")) == ref  # its answer was lost with a crash
            for text in ("**half** a", "**half** a sen", "**half** a sen"):
                assert await transport.hint(to, preview(text, ref)) == ref
            long = "**half** a sentence. " * 2000
            await sent(transport, first := delivery(transport, long, room, preview_ref=ref))
            contents = await ada.until(lambda: len(found := ada.seen(room, clew.id)) == len(first.parts) and found)
            assert contents[0]["event_id"] == ref
            assert contents[0]["body"].startswith("half a sentence. half")
            assert "<b>half</b> a sentence." in contents[0]["formatted_body"]
            assert await ada.until(lambda: "".join(each["body"] for each in ada.seen(room, clew.id)).count("sentence") == 2000)
            edits = [each for each in ada.events[room] if "m.new_content" in each["content"]]
            assert len(edits) == 3
            assert all(each["content"]["m.mentions"] == {} for each in edits)
            assert inbox.rows == {}


async def test_a_preview_of_no_reply_is_taken_back_and_one_that_was_deleted_is_replaced(homeserver: Synapse) -> None:
    async with people(homeserver, "clew", "ada") as (clew, ada):
        room = await direct(ada, clew)
        to = Address("matrix", room)
        async with connected(homeserver.url, clew) as (transport, inbox):
            ref = await transport.hint(to, preview("half"))
            await transport.send(replace(delivery(transport, "", room, preview_ref=ref), parts=()))
            await ada.until(lambda: ref in [each.get("redacts") or each["content"].get("redacts") for each in ada.events.get(room, ())])
            await ada.say(room, "behind it")
            await inbox.until(lambda: "behind it" in inbox.texts)
            with pytest.raises(Gone):
                await transport.send(delivery(transport, "the reply", room, preview_ref=ref))
            with pytest.raises(Refused):
                await transport.hint(to, preview("more", ref))


async def test_what_failures_of_a_preview_mean(homeserver: Synapse) -> None:  # P43, BO-064
    async with people(homeserver, "clew", "ada", watching=False) as (clew, ada), Gateway(homeserver.url) as gateway:
        room = await direct(ada, clew)
        async with connected(gateway.url, clew) as (transport, _):
            for fault, outcome in (
                (matrix.too_many(7), Retry),
                (matrix.refuses(403, "M_FORBIDDEN"), Refused),
                (matrix.answers(504), Unknown),
            ):
                gateway.next["send"].append(fault)
                with pytest.raises(outcome):
                    await transport.hint(Address("matrix", room), preview("half"))


# Doctor and config -----------------------------------------------------------------------------------------------


async def test_the_doctor_asks_the_homeserver(homeserver: Synapse, monkeypatch: pytest.MonkeyPatch) -> None:
    async def found(url: str, token: str) -> list[str]:
        assert plugin.examine is not None
        return [each.text for each in await plugin.examine("matrix", Settings(base_url=url, token=SecretStr(token)))]

    async with people(homeserver, "clew", watching=False) as (clew,), Gateway(homeserver.url) as gateway:
        assert await found(gateway.url, clew.token) == []
        assert await found(gateway.url, "wrong") == [BAD_TOKEN]
        assert await found(gateway.url, "") == [NO_ACCOUNT]
        assert plugin.examine is not None
        with_password = Settings(base_url=gateway.url, user=clew.id, password=SecretStr(PASSWORD))
        assert await plugin.examine("matrix", with_password) == []
        gateway.next["login"].append(matrix.answers(200, '{"flows": [{"type": "m.login.sso"}]}'))
        assert [each.text for each in await plugin.examine("matrix", with_password)] == [NO_PASSWORDS]
        secret = await clew.room(initial_state=[encryption()])
        assert await found(gateway.url, clew.token) == []
        monkeypatch.setitem(sys.modules, "nio", None)
        assert await found(gateway.url, clew.token) == [f"the room {secret} is encrypted, and clew cannot read it"]
        await gateway.down()
        (silent,) = await found(gateway.url, clew.token)
        assert "no connection to the homeserver" in silent


@pytest.mark.parametrize(
    "settings",
    [
        {"user": "clew"},
        {"base_url": "ftp://x"},
        {"groups": "some"},
        {"prefix": ""},
        {"invites": "some"},
        {"password": SecretStr("x")},
        {"user": "@a:b", "password": SecretStr("x"), "token": SecretStr("x")},
    ],
)
async def test_settings_that_cannot_be_are_errors(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**settings)
