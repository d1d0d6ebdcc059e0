"""Who is let in, by whom, as what; who is the same person; and how it is taken away."""

import re
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from clew import service
from clew.access import told
from clew.config import Access, Person
from clew.owner import TOLD
from clew.store import AccessEffect, PersonRole, links
from tests.databases import BOTH
from tests.emulators.scripts import say
from tests.emulators.server import Stall
from tests.integration.engine import PEOPLE, Clock, World, calling, engine, system_text, tool

pytestmark = BOTH

OWNED = {**PEOPLE, "ada": Person(role="owner", identities=("desk:ada",))}


def owned(world: World, unknown: str = "pair") -> None:
    """Let ada be the owner."""
    world.config = world.config.model_copy(update={"people": OWNED, "access": Access.model_validate({"unknown": unknown})})


def said(world: World, chat: str) -> list[str]:
    return [delivery.text for delivery in world.desk.sent if delivery.address.chat == chat]


async def code_of(world: World, chat: str = "mallory", text: str = "let me in") -> str:
    """The code that a stranger is told."""
    await world.desk.accept(world.desk.message(text, chat))
    await world.desk.until(lambda: bool(said(world, chat)))
    found = re.search(r"runs me: (\w{8})", said(world, chat)[0])
    assert found
    return found[1]


async def linking(world: World, chat: str = "bob") -> str:
    """A link code, as it is shown."""
    found = re.search(r"[A-Z2-9]{4}-[A-Z2-9]{4}", await world.desk.ask("/link", chat))
    assert found
    return found[0]


# Letting in ------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_the_owner_is_told_once_and_lets_in_from_their_chat(tmp_path: Path) -> None:  # P46, BO-101
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            await world.desk.ask("hello")
            code = await code_of(world)
            await world.desk.accept(world.desk.message("hello?", "mallory"), world.desk.message("anybody?", "mallory"))
            await world.idle()
            asking = [text for text in said(world, "ada") if "asks to talk" in text]
            assert len(asking) == 1
            assert f"desk:mallory asks to talk to me. To let them in: /access approve {code}" in asking[0]
            assert said(world, "mallory") == [f"I do not know you yet. Give this code to whoever runs me: {code}"]
            with capture_logs() as logs:
                answer = await world.desk.ask(f"/access approve {code} as Carol guest")
                await world.desk.until(lambda: said(world, "mallory")[-1] == "I know you now. Write to me.")
                await world.idle()
            assert answer == "desk:mallory may talk to clew now, as guest, called Carol."
            paired = [(line["identity"], line["role"]) for line in logs if line["event"] == "access.paired"]
            assert paired == [("desk:mallory", "guest")]
            assert code not in str(logs)
            assert "thank you" in await world.desk.ask("thank you", "mallory")
            assert "Carol (desk:mallory), guest: desk:mallory; wrote last: 20" in await world.desk.ask("/access people")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("unknown", "line", "replies", "people"),
    [
        ("deny", "unknown senders are ignored", [], 0),
        ("pair", "unknown senders get a code once; `clew access approve CODE` lets them in", ["I do not know you yet."], 0),
        ("allow", "unknown senders are let in as guests", ["answer", "answer"], 1),
    ],
)
async def test_what_is_said_of_strangers_at_start_is_what_becomes_of_them(
    tmp_path: Path, unknown: str, line: str, replies: list[str], people: int
) -> None:  # P46, BO-101, BO-102
    async with engine(tmp_path) as world:
        owned(world, unknown)
        async with world.running():
            assert (await world.service.status())["access"] == line
            await world.desk.accept(world.desk.message("hello", "mallory"))
            await world.idle()
            await world.desk.accept(world.desk.message("is anybody there?", "mallory"))
            await world.idle()
            heard = said(world, "mallory")
            assert len(heard) == len(replies)
            assert all(words in text for words, text in zip(replies, heard, strict=True))
            assert len(world.model.calls) == 2 * people
            strangers = [each for each in await world.store.people() if each.id == "desk:mallory"]
            assert [each.role for each in strangers] == ["guest"] * people


