"""Readers of other programs' exports, over files in their formats."""

import contextlib
import json
import sqlite3
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from clew.imports import FORMATS, Format, conversations, opening, pulling
from clew.imports.conversation import Conversation, ExportError, Unreadable
from clew.imports.dividing import MOST
from clew.messages import Text, ToolCall, ToolResult
from tests import exports

BERLIN, UTC_ZONE = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")


def read(kind: Format, path: Path, me: str | None = None, zone: ZoneInfo = UTC_ZONE) -> list[Conversation | Unreadable]:
    return list(conversations(kind, path, me, zone))


def only(kind: Format, path: Path, me: str | None = None, zone: ZoneInfo = UTC_ZONE) -> Conversation:
    (found,) = read(kind, path, me, zone)
    assert isinstance(found, Conversation), found
    return found


def words(found: Conversation) -> list[tuple[str, str]]:
    """(who, what) of each message."""
    return [(each.name or each.role, " ".join(_words(block) for block in each.blocks)) for each in found.messages]


def _words(block: object) -> str:
    match block:
        case Text(text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return f"{name}({arguments})"
        case ToolResult(text=text):
            return f"→{text}"
    raise AssertionError(block)


def at(found: Conversation) -> list[str]:
    return [datetime.fromtimestamp(each.at, UTC).isoformat() for each in found.messages]


# ChatGPT ---------------------------------------------------------------------------------------------------------


def test_chatgpt_the_branch_that_was_gone_on_with(tmp_path: Path) -> None:
    path = exports.zipped(tmp_path / "export.zip", conversations__json=[exports.chatgpt(*exports.BOILER, current="a2")], user__json={})
    found = only("chatgpt", path)
    assert (found.key, found.title) == ("c-1", "The boiler")
    assert words(found) == [
        ("user", "Which pressure does our boiler need?"),
        ("assistant", "Between 1.2 and 1.8 bar."),
        ("user", "[image]\nAnd this one?"),
        ("assistant", 'python({"input": "print(1.5)"})'),
        ("tool", "→1.5"),
        ("assistant", "About 1.5 bar, by the plate."),
    ]
    assert found.messages[0].at == 1_700_000_001.0


def test_chatgpt_without_a_current_node_the_newest_leaf_counts(tmp_path: Path) -> None:
    path = exports.written(tmp_path / "conversations.json", [exports.chatgpt(*exports.BOILER, current="gone")])
    assert words(only("chatgpt", path))[-1] == ("assistant", "About 1.5 bar, by the plate.")


def test_chatgpt_a_circle_ends(tmp_path: Path) -> None:
    circle = (exports.node("a", "b", "user", "one"), exports.node("b", "a", "assistant", "two"))
    path = exports.written(tmp_path / "conversations.json", [exports.chatgpt(*circle, current="b")])
    assert words(only("chatgpt", path)) == [("user", "one"), ("assistant", "two")]


def test_chatgpt_one_that_cannot_be_read_leaves_the_others(tmp_path: Path) -> None:
    good = exports.chatgpt(*exports.BOILER, current="a1")
    path = exports.written(tmp_path / "conversations.json", [{"title": "odd", "id": "x", "mapping": 3}, 7, good])
    first, second, third = read("chatgpt", path)
    assert isinstance(first, Unreadable)
    assert "conversation 1 'odd'" in first.where
    assert isinstance(second, Unreadable)
    assert isinstance(third, Conversation)


# Claude ----------------------------------------------------------------------------------------------------------


def test_claude_calls_and_results_stand_apart(tmp_path: Path) -> None:
    found = only("claude", exports.zipped(tmp_path / "data.zip", conversations__json=[exports.CLAUDE], projects__json=[]))
    assert words(found) == [
        ("user", "When do I plant tomatoes? [file plan.txt]\nbed 4: potatoes [file bed.jpg]"),
        ("assistant", 'I look it up. web_search({"query": "tomatoes"})'),
        ("tool", "→mid May"),
        ("assistant", "In the middle of May."),
    ]
    assert [each.role for each in found.messages] == ["user", "assistant", "tool", "assistant"]
    assert at(found)[0] == "2024-05-01T08:00:01.123456+00:00"
    assert len({each.key for each in found.messages}) == 4


def test_claude_older_exports_have_the_text_alone(tmp_path: Path) -> None:
    message = {"uuid": "m", "sender": "human", "text": "hello", "created_at": "2023-08-01T08:00:00+02:00"}
    told = {"uuid": "u", "name": "", "created_at": "2023-08-01T08:00:00Z", "chat_messages": [message]}
    found = only("claude", exports.written(tmp_path / "conversations.json", [told]))
    assert (words(found), at(found)) == ([("user", "hello")], ["2023-08-01T06:00:00+00:00"])


# Hermes and OpenClaw -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["export", "database", "file", "lines"])
def test_hermes_in_each_of_its_forms(tmp_path: Path, form: str) -> None:
    match form:
        case "export":
            path = exports.jsonl(tmp_path / "sessions.jsonl", exports.HERMES)
        case "database":
            undone = {**exports.HERMES["messages"][4], "id": 6, "content": "taken back", "active": 0}
            session = {**exports.HERMES, "messages": [*exports.HERMES["messages"], undone]}
            path = exports.hermes_database(tmp_path / "state.db", session).parent
        case "file":
            told = {**exports.HERMES, "session_id": exports.HERMES["id"]}
            del told["id"]
            path = exports.written(tmp_path / "session_1.json", told)
        case _:
            path = exports.jsonl(tmp_path / f"{exports.HERMES['id']}.jsonl", *exports.HERMES["messages"])
    found = only("hermes", path)
    assert found.key == "20260301_101500_ab12"
    assert words(found) == [
        ("user", "Is the backup of the NAS done?"),
        ("assistant", 'terminal({"command": "ls"})'),
        ("tool", "→nas-2026-02-28.tar"),
        ("assistant", "Yes, on the 28th of February."),
    ]
    assert found.messages[0].at == 1_772_360_101.0


def test_openclaw_the_branch_of_the_newest_entry(tmp_path: Path) -> None:
    exports.jsonl(tmp_path / "b7300bff.jsonl", *exports.OPENCLAW)
    (tmp_path / "sessions.json").write_text("{}")
    found = only("openclaw", tmp_path)
    assert (found.key, found.title) == ("b7300bff", "Water the ferns on Friday")
    assert words(found) == [
        ("user", "Water the ferns on Friday"),
        ("assistant", 'I put it down. cron({"day": "fri"})'),
        ("tool", "→ok"),
        ("assistant", "Done: Fridays at nine."),
    ]
    assert at(found)[0] == "2026-04-08T01:04:00+00:00"


def test_openclaw_a_line_that_was_being_written_is_let_go(tmp_path: Path) -> None:
    path = exports.jsonl(tmp_path / "x.jsonl", *exports.OPENCLAW)
    path.write_text(path.read_text() + '{"type": "message", "id": "e9", "parentId"')
    assert words(only("openclaw", path))[-1] == ("assistant", "Done: Fridays at nine.")


# WhatsApp ----------------------------------------------------------------------------------------------------------


def test_whatsapp_of_an_android_telephone(tmp_path: Path) -> None:
    path = exports.written(tmp_path / "WhatsApp Chat with Bob.txt", exports.WHATSAPP_ANDROID)
    december, february = (each for each in read("whatsapp", path, zone=BERLIN) if isinstance(each, Conversation))
    assert [each.key for each in (december, february)] == ["Bob/2023-12", "Bob/2024-02"]  # 0:05 in Berlin was in December
    assert words(december) == [
        ("user", "Happy new year!\nThe key lies under the pot: 12"),
        ("Bob", "[media]"),
        ("Bob", "[file IMG-20240101-WA0001.jpg]\nFrom the roof"),
        ("Bob", "https://e.org/a: b"),
    ]
    assert at(december)[0] == "2023-12-31T20:41:00+00:00"
    assert words(february) == [("user", "The plumber comes on Tuesday")]


def test_whatsapp_of_an_iphone(tmp_path: Path) -> None:
    path = exports.zipped(tmp_path / "WhatsApp Chat - Familie.zip", _chat__txt=exports.WHATSAPP_IPHONE)
    (unknown,) = read("whatsapp", path)
    assert isinstance(unknown, Unreadable)
    assert all(name in unknown.why for name in ("Ada (1)", "Bob (1)", "Cyd (2)"))
    december, january = (each for each in read("whatsapp", path, "ada") if isinstance(each, Conversation))
    assert words(december) == [
        ("user", "Frohes Neues!"),
        ("Bob", "[file 00000003-PHOTO-2023-12-31-21-42-00.jpg]"),
        ("Cyd", "[media]"),
    ]
    assert at(january) == ["2024-01-01T00:05:10+00:00"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["25/12/2023, 21:41 - A: x", "26/12/2023, 21:41 - B: y"], ["2023-12-25T21:41:00", "2023-12-26T21:41:00"]),
        (["12/25/23, 9:41 PM - A: x", "12/26/23, 12:01 AM - B: y"], ["2023-12-25T21:41:00", "2023-12-26T00:01:00"]),
        (["1.2.24, 21:41 - A: x", "2.2.24, 21:41 - B: y"], ["2024-02-01T21:41:00", "2024-02-02T21:41:00"]),
        (["2/1/24, 9:41 PM - A: x", "2/3/24, 9:41 AM - B: y"], ["2024-02-01T21:41:00", "2024-02-03T09:41:00"]),
        (["01/02/24, 21:41 - A: x", "02/01/24, 21:41 - B: y"], ["2024-01-02T21:41:00", "2024-02-01T21:41:00"]),
        (["2023-12-25, 21:41 - A: x", "2023-12-26 21:41 - B: y"], ["2023-12-25T21:41:00", "2023-12-26T21:41:00"]),
        (["2023/12/25 下午9:41 - A: x", "2023/12/26 上午12:41 - B: y"], ["2023-12-25T21:41:00", "2023-12-26T00:41:00"]),
        (["25/12/23, 9:41 p. m. - A: x", "26/12/23, 9:41 a. m. - B: y"], ["2023-12-25T21:41:00", "2023-12-26T09:41:00"]),
        (["[25.12.23, 21:41:07] A: x", "[26.12.23 um 21:41:08] B: y"], ["2023-12-25T21:41:07", "2023-12-26T21:41:08"]),
        (["25/12/2023 à 21:41 - A: x", "26/12/2023 à 21:41 - B: y"], ["2023-12-25T21:41:00", "2023-12-26T21:41:00"]),
        (["25.12.2023 klo 21.41 - A: x", "26.12.2023 klo 21.42 - B: y"], ["2023-12-25T21:41:00", "2023-12-26T21:42:00"]),
        (["٢٥/١٢/٢٠٢٣، ٩:٤١ م - A: x", "٢٦/١٢/٢٠٢٣، ٩:٤١ ص - B: y"], ["2023-12-25T21:41:00", "2023-12-26T09:41:00"]),
    ],
)
def test_whatsapp_dates_of_many_languages(tmp_path: Path, lines: list[str], expected: list[str]) -> None:
    path = exports.written(tmp_path / "WhatsApp Chat with B.txt", "\r\n".join(lines))
    found = [each for whole in read("whatsapp", path) if isinstance(whole, Conversation) for each in whole.messages]
    assert [datetime.fromtimestamp(each.at, UTC).isoformat().removesuffix("+00:00") for each in found] == expected


