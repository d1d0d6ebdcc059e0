"""Exports of other programs as they write them, made up for the tests."""

import json
import sqlite3
import zipfile
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]
FIRST_DAY, LAST_DAY = datetime(2010, 1, 1), datetime(2026, 12, 31)


def node(key: str, parent: str | None, role: str, *parts: Any, at: float | None = None, **more: Any) -> Json:
    """A node of ChatGPT's tree. more: of its message; `kind`: its content type, `name`: of a tool."""
    content = {"content_type": more.pop("kind", "text"), "parts": list(parts)}
    author = {"role": role, "name": more.pop("name", None), "metadata": {}}
    message = {"id": f"m-{key}", "author": author, "create_time": at, "content": content, "status": "finished_successfully", "weight": 1.0}
    return {"id": key, "parent": parent, "children": [], "message": message | {"metadata": {}, "recipient": "all"} | more}


def chatgpt(*nodes: Json, current: str, title: str = "The boiler", number: str = "c-1") -> Json:
    mapping = {each["id"]: each for each in nodes}
    for each in nodes:
        if each["parent"] in mapping:
            mapping[each["parent"]]["children"].append(each["id"])
    return {
        "title": title,
        "create_time": 1_700_000_000.5,
        "update_time": 1_700_000_100.0,
        "mapping": mapping,
        "current_node": current,
        "conversation_id": number,
        "id": number,
    }


BOILER: tuple[Json, ...] = (
    {"id": "root", "parent": None, "children": [], "message": None},
    node("sys", "root", "system", "", metadata={"is_visually_hidden_from_conversation": True}),
    node("q1", "sys", "user", "Which pressure does our boiler need?", at=1_700_000_001.0),
    node("a0", "q1", "assistant", "I do not know.", at=1_700_000_002.0),
    node("a1", "q1", "assistant", "Between 1.2 and 1.8 bar.", at=1_700_000_003.0),
    node(
        "q2",
        "a1",
        "user",
        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"},
        "And this one?",
        at=1_700_000_010.0,
    ),
    node("c1", "q2", "assistant", "print(1.5)", recipient="python", kind="code", at=1_700_000_011.0),
    node("t1", "c1", "tool", "1.5", name="python", kind="execution_output", at=1_700_000_012.0),
    node("h1", "t1", "assistant", "hm", kind="thoughts", at=1_700_000_012.5),
    node("a2", "h1", "assistant", "About 1.5 bar, by the plate.", at=1_700_000_013.0),
)

CLAUDE: Json = {
    "uuid": "5f0c",
    "name": "Tomatoes",
    "created_at": "2024-05-01T08:00:00.000000Z",
    "updated_at": "2024-05-01T08:10:00Z",
    "account": {"uuid": "a"},
    "chat_messages": [
        {
            "uuid": "m1",
            "text": "When do I plant tomatoes?",
            "content": [{"start_timestamp": None, "type": "text", "text": "When do I plant tomatoes?", "citations": []}],
            "sender": "human",
            "created_at": "2024-05-01T08:00:01.123456Z",
            "updated_at": "2024-05-01T08:00:01Z",
            "attachments": [{"file_name": "plan.txt", "file_size": 12, "file_type": "txt", "extracted_content": "bed 4: potatoes"}],
            "files": [{"file_name": "bed.jpg"}],
        },
        {
            "uuid": "m2",
            "text": "",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "I look it up."},
                {"type": "tool_use", "id": "toolu_1", "name": "web_search", "input": {"query": "tomatoes"}},
                {"type": "tool_result", "tool_use_id": "toolu_1", "name": "web_search", "content": [{"type": "text", "text": "mid May"}]},
                {"type": "text", "text": "In the middle of May."},
            ],
            "sender": "assistant",
            "created_at": "2024-05-01T08:00:05Z",
            "attachments": [],
            "files": [],
        },
    ],
}

HERMES: Json = {
    "id": "20260301_101500_ab12",
    "source": "cli",
    "title": "Backups",
    "started_at": 1_772_360_100.0,
    "messages": [
        {"id": 1, "role": "session_meta", "content": None, "timestamp": 1_772_360_100.0},
        {"id": 2, "role": "user", "content": "Is the backup of the NAS done?", "timestamp": 1_772_360_101.0},
        {
            "id": 3,
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}],
            "timestamp": 1_772_360_102.0,
        },
        {
            "id": 4,
            "role": "tool",
            "content": "nas-2026-02-28.tar",
            "tool_call_id": "call_1",
            "tool_name": "terminal",
            "timestamp": 1_772_360_103.0,
        },
        {"id": 5, "role": "assistant", "content": "Yes, on the 28th of February.", "timestamp": 1_772_360_104.0},
    ],
}