@pytest.mark.asyncio
async def test_many_strangers_are_told_of_in_a_few_lines(tmp_path: Path) -> None:  # P46
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            await world.desk.ask("hello")
            for number in range(TOLD + 5):
                await code_of(world, f"stranger{number}", f"it is me, number {number}")
            await world.idle()
            assert len([text for text in said(world, "ada") if "asks to talk" in text]) == TOLD
            listed = (await world.desk.ask("/access")).splitlines()
            assert len([line for line in listed if "wrote once" in line]) == TOLD + 5


@pytest.mark.asyncio
async def test_whoever_is_turned_away_stays_away(tmp_path: Path) -> None:  # P46
    for unknown in ("pair", "allow"):
        async with engine(tmp_path / unknown) as world:
            (tmp_path / unknown).mkdir()
            owned(world, unknown)
            async with world.running():
                assert await world.desk.ask("/access deny desk:mallory") == "desk:mallory may not talk to clew."
                (receipt,) = await world.desk.accept(world.desk.message("hello", "mallory"))
                await world.idle()
                assert (receipt.status, said(world, "mallory"), world.model.calls) == ("refused", [], [])


@pytest.mark.asyncio
async def test_a_request_expires_with_its_code(tmp_path: Path) -> None:  # P46
    clock = Clock()
    async with engine(tmp_path, clock=clock) as world:
        owned(world)
        async with world.running():
            code = await code_of(world)
            clock.at += 7 * 86_400 + 60
            assert "may have expired" in await world.desk.ask(f"/access approve {code}")
            assert "Nobody waits" in await world.desk.ask("/access")
            await world.desk.accept(world.desk.message("me again", "mallory"))
            await world.desk.until(lambda: len(said(world, "mallory")) == 2)
            assert code not in said(world, "mallory")[1]


@pytest.mark.asyncio
@pytest.mark.parametrize("role", ["member", "guest"])
async def test_only_owners_decide_who_may(tmp_path: Path, role: PersonRole) -> None:  # P46
    async with engine(tmp_path) as world:
        people = {**OWNED, "bob": Person(role=role, identities=("desk:bob",))}
        world.config = world.config.model_copy(update={"people": people})
        async with world.running():
            code = await code_of(world)
            asked = (f"/access approve {code} as Eve owner", f"/access deny {code}", "/access", "/access role bob owner", "/access people")
            for words in asked:
                assert await world.desk.ask(words, "bob") == "/access is not for you here."
            assert "/access" not in await world.desk.ask("/help", "bob")
            assert [each.state for each in await world.store.access_requests()] == ["open"]


@pytest.mark.asyncio
async def test_who_may_is_nothing_for_a_group(tmp_path: Path) -> None:  # P46
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            for words in ("/access", "/access people", "/access approve X", "/link", "/unlink", "/login", "/logout"):
                assert "only for a chat of your own" in await world.desk.ask(words, "team", sender="ada", direct=False)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("approve", "It is written so"),
        ("approve NOSUCHCD", "Nobody was given the code NOSUCHCD. It may have expired. `/access` in a chat"),
        ("approve desk:carol as bob", "bob is somebody already"),
        ("approve desk:carol as Owner member", "Owner is a role"),
        ("approve desk:carol called Carol", "It is written so"),
        ("approve desk:bob", "desk:bob is bob in the config. Change it there."),
        ("role bob owner", "bob is in the config. Change it there."),
        ("role carol boss", "boss is no role"),
        ("remove ada", "ada is in the config. Change it there."),
        ("remove nobody", "There is no person 'nobody'"),
        ("unlink desk:bob", "desk:bob is bob in the config. Change it there."),
        ("link bob desk", "'desk' is no identity"),
        ("link bob desk:\u202eeve", "is no identity"),
        ("approve desk:\u202eeve", "Nobody was given the code"),
        ("link bob desk:eve", "desk:eve is eve in the config. Change it there."),
        ("dance", "It is written so"),
    ],
)
async def test_what_cannot_be_is_said_and_changes_nothing(tmp_path: Path, words: str, answer: str) -> None:  # P46
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            before = [(each.id, each.role, each.name) for each in await world.store.people()]
            assert answer in await world.desk.ask(f"/access {words}")
            assert [(each.id, each.role, each.name) for each in await world.store.people()] == before