# Telegram ----------------------------------------------------------------------------------------------------------


def test_telegram_one_chat(tmp_path: Path) -> None:
    march, april = (
        each
        for each in read("telegram", exports.written(tmp_path / "result.json", exports.TELEGRAM_CHAT))
        if isinstance(each, Conversation)
    )
    assert (march.key, march.title) == ("222/2023-03", "Bob, 2023-03")
    assert words(march) == [("user", "The code of the gate is 4711, see https://e.org")]
    assert words(april) == [
        ("Bob", "[voice message gate.pdf]"),
        ("Deleted account", "[forwarded from News]\n[photo]\nlook"),
    ]
    assert at(march) == ["2023-03-01T10:01:00+00:00"]


def test_telegram_all_of_an_account(tmp_path: Path) -> None:
    found = read("telegram", exports.written(tmp_path / "result.json", exports.TELEGRAM_ALL))
    assert all(isinstance(each, Conversation) for each in found)
    assert [each.key for each in found if isinstance(each, Conversation)] == ["222/2023-03", "222/2023-04", "333/2023-03"]
    group = found[-1]
    assert isinstance(group, Conversation)
    assert words(group) == [("user", "rent is due"), ("Cyd", "paid")]


def test_telegram_a_group_by_itself_asks_who_its_exporter_is(tmp_path: Path) -> None:
    path = exports.written(tmp_path / "result.json", exports.TELEGRAM_ALL["chats"]["list"][1])
    (unknown,) = read("telegram", path)
    assert isinstance(unknown, Unreadable)
    assert "Ada, Cyd" in unknown.why
    assert words(only("telegram", path, "cyd")) == [("Ada", "rent is due"), ("user", "paid")]
    assert words(only("telegram", path, "111")) == [("user", "rent is due"), ("Cyd", "paid")]
    with pytest.raises(ExportError, match=r"Nothing in result\.json was written by 'Adda'"):
        read("telegram", path, "Adda")


