"""A fake `claude`: an executable that reads lines of JSON and replays what the real one was seen to answer, exit codes included.

It refuses options that it does not know, and it does what a bare model must not be let do: it runs a `/command` and reads the
file that an `@path` names, where the real one would.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JsonObject = dict[str, Any]

MODEL = "claude-sonnet-5"
WINDOW = 200_000


@dataclass(frozen=True, slots=True)
class Step:
    """What a process does with one message.

    lines: what it prints. then: None to go on with the next message, an exit code to end with (negative: by that signal), `stall`, or
    `stubborn`: stall and ignore SIGTERM.
    stderr: what it complains.
    """

    lines: tuple[JsonObject, ...] = ()
    then: int | str | None = None
    stderr: str = ""


class FakeClaude:
    """Makes the executable in `folder`, which must be empty. Each message takes the next planned step; without one it is echoed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.executable = folder / "claude"
        for name in ("steps", "log"):
            (folder / name).mkdir(parents=True)
        self.signed_in()
        self.refuse("")
        (folder / "program.py").write_text(Path(__file__).with_name("claude_program.py").read_text())
        command = " ".join(shlex.quote(part) for part in (sys.executable, "-SE", str(folder / "program.py")))
        self.executable.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        self.executable.chmod(0o755)

    def plan(self, *steps: Step) -> None:
        for step in steps:
            number = time.monotonic_ns()
            hidden = self.folder / f"{number}.part"
            hidden.write_text(json.dumps({"lines": step.lines, "then": step.then, "stderr": step.stderr}))
            hidden.rename(self.folder / "steps" / f"{number:024d}")

    def signed_in(self, answer: str = '{"loggedIn": true}', code: int = 0, *, stall: bool = False) -> None:
        (self.folder / "auth.json").write_text(json.dumps({"answer": answer, "code": code, "stall": stall}))

    def refuse(self, option: str) -> None:
        """Be a version that does not know `option`."""
        (self.folder / "refused").write_text(option)

    @property
    def starts(self) -> list[JsonObject]:
        """Each process that was asked for a model: its pid, argv, env, cwd and what stands in it, the system prompt and file modes."""
        return [entry for entry in self._entries() if "argv" in entry]

    @property
    def heard(self) -> list[JsonObject]:
        """Each message: the pid of its process, and the texts of its blocks."""
        return [entry for entry in self._entries() if "texts" in entry]

    def _entries(self) -> list[JsonObject]:
        return [json.loads(path.read_text()) for path in sorted((self.folder / "log").iterdir())]


def alive(pid: int) -> bool:
    """Whether the process runs: neither gone nor a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def streamed(text: str, *, stop: str | None = "end_turn", model: str = MODEL, usage: JsonObject | None = None) -> list[JsonObject]:
    """The lines of one message of the API; `stop` None is one that breaks off in the middle."""
    counts = usage or {"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 30, "output_tokens": 1}
    start = {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "model": model, "content": [], "usage": counts}}
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    deltas = [{"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": piece}} for piece in pieces]
    thought = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}
    events = [start, thought, *deltas]
    if stop is not None:
        events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}})
        events.append({"type": "message_stop"})
    return [{"type": "stream_event", "event": event, "parent_tool_use_id": None} for event in events]


def result(text: str, **fields: Any) -> JsonObject:
    """A result line, of a success unless `fields` say otherwise."""
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "api_error_status": None,
        "result": text,
        "stop_reason": "end_turn",
        "modelUsage": {MODEL: {"inputTokens": 1, "contextWindow": WINDOW, "maxOutputTokens": 64_000}},
        "terminal_reason": "completed",
        **fields,
    }


def said(text: str) -> JsonObject:
    return {"type": "assistant", "message": {"model": MODEL, "content": [{"type": "text", "text": text}]}, "parent_tool_use_id": None}


def answers(text: str, **usage: int) -> Step:
    """An answer that goes well."""
    return Step((*streamed(text, usage=usage or None), said(text), result(text)))


def fails(text: str, *, error: str | None = None, status: int | None = None, before: tuple[JsonObject, ...] = (), **fields: Any) -> Step:
    """An answer that fails, as the CLI tells it: `subtype` stays `success`. Ends with exit code 1."""
    told = said(text)
    told["message"]["model"] = "<synthetic>"
    if error is not None:
        told["error"] = error
    failed = {"is_error": True, "api_error_status": status, "stop_reason": "stop_sequence", "modelUsage": {}, **fields}
    return Step((*before, told, result(text, **failed)), then=1)


def retries(status: int | None, error: str) -> JsonObject:
    """The CLI tries again by itself."""
    return {"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 1, "error_status": status, "error": error}


def limit(status: str, **fields: Any) -> JsonObject:
    return {"type": "rate_limit_event", "rate_limit_info": {"status": status, "rateLimitType": "five_hour", **fields}}
