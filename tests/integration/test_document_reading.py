"""Documents are read, sound ones and such as are made to do harm: these are refused with a reason, and nothing else comes of them."""

import asyncio
import io
import os
import zlib
from pathlib import Path

import pytest
from pypdf import PdfWriter

from clew.documents import MOST_CHARS, MOST_PAGES, Contents, Kind, Refused, folders
from clew.documents.reading import Reader, decoded
from tests.files import docx, paragraph, pdf, table

MIB = 2**20


async def read(kind: Kind, body: bytes, encoding: str = "") -> Contents:
    return await Reader().read(kind, body, encoding)


async def refused(kind: Kind, body: bytes) -> str:
    with pytest.raises(Refused) as error:
        await read(kind, body)
    return error.value.message


def encrypted(body: bytes) -> bytes:
    made, writer = io.BytesIO(), PdfWriter(clone_from=io.BytesIO(body))
    writer.encrypt("a password", algorithm="RC4-128")
    writer.write(made)
    return made.getvalue()


@pytest.mark.asyncio
async def test_a_pdf_is_cited_by_its_pages() -> None:  # P41
    contents = await read("pdf", pdf(["Roses want water.", "", "Tomatoes too."], title="The garden"))
    assert contents.title == "The garden"
    assert [(each.place, each.text) for each in contents.sections] == [("page 1", "Roses want water."), ("page 3", "Tomatoes too.")]


@pytest.mark.asyncio
async def test_a_word_document_is_cited_by_its_headings() -> None:  # P41
    body = paragraph("Before.") + paragraph("Watering", "H1") + paragraph("Roses", "H2") + paragraph("In the morning.") + paragraph("")
    body += table(["Tool", "Use"], ["Spade", "Digging"]) + paragraph("Pruning", "H1") + paragraph("In spring.")
    contents = await read("docx", docx(body))
    assert [(each.place, each.text, each.first) for each in contents.sections] == [
        ("", "Before.", 1),
        ("Watering › Roses", "In the morning.\n\nTool | Use\nSpade | Digging", 4),
        ("Pruning", "In spring.", 8),
    ]
    assert contents.sections[0].unit == "paragraph"


@pytest.mark.asyncio
async def test_text_is_read_in_the_encoding_that_it_names() -> None:  # P41
    for body, encoding in (
        ("Grüße".encode(), ""),
        ("\ufeffGrüße".encode(), ""),
        ("\ufeffGrüße".encode("utf-16-le"), ""),
        ("\ufeffGrüße".encode("utf-16-be"), ""),
        ("Grüße".encode("latin-1"), "iso-8859-1"),
    ):
        assert (await read("text", body, encoding)).sections[0].text == "Grüße"
    page = '<meta charset="windows-1252"><p>Grüße – ja'.encode("cp1252")
    assert (await read("html", page)).sections[0].text == "Grüße – ja"
    assert decoded(b"a\r\nb\rc") == "a\nb\nc"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"one\ntwo \xe4", "no UTF-8 text: byte 0xe4 in line 2"),
        (b"one\0two", "zero bytes"),
        (b"\xff\xfeo\0n", "no UTF-16"),
        (b"\x80" * 100, "no UTF-8 text"),
        (b"a" * (MOST_CHARS + 1), "more than 5,000,000 characters"),
    ],
    ids=["empty", "blank", "latin-1", "zeros", "half", "noise", "long"],
)
async def test_text_that_cannot_be_read_is_refused_with_the_reason(body: bytes, said: str) -> None:  # P41
    assert said in await refused("text", body)


@pytest.mark.asyncio
async def test_of_a_page_all_text_is_read_but_navigation_scripts_and_fields() -> None:
    left_out = b"<nav>menu</nav><script>run()</script><style>p {}</style><form><label>Name</label><textarea>typed</textarea>"
    page = left_out + b"<select><option>one</option></select><button>Send</button></form><aside>Beside.</aside><footer>Below.</footer>"
    assert (await read("html", page)).sections[0].text.split() == ["Name", "Beside.", "Below."]


@pytest.mark.asyncio
async def test_a_page_in_an_unknown_encoding_is_refused() -> None:
    assert "'klingon'" in await refused("html", b"<meta charset=klingon><p>nuqneH")
    assert "'rot13'" in await refused("html", b"<meta charset=rot13><p>uryyb")
    assert "no text" in await refused("html", b"<script>everything()</script>")