# Bounds and what is none -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("content", ["", "hello\n", "[", "{}", "[1, 2", '{"a": ' * 200, "\x00\x01", "[NaN]", '[{"mapping": ', "12/12/12"])
def test_what_is_no_export_is_said(tmp_path: Path, kind: Format, content: str) -> None:
    path, found = exports.written(tmp_path / "file.json", content), list[Conversation | Unreadable]()
    with contextlib.suppress(ExportError):
        found = read(kind, path)
    assert not [each for each in found if isinstance(each, Conversation)]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_that_is_not_there_and_bytes_that_are_no_text(tmp_path: Path, kind: Format) -> None:
    with pytest.raises(ExportError, match="cannot be opened"):
        read(kind, tmp_path / "nothing.json")
    (tmp_path / "bytes.json").write_bytes(b"[\xff\xfe\xff")
    with pytest.raises(ExportError):
        read(kind, tmp_path / "bytes.json")


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "FREE_BYTES", 2**20)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as whole:
        whole.writestr("conversations.json", "[" + " " * (64 * 2**20) + "]")
    with pytest.raises(ExportError, match="unpacks to more"):
        read("chatgpt", path)


def test_a_device_is_not_read_for_ever() -> None:
    with pytest.raises(ExportError, match="/dev/zero is a device, no file"):
        list(opening.streams(Path("/dev/zero"), r"conversations\.json"))