@pytest.mark.asyncio
@pytest.mark.parametrize("again", ["JOSE\u0301", "josé", "ＪＯＳÉ"])
async def test_a_name_is_one_however_it_is_written(tmp_path: Path, again: str) -> None:  # P46
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            await world.desk.ask("/access approve desk:carol as José")
            assert "José is somebody already" in await world.desk.ask(f"/access approve desk:dave as {again}")
            assert await world.desk.ask(f"/access role {again} guest") == "José is guest now."


# Taking it away --------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_whoever_is_removed_gets_no_further_model_call(tmp_path: Path) -> None:  # P46
    stall = Stall(after=4)
    async with engine(tmp_path, lambda body: say("a very long answer " * 20)) as world:
        owned(world)
        async with world.running():
            await world.desk.ask("/access approve desk:mallory as Carol")
            await world.desk.ask("/jobs add every 6h What is new?", "mallory")
            world.model.faults.append(stall)
            await world.desk.accept(world.desk.message("talk at length", "mallory"))
            quiet = "INSERT INTO boundaries (session, reason, seq, due) VALUES (?, 'quiet', 1, 9e9)"
            session = await world.session("mallory")
            await world.store._db.write(lambda db: db.execute(quiet, (session,)).rowcount)
            await stall.reached.wait()
            await world.desk.accept(world.desk.message("and this", "mallory"), world.desk.message("and that", "mallory"))
            with capture_logs() as logs:
                answer = told(await world.service.change_access(AccessEffect("remove", "Carol")))
            assert "Carol may not talk to clew any more" in answer
            assert "Their jobs are off (1)." in answer
            assert [line["identity"] for line in logs if line["event"] == "access.denied"] == ["desk:mallory"]
            stall.until.set()
            (receipt,) = await world.desk.accept(world.desk.message("still there?", "mallory"))
            await world.idle()
            assert receipt.reason == "unknown sender"
            assert len(world.model.calls) == 1
            assert await world.store.next_boundary(0.0) is None, "their thread is compacted by nobody in the background"
            assert [job.enabled for job in await world.store.jobs()] == [False]
            assert said(world, "mallory")[-1] == "Stopped."


@pytest.mark.asyncio
async def test_an_owners_yes_for_good_goes_with_their_role(tmp_path: Path) -> None:  # P46
    async def pay(context: object, note: str) -> str:
        return "paid"

    paying = tool("pay", pay)
    asking = type(paying)(paying.name, paying.description, paying.Arguments, paying.run, asks=True)
    async with engine(tmp_path, calling(("pay", {"note": "x"})), tools=[asking]) as world:
        owned(world)
        async with world.running():
            await world.desk.ask("/access approve desk:mallory")
            question = world.desk.message("pay it", "mallory")
            await world.desk.accept(question)
            await world.desk.until(lambda: "pay" in "".join(said(world, "mallory")))
            await world.desk.accept(world.desk.message("always", "mallory"))
            await world.desk.until(lambda: said(world, "mallory")[-1] == "done")
            assert len(await world.store.standing()) == 1
            assert await world.desk.ask("/access role desk:mallory guest") == "desk:mallory is guest now."
            assert await world.store.standing() == []
            assert "Only members and owners may have jobs" in await world.desk.ask("/jobs add every 6h What?", "mallory")


