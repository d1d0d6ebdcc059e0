"""Input hygiene and the words of the index."""

from __future__ import annotations

import sqlite3

import pytest

from clew.context.text import MAX_WORD, clean, index_text, normalise, tokens

SECRET = "sk-" + "ant-api03-" + "Zk9" * 12


def found(text: str, words: str) -> bool:
    """Whether the index, tokenised as the store's, finds `text` by the index text of `words` as a phrase of them."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE f USING fts5(text, content='', tokenize='porter unicode61 remove_diacritics 2')")
    db.execute("INSERT INTO f(rowid, text) VALUES (1, ?)", (index_text(text),))
    hits = db.execute("SELECT count(*) FROM f WHERE f MATCH ?", (f'"{words}"',)).fetchone()[0]
    db.close()
    return bool(hits == 1)


# P49
def test_clean_drops_what_no_message_should_hold() -> None:
    assert clean("a\x00b\x07c\x1b[0m\x7f\x85") == "abc[0m"
    assert clean("x\ud800y\udfffz\ufffe\uffff") == "xyz"
    assert clean("tab\tline\nend") == "tab\tline\nend"
    assert clean("dos\r\nmac\rend") == "dos\nmac\nend"


# P49
def test_clean_keeps_writing_as_it_was() -> None:
    text = "Straße, cafe\u0301, 👨\u200d👩\u200d👧, \u202bעברית\u202c, ﬁ, Ａ"
    assert clean(text) == text


ALIKE = [
    ("\u0130stanbul", "istanbul"),
    ("Donau\u00addampf\u200bschiff", "donaudampfschiff"),
    ("\u845b\U000e0100\u57ce", "\u845b\u57ce"),
    ("\u202aclew\u202c\u2060\ufeff", "clew"),
    ("\u0dc1\u0dca\u200d\u0dbb\u0dd3", "\u0dc1\u0dca\u0dbb\u0dd3"),
    ("e\u0329\u0300ko\u0323", "e\u0329\u0300k\u1ecd"),
    ("\u2764\ufe0f", "\u2764"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_is_not_seen_does_not_count(one: str, other: str) -> None:  # P35, BO-109
    assert normalise(one) == normalise(other)
    assert index_text(one) == index_text(other)


def test_normalise_folds_case_and_compatibility() -> None:
    assert normalise("STRASSE ﬁ Ａ") == normalise("straße fi a")


# P20, P35
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("昨天我们去了东京都", "东"),
        ("昨天我们去了东京都", "东京"),
        ("昨天我们去了东京都", "东京 京都"),
        ("サーバーを移す", "サー"),
        ("서울에서 만나요", "서울"),
        ("ภาษาไทย", "ไท"),
        ("restart kube_proxy now", "kube proxy"),
        ("restart kube_proxy now", "kubeproxy"),
        ("see getUserName()", "user"),
        ("see getUserName()", "getusername"),
        ("see /etc/nginx/conf.d/site.conf", "etc nginx conf"),
        ("an e-mail came", "email"),
        ("I write C++ and C# here", "cplusplus"),
        ("Müller kam", "muller"),
        ("she was running", "run"),
    ],
)
def test_index_finds(text: str, words: str) -> None:
    assert found(text, words)


# P19
def test_no_credential_enters_the_index() -> None:
    words = index_text(f"my key is {SECRET} ok")
    assert "zk9" not in words
    assert "redacted" not in words
    assert "key" in words


def test_index_text_is_bounded() -> None:
    assert index_text("x" * 1_000_000) == "x" * MAX_WORD
    assert len(index_text("東京" * 500_000)) < 2_000_000


def test_tokens_join_forms_of_a_word() -> None:
    assert len(set(tokens(index_text("hike hikes hiked hiking")))) == 1
    assert len(set(tokens("müller muller mullers"))) == 1