def test_a_damaged_zip_and_one_without_the_file(tmp_path: Path) -> None:
    path = exports.zipped(tmp_path / "e.zip", conversations__json=[exports.chatgpt(*exports.BOILER, current="a2", title="x" * 5000)])
    body = bytearray(path.read_bytes())
    body[60:90] = bytes(30)
    (tmp_path / "damaged.zip").write_bytes(bytes(body))
    with pytest.raises(ExportError):
        read("chatgpt", tmp_path / "damaged.zip")
    with pytest.raises(ExportError, match="none of the files"):
        read("chatgpt", exports.zipped(tmp_path / "other.zip", user__json={}))


def test_a_database_that_is_another_programs(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE sessions (id TEXT)")
        db.execute(
            "CREATE VIEW messages AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, 'user' AS role FROM n"
        )
    with pytest.raises(ExportError, match="not a database of Hermes"):
        read("hermes", path)


def test_a_value_that_never_ends_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling, "LONGEST_VALUE", 2**20)
    path = exports.written(tmp_path / "conversations.json", '[{"title": "' + "x" * (4 * 2**20) + '"}]')
    with pytest.raises(ExportError, match="MiB"):
        read("chatgpt", path)


def test_long_conversations_come_in_parts_that_stay(tmp_path: Path) -> None:
    def told(count: int) -> list[Any]:
        messages = [{"uuid": f"m{n}", "sender": "human", "text": f"line {n}", "created_at": "2024-01-01T00:00:00Z"} for n in range(count)]
        return [{"uuid": "u", "name": "Long", "created_at": "2024-01-01T00:00:00Z", "chat_messages": messages}]

    first = read("claude", exports.written(tmp_path / "conversations.json", told(MOST + 5)))
    later = read("claude", exports.written(tmp_path / "conversations.json", told(MOST + 9)))
    assert [each.key for each in first if isinstance(each, Conversation)] == ["u", "u#2"]
    assert first[0] == later[0]
    assert isinstance(later[1], Conversation)
    assert later[1].title == "Long (2)"
    assert len(later[1].messages) == 9


def test_large_files_are_read_piece_by_piece(tmp_path: Path) -> None:
    count = 3_000
    with (tmp_path / "conversations.json").open("w") as file:
        file.write("\ufeff[\n")
        for number in range(count):
            each = exports.chatgpt(exports.node("q", None, "user", f"question {number} ünï"), current="q", number=f"c{number}")
            file.write(json.dumps(each, ensure_ascii=False) + (",\n" if number < count - 1 else "\n"))
        file.write("]")
    found = read("chatgpt", tmp_path / "conversations.json")
    assert [each.key for each in found if isinstance(each, Conversation)] == [f"c{number}" for number in range(count)]