@pytest.mark.asyncio
async def test_pdfs_made_to_do_harm_are_refused() -> None:  # P41
    assert f"10,000 pages, and at most {MOST_PAGES:,}" in await refused("pdf", pdf([""] * 10_000))
    assert "no text is in it" in await refused("pdf", pdf(["", ""]))
    assert "damaged or no PDF" in await refused("pdf", b"%PDF-1.4\nnot really")
    assert "damaged or no PDF" in await refused("pdf", pdf(["page"])[:200])
    assert "encrypted" in await refused("pdf", encrypted(pdf(["page"])))
    # A gigabyte of operators in a megabyte: neither memory nor time is there for it.
    bomb = zlib.compress(b"BT /F1 12 Tf (x) Tj ET " * (1024 * MIB // 23), 9)
    assert len(bomb) < 5 * MIB
    said = await refused("pdf", pdf(["x"], contents=bomb))
    assert any(each in said for each in ("memory", "damaged", "no text"))


@pytest.mark.asyncio
async def test_word_documents_made_to_do_harm_are_refused() -> None:  # P41
    zeros = bytes(100 * MIB)
    assert "unpacks to 300 MiB" in await refused("docx", docx("", {f"word/media/{n}.bin": zeros for n in range(3)}))
    assert "word/notes.xml in it has 100 MiB" in await refused("docx", docx("", {"word/notes.xml": zeros}))
    assert "parts, and at most 5,000" in await refused("docx", docx("", {f"media/{n}": b"" for n in range(5000)}))
    laughs = '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>'
    assert "declares a document type" in await refused("docx", docx(paragraph("&c;"), prolog=laughs))
    outside = '<!DOCTYPE d [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    assert "declares a document type" in await refused("docx", docx(paragraph("&a;"), prolog=outside))
    hidden = f'<?xml version="1.0" encoding="UTF-16"?>{laughs}<x/>'.encode("utf-16")
    assert "declares a document type" in await refused("docx", docx("", {"word/x.xml": hidden}))
    assert "damaged or no Word document" in await refused("docx", b"PK\x03\x04 not really")
    assert "damaged or no Word document" in await refused("docx", docx(paragraph("whole"))[:-40])
    assert "damaged or no Word document" in await refused("docx", docx("<w:p><unclosed>"))
    assert "no text" in await refused("docx", docx(""))


@pytest.mark.asyncio
async def test_a_size_that_a_part_lies_about_is_not_believed() -> None:  # P41
    honest = docx("", {"word/media/x.xml": bytes(100 * MIB)})
    at = honest.rindex(b"word/media/x.xml") - 46  # its entry in the archive's list
    lying = honest[: at + 24] + (10).to_bytes(4, "little") + honest[at + 28 :]
    assert "damaged or no Word document" in await refused("docx", lying)


@pytest.mark.asyncio
async def test_many_are_read_side_by_side_and_a_cancelled_one_leaves_no_process() -> None:
    reader = Reader()
    found = await asyncio.gather(*(reader.read("pdf", pdf([f"page of {number}"])) for number in range(5)))
    assert [each.sections[0].text for each in found] == [f"page of {number}" for number in range(5)]
    reading = asyncio.create_task(reader.read("pdf", pdf(["word " * 50] * MOST_PAGES)))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert (await reader.read("pdf", pdf(["still reads"]))).sections[0].text == "still reads"


@pytest.mark.asyncio
async def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # P41
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['pypdf'] = sys.modules['docx'] = None\n")
    monkeypatch.setattr("clew.documents.reading.PATHS", (str(tmp_path),))
    for kind, body in (("pdf", pdf(["page"])), ("docx", docx(paragraph("page")))):
        said = await refused(kind, body)  # type: ignore[arg-type]
        assert said == f"{kind.upper()} is read with the extra `docs`, which is not installed: pip install 'clew[docs]'"
    assert (await read("html", b"<h1>One</h1><p>two")).sections[0].text == "two"
    assert (await read("markdown", b"# One\ntwo")).sections[0].text == "two"


def test_a_folder_gives_its_documents_and_nothing_from_outside(tmp_path: Path) -> None:  # P41
    folder, outside = tmp_path / "docs", tmp_path / "outside"
    (folder / "deep").mkdir(parents=True)
    outside.mkdir()
    for path in (folder / "a.md", folder / "deep/b.TXT", folder / ".hidden.md", folder / "picture.png", outside / "secret.md"):
        path.write_text("text")
    (folder / ".git").mkdir()
    (folder / ".git/config.md").write_text("text")
    (folder / "out.md").symlink_to(outside / "secret.md")
    (folder / "outfolder").symlink_to(outside)
    (folder / "nothing.md").symlink_to(folder / "gone.md")
    (folder / "again.md").symlink_to(folder / "a.md")
    os.mkfifo(folder / "pipe.md")
    assert [each.path.relative_to(folder).as_posix() for each in folders.files(folder)] == ["a.md", "again.md", "deep/b.TXT"]
    assert folders.content(folder / "a.md", 100, folder)[0] == b"text"
    with pytest.raises(Refused, match="leads out"):
        folders.content(folder / "out.md", 100, folder)
    with pytest.raises(Refused, match="no ordinary file"):
        folders.content(folder / "pipe.md", 100, folder)
    with pytest.raises(Refused, match="no ordinary file"):
        folders.content(folder / "deep", 100)
    with pytest.raises(Refused, match="larger than"):
        folders.content(folder / "a.md", 3)
    with pytest.raises(FileNotFoundError):
        folders.content(folder / "nothing.md", 100)
    with pytest.raises(FileNotFoundError):
        folders.files(tmp_path / "nowhere")


def test_a_folder_of_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOST_FILES", 3)
    for number in range(4):
        (tmp_path / f"{number}.md").write_text("text")
    with pytest.raises(Refused, match="more than 3 documents"):
        folders.files(tmp_path)