# Being one person ------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("unknown", ["pair", "allow"])
async def test_a_code_from_another_account_makes_it_the_same_person(tmp_path: Path, unknown: str) -> None:  # P46, P33
    async with engine(tmp_path) as world:
        owned(world, unknown)
        async with world.running():
            await world.desk.ask("my boat is called Halcyon", "bob")
            code = await linking(world)
            with capture_logs() as logs:
                assert await world.desk.ask(code.lower(), "bob2") == (
                    "You are bob here too now: I know what you told me elsewhere, and there what you tell me here."
                )
            assert [(line["identity"], line["how"]) for line in logs if line["event"] == "access.paired"] == [("desk:bob2", "linked")]
            await world.desk.until(lambda: said(world, "bob")[-1] == "desk:bob2 is you too now. If that was not you: /unlink desk:bob2")
            assert "/unlink desk:bob2" not in said(world, "bob2")[-1]
            await world.desk.ask("what is my boat Halcyon called?", "bob2")
            assert "my boat is called Halcyon" in system_text(world.replies[-1])
            assert code not in str(logs)
            for session in await world.store.sessions(None, 100):
                assert code.replace("-", "")[:4] not in str(await world.store.transcript(session.id))
            # The code is spent.
            await world.desk.accept(world.desk.message(code, "bob3"))
            await world.idle()
            assert [each.identity for each in (await world.store.known("bob")).identities] == ["desk:bob", "desk:bob2"]


@pytest.mark.asyncio
async def test_the_config_stays_as_it_is_beside_a_link(tmp_path: Path) -> None:  # P46
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            await world.desk.ask(await linking(world), "bob2")
        async with world.running():
            assert "hello" in await world.desk.ask("hello", "bob2")
            bob = await world.store.known("bob")
            assert [(each.identity, each.origin) for each in bob.identities] == [("desk:bob2", "linked"), ("desk:bob", "config")]
        world.config = world.config.model_copy(update={"people": {name: OWNED[name] for name in ("ada", "eve")}})
        async with world.running():
            (receipt,) = await world.desk.accept(world.desk.message("hello again", "bob2"))
            assert receipt.reason == "unknown sender", "who is taken out of the config has no account left"


@pytest.mark.asyncio
async def test_an_account_is_given_up_by_its_person(tmp_path: Path) -> None:  # P46, P33
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            await world.desk.ask(await linking(world), "bob2")
            await world.desk.ask("the safe opens with Zanzibar", "bob2")
            await world.desk.ask("/jobs add every 6h What is new?", "bob2")
            assert "is not yours" in await world.desk.ask("/unlink desk:bob2", "eve")
            assert "in the config" in await world.desk.ask("/unlink desk:bob", "bob")
            assert await world.desk.ask("/unlink desk:bob2", "bob") == (
                "desk:bob2 is not bob any more: clew does not know it. Their jobs are off (1)."
            )
            code = await code_of_again(world, "bob2")
            # Somebody else has the account now: of what was said there before they see nothing, in no prompt and by no search.
            await world.desk.ask(f"/access approve {code}")
            await world.desk.ask("what opens the safe, is it Zanzibar?", "bob2")
            assert "opens with Zanzibar" not in str(world.replies[-1])
            assert "Nothing was found" in await world.desk.ask("/recall Zanzibar safe", "bob2")
            old = next(each.id for each in await world.store.sessions(None, 99) if each.address.startswith("desk:bob2#"))
            assert old not in await world.desk.ask("/sessions", "bob2")
            assert "no session" in await world.desk.ask(f"/resume {old}", "bob2")
            scope = await world.store.scope_for(person="desk:bob2")
            secret = (await world.store.transcript(old))[0]
            assert "Zanzibar" in secret.text
            assert await world.store.around(scope, secret.id, 5, 5) == []


