"""Documents in the store: taken in whole or not at all, found within their scope, gone without a trace."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from clew.context.chunks import Chunk
from clew.context.documents import Found
from clew.context.sought import Sought
from clew.context.vectors import quantised
from clew.errors import NotFound, UsageError
from clew.passages import Passages
from clew.store import Person, documents
from clew.store.connection import Connection
from clew.store.documents import PIECE, Document, NewDocument, index, verbs
from clew.store.documents.door import TAKING_IN
from clew.store.notes import Where
from clew.store.opening import open_store
from clew.store.sql import SqlStore
from tests.databases import BOTH, SQLITE, databases
from tests.unit.store_rows import NOW, PEOPLE, opened, turn

pytestmark = BOTH
ADA, BOB, GARDEN = Where(person="ada"), Where(person="bob"), Where(project="garden")
ROSES = Chunk("Watering › Roses", "Roses want water in the morning, never at noon.")
TOMATOES = Chunk("Watering › Tomatoes", "Tomatoes want water every day.")
KEY = "hunter2-is-a-secret"


async def put(store: SqlStore, *chunks: Chunk, source: str = "/docs/garden.md", scope: str = "user:ada", digest: str = "1") -> Document:
    new = NewDocument(source, source.rpartition("/")[2], "The garden", "markdown", digest, 100)
    return await store.documents.put(scope, new, chunks, NOW)


async def search(store: SqlStore, text: str, where: Where | None = None, limit: int = 10) -> list[Found]:
    return await Passages(store, 2000).search(where, text, limit)


async def texts(store: SqlStore, text: str, where: Where | None = None) -> list[str]:
    return [each.passage.text for each in await search(store, text, where)]


@pytest.mark.asyncio
async def test_a_document_is_found_by_its_words_headings_and_name_and_cited_by_them(tmp_path: Path) -> None:  # P41
    async with opened(tmp_path) as store:
        document = await put(store, ROSES, TOMATOES)
        assert (document.name, document.scope, document.chunks, document.added) == ("garden.md", "user:ada", 2, NOW)
        [found] = await search(store, "roses at noon", ADA)
        assert found.passage.cited == "[garden.md, Watering › Roses]"
        assert found.why == ("roses", "noon")
        assert found.score == 1.0
        assert len(await texts(store, "watering", ADA)) == 2
        assert len(await texts(store, "garden.md", ADA)) == 2
        assert await texts(store, "bicycle", ADA) == []
        assert await texts(store, "Watered tomato", ADA) == [TOMATOES.text, ROSES.text]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "query", ["", "   ", '"', "C++ AND NOT NEAR(", "don't *", "水やり", "🌹", "x" * 5000, "\0\ud800", "scope1", "name:"]
)
async def test_any_text_may_be_asked(tmp_path: Path, query: str) -> None:  # P41, P35
    async with opened(tmp_path) as store:
        await put(store, ROSES, Chunk("", "水やりは朝に C++ 🌹"))
        found = await texts(store, query, ADA)
        assert (found == ["水やりは朝に C++ 🌹"]) == (query in ("水やり", "🌹", "C++ AND NOT NEAR("))


@pytest.mark.asyncio
async def test_whose_a_document_is_is_part_of_the_query(tmp_path: Path) -> None:  # P41, P33
    async with opened(tmp_path) as store:
        await store.sync(PEOPLE, None, [], NOW, {"desk:team": "garden"})
        await put(store, ROSES)
        await put(store, TOMATOES, scope="project:garden")
        await turn(store, "m1", "hello", "yes")
        await turn(store, "m2", "hello", "yes", "team", sender="ada", direct=False)
        assert await texts(store, "water", ADA) == [ROSES.text]
        assert await texts(store, "water", BOB) == []
        assert await texts(store, "water", GARDEN) == [TOMATOES.text]
        assert await texts(store, "water", Where(address="desk:ada")) == [ROSES.text]
        assert await texts(store, "water", Where(address="desk:team")) == [TOMATOES.text]
        assert await texts(store, "water", Where(address="desk:nobody")) == []
        assert sorted(await texts(store, "water")) == [ROSES.text, TOMATOES.text]
        assert [each.scope for each in await store.documents.listing(None, 10)] == ["project:garden", "user:ada"]
        assert [each.scope for each in await store.documents.listing(ADA, 10)] == ["user:ada"]
        # What is asked for by its meaning is held to the same scope.
        ids = [each.passage.id for each in await search(store, "water")]
        looked = await store.documents.look_up(BOB, ["water"], 10, nearest=ids, shown=ids)
        assert (looked.passages, looked.visible, looked.total) == ({}, frozenset(), 0)
        looked = await store.documents.look_up(ADA, ["water"], 10, nearest=ids, shown=ids)
        assert len(looked.passages) == len(looked.visible) == looked.total == 1


@pytest.mark.asyncio
async def test_how_often_others_use_a_word_says_nothing(tmp_path: Path) -> None:  # P41, P33
    async with opened(tmp_path) as store:
        await put(store, ROSES)
        before = await search(store, "roses water", ADA)
        await put(store, *[Chunk("", f"roses {number}") for number in range(50)], scope="user:bob")
        assert await search(store, "roses water", ADA) == before


@pytest.mark.asyncio
async def test_a_rare_word_finds_before_a_common_one_and_a_name_before_a_text(tmp_path: Path) -> None:  # P41
    async with opened(tmp_path) as store:
        often = [Chunk("", f"water water water {number}") for number in range(30)]
        await put(store, *often, Chunk("", "roses"), Chunk("Roses", "thorns"), Chunk("", "needle and water"))
        looked = await store.documents.look_up(ADA, ["water", "roses", "needle"], 40)

        assert [looked.passages[chunk].text for chunk in looked.lexical[:3]] == ["thorns", "needle and water", "roses"]
        assert len(looked.lexical) == 33


@pytest.mark.asyncio
async def test_a_changed_document_takes_the_place_of_the_old_one_under_its_id(tmp_path: Path) -> None:  # P41
    async with opened(tmp_path) as store:
        old = await put(store, ROSES)
        new = await put(store, TOMATOES, digest="2")
        assert (new.id, new.hash) == (old.id, "2")
        assert await texts(store, "water", ADA) == [TOMATOES.text]
        assert await store.documents.there("user:ada", "/docs/garden.md") == new
        assert await store.documents.listing(None, 10) == [new]
        assert await store.check() == []


@pytest.mark.asyncio
async def test_of_a_removed_document_nothing_is_left(tmp_path: Path) -> None:  # P41
    async with opened(tmp_path) as store:
        document = await put(store, *[Chunk("", f"needle {number}") for number in range(2 * PIECE + 1)])
        await put(store, ROSES, source="/docs/roses.md")
        assert len(await texts(store, "needle")) == 10
        await store.documents.remove([document.id])
        assert await texts(store, "needle") == []
        assert not store.documents.empty
        with pytest.raises(NotFound):
            await store.documents.find(document.id)
        assert await store.check() == []
    assert databases.rows(tmp_path, "SELECT count(*) FROM chunks") == [(1,)]
    assert databases.rows(tmp_path, "SELECT count(*) FROM documents") == [(1,)]
    assert databases.beside(tmp_path, lambda db: db.words("chunks").some(Sought(("text",), ("needle",)), None, 10)) == set()


@pytest.mark.asyncio
async def test_a_document_that_is_not_whole_is_seen_by_nobody_and_goes_at_the_next_start(tmp_path: Path) -> None:  # P41, P48
    async with opened(tmp_path) as store:
        old = await put(store, ROSES)
        new = NewDocument("/docs/garden.md", "garden.md", "", "markdown", "2", 100)
        number = await store._db.write(verbs.begin, "user:ada", new, 2, NOW)
        await store._db.write(verbs.fill, number, [(TOMATOES, "garden md", "tomatoes want water every day")])
        assert await texts(store, "water", ADA) == [ROSES.text]
        assert await store.documents.listing(None, 10) == [old]
    if databases.kind == "postgresql":  # until then another daemon may be about to take it in
        databases.altered(tmp_path, f"UPDATE documents SET updated = updated - {2 * TAKING_IN} - {NOW} WHERE ready = 0")
    async with opened(tmp_path) as store:
        assert await texts(store, "water", ADA) == [ROSES.text]
        assert await store.check() == []
    assert databases.rows(tmp_path, "SELECT count(*) FROM chunks") == [(1,)]


@pytest.mark.asyncio
async def test_there_are_at_most_so_many_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "MOST_DOCUMENTS", 2)
    async with opened(tmp_path) as store:
        await put(store, ROSES)
        await put(store, ROSES, source="/b.md")
        with pytest.raises(UsageError, match="2 documents already"):
            await put(store, ROSES, source="/c.md")
        assert len(await store.documents.listing(None, 10)) == 2


@pytest.mark.asyncio
async def test_a_document_is_named_by_id_its_beginning_or_its_source(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        document = await put(store, ROSES)
        for key in (document.id, document.id[:6], "/docs/garden.md"):
            assert await store.documents.find(key) == document
        for key in ("", document.id[:2], "garden", "%"):
            with pytest.raises(NotFound):
                await store.documents.find(key)
        other = await put(store, ROSES, scope="project:garden")
        with pytest.raises(UsageError, match=f"{document.id}|{other.id}"):
            await store.documents.find("/docs/garden.md")


@pytest.mark.asyncio
async def test_secrets_are_stored_neither_in_pieces_nor_in_the_index(tmp_path: Path) -> None:  # P41, P19
    told = Chunk(f"Key {KEY}", f"The password is Tr0ub4dor&3x and the key {KEY}; roses are red.")
    store = await open_store(databases.store(tmp_path), tmp_path, NOW, known=[KEY])
    try:
        await put(store, told, source=f"/docs/{KEY}.md")
        [found] = await search(store, "roses")
        assert "roses are red" in found.passage.text
        assert await texts(store, "Tr0ub4dor") == []
        assert await texts(store, KEY) == []
        assert await store.check() == []
    finally:
        await store.close()
    content = databases.written(tmp_path)
    assert b"Tr0ub4dor" not in content
    # Its source is where it is, so that it can be told and removed.
    assert content.count(KEY.encode()) == content.count(f"/docs/{KEY}.md".encode())


@pytest.mark.asyncio
async def test_what_becomes_known_as_a_secret_leaves_the_pieces_at_the_next_start(tmp_path: Path) -> None:  # P41, P19
    async with opened(tmp_path) as store:
        await put(store, Chunk("", f"roses {KEY}"))
        assert await texts(store, KEY) != []
    store = await open_store(databases.store(tmp_path), tmp_path, NOW, known=[KEY])
    try:
        [text] = await texts(store, "roses")
        assert KEY not in text
        assert await texts(store, KEY) == []
        assert await store.check() == []
    finally:
        await store.close()


def misplace(db: Connection, first: int, step: int) -> None:
    """Let the index say of some pieces that they are somebody else's."""
    for (row,) in db.execute("SELECT id FROM chunks WHERE id >= ? AND (id - ?) % ? = 0 ORDER BY id", (first, first, step)).fetchall():
        db.execute("DELETE FROM chunks_fts WHERE rowid = ?", (row,))
        db.words("chunks").put(row, ("", "cactus", "scope2"))


