"""`clew docs` with and without a daemon, and the API behind it."""

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.context.chunks import Chunk
from clew.store.documents import NewDocument
from clew.store.sqlite import SqliteStore
from tests.files import pdf
from tests.integration.test_cli_memory import ENV, SHELL
from tests.integration.web_harness import Clew, Tab, running, settings
from tests.unit.test_cli import CLEW

GARDEN = "# The garden\n\n## Watering\n\nRoses want water in the morning.\n\n## Gate\n\nThe key hangs behind the shed.\n"


class Command:
    """`clew docs` with a config of its own and nobody running."""

    def __init__(self, config: Path, process: "subprocess.Popen[str]") -> None:
        self.config = config
        self._process = process

    def __call__(self, *args: str, group: str = "docs") -> tuple[int, str, str]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([group, args[0], "--config", str(self.config), *args[1:]]) + "\n")
        self._process.stdin.flush()
        code, out, err = json.loads(self._process.stdout.readline())
        return code, out, err

    def ok(self, *args: str, group: str = "docs") -> str:
        code, out, err = self(*args, group=group)
        assert code == 0, err
        return out


@pytest.fixture
def docs(tmp_path: Path) -> Iterator[Command]:
    path = tmp_path / "clew.yaml"
    people = "people: {ada: {role: owner}, bob: {}}"
    path.write_text(
        f"data_dir: {tmp_path / 'data'}\nproviders: {{none: {{kind: offline}}}}\nprojects: {{garden: ['web:local']}}\n{people}\n"
        "limits: {attachment_bytes: 100KiB}\n"
    )
    with subprocess.Popen([sys.executable, "-c", SHELL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV) as process:
        yield Command(path, process)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with documents in it, and with what is none."""
    found = tmp_path / "papers"
    found.mkdir()
    (found / "garden.md").write_text(GARDEN)
    (found / "boiler.pdf").write_bytes(pdf(["", "The boiler is bled in January."]))
    (found / "broken.txt").write_bytes(b"caf\xe9")
    (found / "picture.png").write_bytes(b"\x89PNG")
    (found / "out.md").symlink_to("/etc/hostname")
    return found


def test_documents_are_added_listed_searched_and_removed(docs: Command, folder: Path) -> None:  # P41
    assert docs("list")[0] == docs("search", "roses")[0] == 3, "nothing is stored yet"
    code, out, err = docs("add", str(folder))
    assert code == 1
    assert [line.rpartition(" ")[0] for line in out.splitlines()] == ["added: boiler.pdf (1 passage)", "added: garden.md (2 passages)"]
    assert err.startswith(f"{folder}/broken.txt: not added: it is no UTF-8 text: byte 0xe9 in line 1. Write it in UTF-8")
    assert docs.ok("search", "when are roses watered") == "[garden.md, The garden › Watering]\n    Roses want water in the morning.\n"
    [found] = json.loads(docs.ok("search", "boiler", "--json"))
    assert (found["passage"]["name"], found["passage"]["place"], found["why"]) == ("boiler.pdf", "page 2", ["boiler"])
    listed = json.loads(docs.ok("list", "--json"))
    assert [(each["name"], each["scope"], each["chunks"]) for each in listed] == [
        ("boiler.pdf", "user:ada", 1),
        ("garden.md", "user:ada", 2),
    ]
    assert docs.ok("list").splitlines()[0].split() == ["ID", "NAME", "WHOSE", "PASSAGES", "UPDATED", "SOURCE"]
    assert docs.ok("check", group="db").endswith(": ok\n")
    assert docs.ok("remove", str(folder / "garden.md"), listed[0]["id"][:6]) == "removed: garden.md\nremoved: boiler.pdf\n"
    assert docs("search", "roses") == (3, "", "clew: Nothing was found for 'roses'.\n")
    assert docs("list") == (0, "", "There are no documents.\n")
    assert (folder / "garden.md").read_text() == GARDEN
    assert docs("remove", listed[0]["id"])[0] == 3


def test_the_same_again_is_left_as_it_is_and_a_change_keeps_its_id(docs: Command, folder: Path) -> None:  # P41
    path = folder / "garden.md"
    [first] = json.loads(docs.ok("add", str(path), "--json"))
    [again] = json.loads(docs.ok("add", str(path), "--json"))
    path.write_text(GARDEN.replace("shed", "house"))
    [changed] = json.loads(docs.ok("add", str(path), "--json"))
    assert [each["state"] for each in (first, again, changed)] == ["added", "unchanged", "changed"]
    assert first["document"]["id"] == again["document"]["id"] == changed["document"]["id"]
    assert "house" in docs.ok("search", "where is the key")
    assert docs("search", "shed")[0] == 3


def test_documents_are_the_owners_a_persons_or_a_projects(docs: Command, folder: Path) -> None:  # P41, P33
    docs.ok("add", str(folder / "garden.md"))
    docs.ok("add", str(folder / "boiler.pdf"), "--project", "garden")
    docs.ok("add", str(folder / "boiler.pdf"), "--person", "bob")
    roses, boiler = ("search", "roses"), ("search", "boiler")
    assert docs.ok(*roses, "--person", "ada") == docs.ok(*roses)
    assert docs(*roses, "--person", "bob")[0] == docs(*roses, "--project", "garden")[0] == docs(*boiler, "--person", "ada")[0] == 3
    assert docs.ok(*boiler, "--project", "garden") == docs.ok(*boiler, "--person", "bob")
    assert len(docs.ok(*boiler).splitlines()) == 4
    assert [each["scope"] for each in json.loads(docs.ok("list", "--json", "--project", "garden"))] == ["project:garden"]
    code, _, err = docs("remove", str(folder / "boiler.pdf"))
    assert code == 2
    assert "is several documents" in err


def test_all_documents_of_a_folder_are_removed_and_no_others(docs: Command, folder: Path) -> None:  # P41
    inner = folder / "notes"
    inner.mkdir()
    (inner / "shed.md").write_text(GARDEN)
    beside = folder.with_name("papers-old")
    beside.mkdir()
    (beside / "old.md").write_text(GARDEN)
    docs("add", str(folder), str(beside))
    assert docs.ok("remove", str(inner)) == "removed: shed.md\n"
    assert docs.ok("remove", str(folder)) == "removed: boiler.pdf\nremoved: garden.md\n2 documents removed.\n"
    assert [each["name"] for each in json.loads(docs.ok("list", "--json"))] == ["old.md"]
    assert docs("remove", str(folder)) == (
        3,
        "",
        f"clew: There is no document {str(folder)!r}.\n`clew docs list` shows those that are there.\n",
    )
    (beside / "old.md").unlink()
    beside.rmdir()
    assert docs.ok("remove", f"{beside}/") == "removed: old.md\n", "the folder may be gone"


def test_a_folder_whose_documents_are_of_several_is_not_removed(docs: Command, folder: Path) -> None:  # P41, P33
    docs.ok("add", str(folder / "garden.md"))
    docs.ok("add", str(folder / "boiler.pdf"), "--person", "bob")
    code, out, err = docs("remove", str(folder))
    assert (code, out) == (2, "")
    assert "holds documents of several: user:ada, user:bob" in err
    assert len(json.loads(docs.ok("list", "--json"))) == 2


def test_of_a_folder_those_that_are_watched_stay(docs: Command, folder: Path) -> None:  # P41
    docs.ok("add", str(folder / "garden.md"))

    async def watched() -> None:
        store = await SqliteStore.open(docs.config.parent / "data/clew.db", 1.0)
        new = NewDocument(str(folder / "house.md"), "house.md", "", "markdown", "hash", 1, "config", "")
        await store.documents.put("user:ada", new, [Chunk("", "The chimney is swept in May.")], 1.0)
        await store.close()

    asyncio.run(watched())
    assert docs.ok("remove", str(folder)) == "removed: garden.md\n"
    code, out, err = docs("remove", str(folder))
    assert (code, out) == (2, "")
    assert "house.md comes from a watched folder" in err


def test_names_are_shown_on_one_line_and_one_that_is_not_utf8_is_refused(docs: Command, tmp_path: Path) -> None:  # P41
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "a\n\x1b[2Jb.md").write_text(GARDEN)
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.md")).write_text(GARDEN)
    code, out, err = docs("add", str(folder))
    assert code == 1
    assert out.startswith("added: a\\n\\x1b[2Jb.md (2 passages)")
    assert err == f"{folder}/caf\\xe9.md: not added: its name is not UTF-8. Rename it, and add it then.\n"
    assert [each["state"] for each in json.loads(docs("add", str(folder), "--json")[1])] == ["unchanged", "refused"]
    heading, row = docs.ok("list").splitlines()
    assert heading.startswith("ID")
    assert "a\\n\\x1b[2Jb.md" in row


MISTAKES = [
    (("add",), 2, "Missing argument"),
    (("add", "{folder}/garden.md", ""), 2, "One of them is empty"),
    (("add", " \t"), 2, "One of them is empty"),
    (("remove", ""), 2, "One of them is empty"),
    (("add", "file:///etc/passwd", "ftp://x/y"), 1, "only http and https"),
    (("add", "{folder}/none.md", "{folder}/large.txt", "/dev/zero", "{folder}/picture.png"), 1, ""),
    (("add", "http://127.0.0.1:1/x", "http://localhost/x"), 1, "no host of the public Internet"),
    (("add", "{folder}/empty"), 3, "holds no documents"),
    (("add", "{folder}/garden.md", "--person", "eve"), 3, "no person 'eve'"),
    (("add", "{folder}/garden.md", "--project", "attic"), 3, "no project 'attic'"),
    (("add", "{folder}/garden.md", "--project", "garden", "--person", "bob"), 2, "exclude each other"),
    (("remove", "nonsense"), 3, "no document 'nonsense'"),
    (("search", "roses", "--person", "ada", "--chat", "web:local"), 2, "Name one of"),
    (("search", "roses", "--chat", "web:nobody"), 3, "no chat 'web:nobody'"),
    (("search", "roses", "--session", "nonsense"), 3, "no session 'nonsense'"),
]


def test_mistakes_are_said_in_words(docs: Command, folder: Path) -> None:  # P41
    docs.ok("add", str(folder / "garden.md"))
    (folder / "large.txt").write_text("x" * 200_000)
    (folder / "empty").mkdir()
    for args, code, says in MISTAKES:
        ended, out, err = docs(*(each.format(folder=folder) for each in args))
        assert (ended, out) == (code, ""), args
        assert says in err
        assert "Traceback" not in err
        if not says:
            told = [line.partition(": not added: ")[2] for line in err.splitlines()]
            whys = ["No such file", "it is larger than 0.1 MiB. `limits.attachment_bytes`", "it is no ordinary file", "it is no UTF-8 text"]
            assert [line.startswith(why) for line, why in zip(told, whys, strict=True)] == [True] * 4
    assert len(json.loads(docs.ok("list", "--json"))) == 1, "nothing is lost"


@pytest.mark.asyncio
async def test_what_is_added_while_a_daemon_runs_is_known_to_it_at_once(tmp_path: Path) -> None:  # P41
    config = settings(tmp_path / "c")
    path = tmp_path / "garden.md"
    path.write_text(GARDEN)
    async with running(config) as clew:

        async def command(*args: str) -> str:
            process = await asyncio.create_subprocess_exec(
                *CLEW, "docs", *args, "--config", str(tmp_path / "c/clew.yaml"), stdout=asyncio.subprocess.PIPE, env=ENV
            )
            return (await process.communicate())[0].decode()

        assert (await command("add", str(path))).startswith("added: garden.md")
        async with Tab.open(clew) as tab:
            await tab.say("1", "when do roses want water?")
            await tab.until("message", in_reply_to="1")
        session = (await clew.service.store.sessions())[0].id
        assert "Roses want water in the morning." in (await clew.service.store.view(session)).prompt.documents
        assert "[garden.md, The garden › Watering]" in await command("search", "roses", "--session", session)
        assert (await command("remove", str(path))) == "removed: garden.md\n"
        assert (await clew.service.store.view(session)).prompt.documents == ""


@pytest.mark.asyncio
async def test_the_api_takes_lists_finds_and_removes_documents(tmp_path: Path) -> None:  # P41
    async with running(settings(tmp_path / "c", docs={"paths": [str(tmp_path / "watched")]})) as clew:
        body: dict[str, Any] = {"source": "/docs/garden.md", "content": base64.b64encode(GARDEN.encode()).decode()}
        status, added = await clew.post("/api/v1/documents", body)
        assert (status, added["state"], added["document"]["name"]) == (200, "added", "garden.md")
        assert (await clew.post("/api/v1/documents", body))[1]["state"] == "unchanged"
        status, listed = await clew.get("/api/v1/documents")
        assert [each["id"] for each in listed["documents"]] == [added["document"]["id"]]
        status, found = await clew.get("/api/v1/documents/search?query=roses")
        assert [each["passage"]["place"] for each in found["passages"]] == ["The garden › Watering"]
        assert (await clew.get("/api/v1/documents/search?query=penguins"))[1] == {"passages": []}
        (tmp_path / "watched").mkdir()
        (tmp_path / "watched/house.md").write_text("# The house\n\nThe chimney is swept in May.\n")
        await watched(clew)
        [house] = (await clew.get("/api/v1/documents?limit=2"))[1]["documents"][1:]
        for wrong in (
            {"source": "/etc/passwd"},
            {"source": "garden.md", "content": ""},
            {"source": "/x.md", "content": "!"},
            {"source": "http://127.0.0.1/"},
            {"source": "file:///etc/passwd"},
            {"source": "/docs/garden.md", "content": "AAAA"},
        ):
            status, said = await clew.post("/api/v1/documents", wrong)
            assert (status, "error" in said) == (400, True)
        status, said = await clew.ask_locally("DELETE", f"/api/v1/documents/{house['id']}")
        assert (status, "watched folder" in said["error"]) == (400, True)
        assert (await clew.ask_locally("DELETE", f"/api/v1/documents/{added['document']['id']}"))[0] == 200
        assert (await clew.ask_locally("DELETE", f"/api/v1/documents/{added['document']['id']}"))[0] == 404


async def watched(clew: Clew) -> None:
    """Look at the watched folders now."""
    await clew.service.upkeep.settled()
    await clew.service.watch.look()