@pytest.mark.asyncio
@pytest.mark.parametrize("chat", ["ada2", "channel7"], ids=["an address that names the account", "a channel of the platform's"])
async def test_nothing_of_its_person_is_said_to_an_account_that_was_given_up(tmp_path: Path, chat: str) -> None:  # P33, P46
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            code = await linking(world, "ada")
            await world.desk.ask(code, chat, sender="ada2")
            await world.desk.ask("/jobs add every 6h What is new?", chat, sender="ada2")
            await world.desk.ask("I am here now", chat, sender="ada2")
            gone = await world.store.change_access(AccessEffect("unlink", "desk:ada2"), world.service.time.wall())
            assert gone.jobs == 1
            assert [job.enabled for job in await world.store.jobs()] == [False]
            before = len(said(world, chat))
            await code_of(world)
            await world.desk.until(lambda: "asks to talk" in said(world, "ada")[-1])
            assert len(said(world, chat)) == before
        async with world.running():  # nor after a start
            await code_of(world, "trudy")
            await world.desk.until(lambda: "desk:trudy asks" in said(world, "ada")[-1])
            assert await world.desk.ask("still I", "ada")
            code = await linking(world, "ada")
            await world.desk.ask(code, chat, sender="ada2")  # the same person's once more, and heard last
            await world.desk.ask("here again", chat, sender="ada2")
            await code_of(world, "victor")
            await world.desk.until(lambda: "desk:victor asks" in said(world, chat)[-1])


async def code_of_again(world: World, chat: str) -> str:
    before = len(said(world, chat))
    await world.desk.accept(world.desk.message("who are you?", chat))
    await world.desk.until(lambda: len(said(world, chat)) > before)
    found = re.search(r"runs me: (\w{8})", said(world, chat)[-1])
    assert found
    return found[1]


@pytest.mark.asyncio
async def test_a_code_is_good_for_minutes_and_the_newest_one_only(tmp_path: Path) -> None:  # P46
    clock = Clock()
    async with engine(tmp_path, clock=clock) as world:
        owned(world)
        async with world.running():
            first, second = await linking(world), await linking(world)
            (receipt,) = await world.desk.accept(world.desk.message(first, "bob2"))
            assert receipt.status == "refused"
            clock.at += links.LASTS + 1
            (receipt,) = await world.desk.accept(world.desk.message(second, "bob2"))
            assert receipt.status == "refused"
            assert [each.identity for each in (await world.store.known("bob")).identities] == ["desk:bob"]


@pytest.mark.asyncio
async def test_a_code_where_others_read_it_is_void(tmp_path: Path) -> None:  # P46
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            await world.desk.ask("hello", "team", sender="ada", direct=False)
            code = await linking(world)
            await world.desk.accept(world.desk.message(code, "team", sender="mallory", direct=False))
            await world.desk.until(lambda: "void now" in said(world, "bob")[-1])
            (receipt,) = await world.desk.accept(world.desk.message(code, "mallory"))
            assert receipt.status == "refused"
            code = await linking(world)
            assert "It is void now" in await world.desk.ask(code, "team", sender="eve", direct=False)
            (receipt,) = await world.desk.accept(world.desk.message(f"/link {code}", "mallory"))
            assert receipt.status == "refused"
            code = await linking(world)
            await world.desk.accept(world.desk.message(code, "team", sender="eve", direct=False, kind="context"))
            await world.desk.until(lambda: said(world, "team")[-1].startswith("That code stood where others read it"))
            (receipt,) = await world.desk.accept(world.desk.message(code, "mallory"))
            assert receipt.status == "refused"
            assert not [each for each in await world.store.people() if len(each.identities) > 1 and each.id != "ada"]


@pytest.mark.asyncio
async def test_a_code_joins_no_two_people_and_no_two_pasts(tmp_path: Path) -> None:  # P33
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            assert "I know you here already" in await world.desk.ask(await linking(world), "eve")
            assert "I know you here already" in await world.desk.ask(await linking(world), "bob")
            await world.desk.ask("/access approve desk:dora")
            await world.desk.ask("my diary begins with Xylophone", "dora")
            await world.desk.ask("/access remove desk:dora")
            code = await linking(world)
            # Turned away by the owner: no code of anybody else's lets them in again.
            (receipt,) = await world.desk.accept(world.desk.message(code, "dora"))
            assert receipt.status == "refused"
        async with world.file() as store:
            await store._db.write(lambda db: db.execute("DELETE FROM access_requests").rowcount)
        async with world.running():
            code = await linking(world)
            await world.desk.accept(world.desk.message(code, "dora"))
            await world.desk.until(lambda: "somebody else spoke with me from there" in said(world, "bob")[-1])
            assert [each.identity for each in (await world.store.known("bob")).identities] == ["desk:bob"]
            # The owner may say so.
            assert await world.desk.ask("/access link bob desk:dora") == "desk:dora is bob too now."
            await world.desk.ask("how does the diary begin, with Xylophone?", "bob")
            assert "my diary begins with Xylophone" in str(world.replies[-1])


