"""Exact things in a sentence."""

import pytest

from clew.context.identifiers import MAX_IDENTIFIERS, identifiers


def found(sentence: str) -> list[tuple[str, str]]:
    return [(each.text, each.kind) for each in identifiers(sentence)]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("See https://example.org/a?b=c, or www.example.org.", [("https://example.org/a?b=c", "url"), ("www.example.org", "url")]),
        ("Mail ada+x@example.org!", [("ada+x@example.org", "email")]),
        (
            "It is in /etc/clew/key.pem and ~/notes, not in ../old/x.",
            [("/etc/clew/key.pem", "path"), ("~/notes", "path"), ("../old/x", "path")],
        ),
        (r"Open C:\Users\ada\x.txt now", [(r"C:\Users\ada\x.txt", "path")]),
        ("The branch is ci/gitlab-pilot, the file src/main.rs.", [("ci/gitlab-pilot", "path"), ("src/main.rs", "path")]),
        ("QX-4471, srv-9 and db-7.example.org:5432", [("QX-4471", "id"), ("srv-9", "id"), ("db-7.example.org:5432", "id")]),
        ("Commit 3fa9c1e7 of 550e8400-e29b-41d4-a716-446655440000", [("3fa9c1e7", "id"), ("550e8400-e29b-41d4-a716-446655440000", "id")]),
        ("Set max_retries and --dry-run in parse_config()", [("max_retries", "id"), ("--dry-run", "id"), ("parse_config", "id")]),
        ("The file is take_0122.wav, the role tide-release-signer.", [("take_0122.wav", "id"), ("tide-release-signer", "id")]),
        ("@ada posted in #general", [("@ada", "id"), ("#general", "id")]),
        ("We run v1.2.3, not 1.2.4-rc1", [("v1.2.3", "version"), ("1.2.4-rc1", "version")]),
        (
            "It costs € 80, $1,200.50, 1.234,56 € or EUR 147.36",
            [(each, "money") for each in ("€ 80", "$1,200.50", "1.234,56 €", "EUR 147.36")],
        ),
        ("4,200 euros, 40 zł and 3 рубля", [(each, "money") for each in ("4,200 euros", "40 zł", "3 рубля")]),
        (
            "On 14 January 2027, May 5th, 2026, 2026-05-28 or 12.06.2026",
            [(each, "date") for each in ("14 January 2027", "May 5th, 2026", "2026-05-28", "12.06.2026")],
        ),
        (
            "Am 5. Mai, le 14 juillet, el 5 de mayo, 3 marca, 12 мая",
            [(each, "date") for each in ("5. Mai", "14 juillet", "5 de mayo", "3 marca", "12 мая")],
        ),
        ("At 09:30, 18h30, 9 Uhr or 5 pm", [(each, "time") for each in ("09:30", "18h30", "9 Uhr", "5 pm")]),
        (
            "12 kg, 20 °C, 5 %, 3 days, 2,6 mg/dl and 412 GB",
            [(each, "quantity") for each in ("12 kg", "20 °C", "5 %", "3 days", "2,6 mg/dl", "412 GB")],
        ),
        ("Call +49 170 1234567", [("+49 170 1234567", "id")]),
        ('He said "go home" and „Weg da“', [("go home", "quote"), ("Weg da", "quote")]),
        ("Run `make test` in «ci»", [("make test", "quote"), ("ci", "quote")]),
        ("「さくら」という店", [("さくら", "quote")]),
        ("2026年5月12日 14時 4200元 3人", [("2026年5月12日", "date"), ("14時", "quantity"), ("4200元", "money"), ("3人", "quantity")]),
        ("一个罐子四块八,一共六亩三分", [("四块八", "money"), ("六亩三分", "quantity")]),
        ("Supper is at six forty-five for fourteen guests", [("six forty-five", "word"), ("fourteen", "word")]),
        ("Room 12, table for 6, port 8130", [("12", "number"), ("6", "number"), ("8130", "number")]),
        (
            "Half past eight, um halb acht, viertel nach drei",
            [("Half past eight", "time"), ("halb acht", "time"), ("viertel nach drei", "time")],
        ),
        ('The folder is called "Summer and Snow" now', [("Summer and Snow", "id")]),
        ("Der Ordner heißt „Sommer im Schnee“.", [("Sommer im Schnee", "id")]),
        ('She calls him "the quiet one"', [("the quiet one", "quote")]),
        ("GitLab is down", [("GitLab", "name")]),
        ('Er meldet „Pumpe blockiert (-31)".', [("Pumpe blockiert (-31)", "quote")]),
        ("It says PUMP_STATE(4471), twice", [("PUMP_STATE", "id"), ("4471", "number")]),
        ("They came (all 14).", [("14", "number")]),
        ('It ends with "(code 0x51)".', [("(code 0x51)", "quote"), ("0x51", "id")]),
    ],
)
def test_they_are_found_whole_and_in_order(sentence: str, expected: list[tuple[str, str]]) -> None:  # P17
    assert found(sentence)[: len(expected)] == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "Done.Next we go, e.g. to the U.S. and/or home, as he/she is well-known.",
        "1. Buy bread",
        "A day-to-day, state-of-the-art thing.",
        "I have two or three of them.",
        "Half of them came.",
        "一点一下十分",
        "",
    ],
)
def test_plain_words_are_none(sentence: str) -> None:
    assert found(sentence) == []


def test_each_is_named_once_and_there_are_not_too_many() -> None:
    assert found("srv-9 and srv-9") == [("srv-9", "id")]
    assert len(identifiers(" ".join(f"id-{number}" for number in range(200)))) == MAX_IDENTIFIERS