OPENCLAW: tuple[Json, ...] = (
    {"type": "session", "version": 3, "id": "b7300bff", "timestamp": "2026-04-08T01:03:43.107Z", "cwd": "/home/ada"},
    {"type": "model_change", "id": "e0", "parentId": None, "timestamp": "2026-04-08T01:03:43.116Z", "provider": "x", "modelId": "y"},
    {
        "type": "message",
        "id": "e1",
        "parentId": "e0",
        "timestamp": "2026-04-08T01:04:00.000Z",
        "message": {"role": "user", "content": [{"type": "text", "text": "Water the ferns on Friday"}], "timestamp": 1_775_610_240_000},
    },
    {
        "type": "message",
        "id": "dead",
        "parentId": "e1",
        "timestamp": "2026-04-08T01:04:05.000Z",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "an answer that was taken back"}]},
    },
    {
        "type": "message",
        "id": "e2",
        "parentId": "e1",
        "timestamp": "2026-04-08T01:04:10.000Z",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "I put it down."},
                {"type": "toolCall", "id": "tc1", "name": "cron", "arguments": {"day": "fri"}},
            ],
        },
    },
    {
        "type": "message",
        "id": "e3",
        "parentId": "e2",
        "timestamp": "2026-04-08T01:04:11.000Z",
        "message": {
            "role": "toolResult",
            "toolCallId": "tc1",
            "toolName": "cron",
            "content": [{"type": "text", "text": "ok"}],
            "isError": False,
        },
    },
    {"type": "compaction", "id": "e4", "parentId": "e3", "timestamp": "2026-04-08T02:00:00.000Z", "summary": "…", "firstKeptEntryId": "e1"},
    {
        "type": "message",
        "id": "e5",
        "parentId": "e4",
        "timestamp": "2026-04-08T02:00:01.000Z",
        "message": {"role": "assistant", "content": "Done: Fridays at nine."},
    },
)

WHATSAPP_ANDROID = """\
12/31/23, 9:41\u202fPM - Messages and calls are end-to-end encrypted. No one outside of this chat can read them.
12/31/23, 9:41\u202fPM - Ada: Happy new year!
The key lies under the pot: 12
12/31/23, 9:42\u202fPM - Bob: <Media omitted>
1/1/24, 12:05\u202fAM - Bob: IMG-20240101-WA0001.jpg (file attached)
From the roof
1/1/24, 12:06\u202fAM - Bob: https://e.org/a: b
1/1/24, 12:07\u202fAM - Bob: This message was deleted
1/2/24, 8:00\u202fAM - Ada changed this group's icon
2/13/24, 8:00\u202fAM - Ada: The plumber comes on Tuesday <This message was edited>
"""

WHATSAPP_IPHONE = """\
[31.12.23, 21:41:05] Familie: \u200eNachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt.
[31.12.23, 21:41:06] Ada: Frohes Neues!
\u200e[31.12.23, 21:42:00] ~ Bob: \u200e<Anhang: 00000003-PHOTO-2023-12-31-21-42-00.jpg>
\u200e[31.12.23, 21:43:00] Cyd: \u200eBild weggelassen
[01.01.24, 00:05:10] Cyd: Bis morgen
"""

TELEGRAM_CHAT: Json = {
    "name": "Bob",
    "type": "personal_chat",
    "id": 222,
    "messages": [
        {
            "id": 1,
            "type": "service",
            "date": "2023-03-01T10:00:00",
            "date_unixtime": "1677664800",
            "actor": "Ada",
            "actor_id": "user111",
            "action": "phone_call",
            "text": "",
            "text_entities": [],
        },
        {
            "id": 2,
            "type": "message",
            "date": "2023-03-01T10:01:00",
            "date_unixtime": "1677664860",
            "from": "Ada",
            "from_id": "user111",
            "text": ["The code of the gate is ", {"type": "code", "text": "4711"}, ", see ", {"type": "link", "text": "https://e.org"}],
            "text_entities": [],
        },
        {
            "id": 3,
            "type": "message",
            "date": "2023-04-02T09:00:00",
            "date_unixtime": "1680426000",
            "from": "Bob",
            "from_id": "user222",
            "reply_to_message_id": 2,
            "file": "(File not included. Change data exporting settings to download.)",
            "file_name": "gate.pdf",
            "media_type": "voice_message",
            "text": "",
            "text_entities": [],
        },
        {
            "id": 4,
            "type": "message",
            "date": "2023-04-02T09:01:00",
            "date_unixtime": "1680426060",
            "from": None,
            "from_id": "user222",
            "forwarded_from": "News",
            "photo": "(File not included)",
            "text": "look",
            "text_entities": [],
        },
    ],
}

TELEGRAM_ALL: Json = {
    "about": "Here is the data you requested.",
    "personal_information": {"user_id": 111, "first_name": "Ada", "last_name": "", "phone_number": "+49", "bio": ""},
    "contacts": {"about": "", "list": [{"first_name": "Bob"}]},
    "chats": {
        "about": "",
        "list": [
            TELEGRAM_CHAT,
            {
                "name": "House",
                "type": "private_group",
                "id": 333,
                "messages": [
                    {**TELEGRAM_CHAT["messages"][1], "id": 9, "text": "rent is due"},
                    {**TELEGRAM_CHAT["messages"][1], "id": 10, "from": "Cyd", "from_id": "user333", "text": "paid"},
                ],
            },
        ],
    },
    "left_chats": {"about": "", "list": []},
}


def written(path: Path, content: Any) -> Path:
    """A file with this JSON, or this text."""
    path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def zipped(path: Path, **files: Any) -> Path:
    """A zip with these files, names with `__` for the dot."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as whole:
        for name, content in files.items():
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            whole.writestr(name.replace("__", "."), text)
    return path


def hermes_database(path: Path, *sessions: Json) -> Path:
    """A state.db with these sessions."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, title TEXT, started_at REAL NOT NULL)")
        db.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT NOT NULL, content TEXT, tool_call_id TEXT,"
            " tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, active INTEGER DEFAULT 1)"
        )
        for each in sessions:
            db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?)", (each["id"], each["source"], each["title"], each["started_at"]))
            for said in each["messages"]:
                calls = json.dumps(said["tool_calls"]) if said.get("tool_calls") else None
                row = (said["id"], each["id"], said["role"], said["content"], said.get("tool_call_id"), calls, said.get("tool_name"))
                db.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, said["timestamp"], said.get("active", 1)))
    return path


def jsonl(path: Path, *objects: Json) -> Path:
    path.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects), encoding="utf-8")
    return path