async def told(folder: Path, damage: Callable[[Connection], object]) -> str:
    """What a check says of a document that was damaged."""
    async with opened(folder) as store:
        await put(store, ROSES)
        assert await store.check() == []
    databases.damaged(folder, damage)
    async with opened(folder) as store:
        with suppress(UsageError):
            await search(store, "roses")  # what is damaged hides nothing else
        return "; ".join(await store.check())


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda db: db.execute("UPDATE chunks SET text = 'sunflowers'"), "lacks words of them, for instance sunflow"),
        (lambda db: db.execute("DELETE FROM chunks_fts"), "lacks words of them"),
        (lambda db: db.words("chunks").put(99, ("", "cactus", "scope1")), "holds words that they do not, for instance cactu"),
        (lambda db: misplace(db, 1, 1), "holds words that they do not, for instance cactu, (in:)?scope2"),
        (lambda db: db.execute("DELETE FROM chunks"), "1 documents are not whole"),
    ],
)
async def test_a_check_finds_an_index_that_differs(tmp_path: Path, damage: Callable[[Connection], object], said: str) -> None:  # P41
    assert re.search(said, await told(tmp_path, damage))


@SQLITE  # PostgreSQL takes no text that is no UTF-8
@pytest.mark.asyncio
async def test_a_check_finds_pieces_that_cannot_be_read(tmp_path: Path) -> None:  # P41
    said = await told(tmp_path, lambda db: db.execute("UPDATE chunks SET text = CAST(x'ff' AS TEXT)"))
    assert "1 pieces of documents cannot be read" in said


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "damage",
    [
        lambda db: db.execute("DELETE FROM chunks_fts"),
        lambda db: db.words("chunks").put(9999, ("", "cactus", "scope1")),
        lambda db: misplace(db, 7, 7),
    ],
)
async def test_an_index_that_differs_is_built_anew_piece_by_piece(tmp_path: Path, damage: Callable[[Connection], object]) -> None:  # P41
    async with opened(tmp_path) as store:
        await put(store, ROSES, *[Chunk("", f"needle {number}") for number in range(2 * index.RENEWED)])
        databases.beside(tmp_path, damage)
        assert await store.check() != []
        await store.documents.renew()
        assert await store.check() == []
        assert await texts(store, "roses") == [ROSES.text]