@pytest.mark.asyncio
async def test_people_are_linked_by_nobody_where_the_config_alone_decides(tmp_path: Path) -> None:  # P46, BO-102
    async with engine(tmp_path) as world:
        owned(world, "deny")
        async with world.running():
            assert "only the config says who is who" in await world.desk.ask("/link", "bob")


# Guessing --------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_guess_is_answered_like_any_other_message(tmp_path: Path) -> None:  # P46
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            code = await linking(world)
            wrong = [f"{links.ALPHABET[n] * 4}-{links.ALPHABET[-n - 1] * 4}" for n in range(links.TRIES)]
            assert code not in wrong
            for guess in wrong:
                (receipt,) = await world.desk.accept(world.desk.message(guess, "mallory"))
                assert (receipt.status, receipt.reason) == ("refused", "unknown sender")
            # Too many: the right one is not looked at either, and nothing tells it from a wrong one.
            (receipt,) = await world.desk.accept(world.desk.message(code, "mallory"))
            assert (receipt.status, receipt.reason) == ("refused", "unknown sender")
            await world.idle()
            assert len(said(world, "mallory")) == 1
            assert "runs me" in said(world, "mallory")[0]
            assert "bob here too" in await world.desk.ask(code, "bob2"), "others are not kept from it"


@pytest.mark.asyncio
async def test_guesses_of_many_accounts_are_counted_together(tmp_path: Path) -> None:  # P46
    clock = Clock()
    async with engine(tmp_path, clock=clock) as world:
        owned(world)
        async with world.running():
            code = await linking(world)
            guesses = [world.desk.message("AAAABBBB", f"mallory{number}") for number in range(links.ALL_TRIES)]
            await world.desk.accept(*guesses)
            (receipt,) = await world.desk.accept(world.desk.message(code, "bob2"))
            assert receipt.status == "refused"
            assert "none is taken just now" in await world.desk.ask("/link", "bob")
            clock.at += links.ALL_WINDOW + 60
            assert "bob here too" in await world.desk.ask(await linking(world), "bob2")


@pytest.mark.asyncio
@pytest.mark.parametrize("sender", ["ad\x00a", "ada\x1b", "ada\n", "\u202eada\x07", " ada", "ADA", "ada/", "аda", "desk:ada", "ada\ud800"])
async def test_a_forged_name_is_nobodys(tmp_path: Path, sender: str) -> None:  # P46
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            (receipt,) = await world.desk.accept(world.desk.message("/access approve desk:mallory owner", "mallory", sender=sender))
            assert receipt.reason == "unknown sender"
            await world.idle()
            assert "desk:mallory" not in [each.id for each in await world.store.people()]


@pytest.mark.asyncio
async def test_the_role_of_everybody_is_enforced_for_commands_and_schedules(tmp_path: Path) -> None:  # P46
    people = {**OWNED, "eve": Person(role="guest", identities=("desk:eve",))}
    async with engine(tmp_path, calling(("schedule_create", {"prompt": "x", "every": "6h"}))) as world:
        world.config = world.config.model_copy(update={"people": people})
        async with world.running():
            helped = {name: await world.desk.ask("/help", name) for name in ("ada", "bob", "eve")}
            assert [("/access" in text, "/link" in text, "/memory" in text) for text in helped.values()] == [
                (True, True, True),
                (False, True, True),
                (False, False, True),
            ]
            assert await world.desk.ask("/link", "eve") == "/link is not for you here."
            assert "Only members and owners may have jobs" in await world.desk.ask("/jobs add every 6h hello", "eve")
            await world.desk.ask("remind me", "eve")
            assert await world.store.jobs() == []


@pytest.mark.asyncio
async def test_whoever_was_let_in_and_is_named_in_the_config_later_goes_on_as_before(tmp_path: Path) -> None:  # P5, P33
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            await world.desk.ask("/access approve desk:dora as Dora")
            await world.desk.ask("the cat is called Quixote", "dora")
            await world.desk.ask("/memory set style short", "dora")
            await world.desk.ask("/jobs add every 6h What is new?", "dora")
            await world.desk.ask(await linking(world, "dora"), "dora2")
            session = await world.session("dora")
        named = {**OWNED, "dorothy": Person(role="member", identities=("desk:dora",))}
        world.config = world.config.model_copy(update={"people": named})
        async with world.running():
            assert "style: short" in await world.desk.ask("/memory", "dora")
            await world.desk.ask("and the dog?", "dora")
            assert await world.session("dora") == session
            assert {each.id for each in await world.store.people()} == {"ada", "bob", "eve", "dorothy"}
            dorothy = await world.store.known("dorothy")
            assert {each.identity: each.origin for each in dorothy.identities} == {"desk:dora": "config", "desk:dora2": "linked"}
            assert [job.person for job in await world.store.jobs()] == ["dorothy"]


@pytest.mark.asyncio
@pytest.mark.parametrize("restart", [False, True])
async def test_whoever_is_taken_out_of_the_config_gets_no_further_model_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restart: bool
) -> None:  # P46
    monkeypatch.setattr(service, "GRACE", 0.1)
    stall = Stall(after=4)
    async with engine(tmp_path, lambda body: say("a very long answer " * 20)) as world:
        owned(world)
        without = world.config.model_copy(update={"people": {name: OWNED[name] for name in ("ada", "eve")}})
        async with world.running():
            world.model.faults.append(stall)
            await world.desk.accept(world.desk.message("talk at length", "bob"))
            await stall.reached.wait()
            await world.desk.accept(world.desk.message("and this", "bob"))
            if not restart:
                await world.service.reload(without)
                stall.until.set()
                await world.idle()
        stall.until.set()
        world.config = without
        async with world.running():
            await world.idle()
            assert said(world, "bob") == ["Stopped."]
        assert len(world.model.calls) == 1


@pytest.mark.asyncio
async def test_another_name_in_the_config_is_no_other_person(tmp_path: Path) -> None:  # P5
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            await world.desk.ask("the cat is called Quixote", "bob")
            await world.desk.ask(await linking(world), "bob2")
            await world.desk.ask("/jobs add every 6h What is new?", "bob")
            session = await world.session("bob")
            renamed = {name: OWNED[name] for name in ("ada", "eve")} | {
                "robert": Person(role="member", identities=("desk:bob", "desk:rob"))
            }
            await world.service.reload(world.config.model_copy(update={"people": renamed}))
            await world.desk.ask("and the dog?", "bob")
            assert await world.session("bob") == session
            await world.desk.ask("what is the cat Quixote called?", "bob2")
            assert "the cat is called Quixote" in str(world.replies[-1])
            assert [(job.person, job.enabled) for job in await world.store.jobs()] == [("robert", True)]
            assert [each.identity for each in (await world.store.known("robert")).identities] == ["desk:bob2", "desk:bob", "desk:rob"]


@pytest.mark.asyncio
async def test_an_account_merged_by_the_owner_brings_its_chats_and_jobs(tmp_path: Path) -> None:  # P33
    async with engine(tmp_path) as world:
        owned(world)
        async with world.running():
            await world.desk.ask("/access approve desk:dora")
            await world.desk.ask("the cat is called Quixote", "dora")
            await world.desk.ask("/jobs add every 6h What is new?", "dora")
            await world.service.change_access(AccessEffect("link", "bob", identity="desk:dora"))
            assert {each.id for each in await world.store.people()} == {"ada", "bob", "eve"}
            assert [job.person for job in await world.store.jobs()] == ["bob"]
            await world.desk.ask("what is the cat Quixote called?", "bob")
            assert "the cat is called Quixote" in str(world.replies[-1])