@pytest.mark.asyncio
async def test_documents_of_the_machines_owner_become_those_of_the_one_the_config_names(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.sync({}, Person("owner", "owner"), [], NOW)
        await put(store, ROSES, scope="user:owner")
        await store.sync({"ada": Person("ada", "owner")}, None, [], NOW)
        assert await texts(store, "roses", ADA) == [ROSES.text]


def test_bounds_are_what_the_page_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "documents.md").read_text()
    for bound in (documents.MOST_DOCUMENTS, documents.MOST_CHUNKS):
        assert f"{bound:,}" in page


@pytest.mark.asyncio
async def test_vectors_find_the_nearest_pieces_within_their_scope_and_go_with_them(tmp_path: Path) -> None:  # P41, P33
    await nearest(tmp_path, extension=False)


@SQLITE
@pytest.mark.asyncio
async def test_the_extension_finds_the_same_pieces(tmp_path: Path) -> None:  # P41, P33
    await nearest(tmp_path, extension=True)


async def nearest(folder: Path, *, extension: bool) -> None:
    async with opened(folder) as store:
        if extension and not await store.vectors.prepare():
            pytest.skip("this Python's sqlite3 loads no extensions")
        document = await put(store, ROSES, TOMATOES)
        await put(store, Chunk("", "Bob's"), scope="user:bob")
        door = store.documents
        waiting = await door.waiting("one", 10)
        assert [each.text for each in waiting][:2] == [f"garden.md {each.place}\n{each.text}" for each in (ROSES, TOMATOES)]
        vectors = [quantised(each) for each in ([1.0, 0.1], [0.1, 1.0], [1.0, 0.0])]
        await door.embedded("one", list(zip(waiting, vectors, strict=True)))
        assert await door.waiting("one", 10) == ()
        roses, tomatoes, bobs = (each.chunk for each in waiting)
        asked = quantised([1.0, 0.0])
        assert await door.nearest(ADA, "one", asked, 10, extension=extension) == [roses, tomatoes]
        assert await door.nearest(ADA, "one", quantised([0.0, 1.0]), 1, extension=extension) == [tomatoes]
        assert await door.nearest(None, "one", asked, 10, extension=extension) == [bobs, roses, tomatoes]
        assert await door.nearest(GARDEN, "one", asked, 10, extension=extension) == []
        assert await door.nearest(ADA, "two", asked, 10, extension=extension) == []
        assert await door.nearest(ADA, "one", quantised([1.0, 0.0, 0.0]), 10, extension=extension) == []
        await door.remove([document.id])
        assert await door.nearest(None, "one", asked, 10, extension=extension) == [bobs]
        assert len(await door.waiting("two", 10)) == 1
        await door.embedded("two", [(waiting[2], asked), (waiting[0], asked)])
        assert await door.nearest(None, "two", asked, 10, extension=extension) == [bobs]
        assert await store.check() == []
