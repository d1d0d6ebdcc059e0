"""The program of the fake `claude`; see claude.py, which copies it to a folder of its own. Imports nothing but the standard library."""

import json
import os
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FLAGS = {"-p", "--verbose", "--include-partial-messages", "--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence"}
VALUES = {"--input-format", "--output-format", "--model", "--system-prompt-file", "--tools", "--setting-sources"}


def note(entry: dict[str, Any]) -> None:
    number = time.monotonic_ns()
    hidden = HERE / f"{number}-{os.getpid()}.part"
    hidden.write_text(json.dumps(entry))
    hidden.rename(HERE / "log" / f"{number:024d}-{os.getpid()}")


def say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def options(argv: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    rest = list(argv)
    refused = (HERE / "refused").read_text()
    while rest:
        name = rest.pop(0)
        if name == refused or name not in FLAGS | VALUES:
            complain(f"error: unknown option '{name}'")
            sys.exit(1)
        found[name] = rest.pop(0) if name in VALUES else ""
    return found


def status() -> None:
    plan = json.loads((HERE / "auth.json").read_text())
    if plan["stall"]:
        signal.pause()
    print(plan["answer"])
    sys.exit(plan["code"])


def take() -> Any:
    for path in sorted((HERE / "steps").iterdir()):
        try:
            taken = path.rename(HERE / f"taken-{path.name}")
        except FileNotFoundError:
            continue
        return json.loads(taken.read_text())
    return None


def echo(texts: list[str]) -> None:
    text = "answer to: " + (texts[-2] if len(texts) > 1 else texts[-1])
    start: dict[str, Any] = {
        "type": "message_start",
        "message": {"model": "claude-sonnet-5", "usage": {"input_tokens": 10, "output_tokens": 1}},
    }
    delta: dict[str, Any] = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    for event in (start, delta, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}):
        say({"type": "stream_event", "event": event})
    say({"type": "result", "subtype": "success", "is_error": False, "result": text, "stop_reason": "end_turn"})


def perform(step: dict[str, Any]) -> None:
    if step["stderr"]:
        complain(step["stderr"])
    for line in step["lines"]:
        say(line)
    then = step["then"]
    if then == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if then in ("stall", "stubborn"):
        signal.pause()
    if isinstance(then, int):
        if then < 0:
            os.kill(os.getpid(), -then)
        sys.exit(then)


def answer(texts: list[str]) -> None:
    last = texts[-1]
    if last.startswith("/"):
        say({"type": "result", "subtype": "success", "is_error": False, "result": f"{last} isn't available in this environment."})
        return
    named = [word[1:] for word in last.split() if word.startswith("@")]
    if named and os.environ.get("CLAUDE_CODE_DISABLE_ATTACHMENTS") != "1":
        texts = [*texts[:-1], Path(named[0]).read_text(), last]
    step = take()
    echo(texts) if step is None else perform(step)


def main() -> None:
    if sys.argv[1:] == ["auth", "status"]:
        status()
    given = options(sys.argv[1:])
    if given.get("--output-format") == "stream-json" and "--verbose" not in given:
        complain("Error: When using --print, --output-format=stream-json requires --verbose")
        sys.exit(1)
    prompt = Path(given["--system-prompt-file"])
    folder = stat.S_IMODE(prompt.parent.stat().st_mode)
    note(
        {
            "pid": os.getpid(),
            "argv": sys.argv[1:],
            "env": dict(os.environ),
            "cwd": os.getcwd(),
            "files": os.listdir("."),
            "system": prompt.read_text(encoding="utf-8"),
            "folder": str(prompt.parent),
            "mode": folder,
        }
    )
    say({"type": "system", "subtype": "init", "tools": [], "model": given["--model"]})
    for line in sys.stdin:
        message = json.loads(line)["message"]
        texts = [block["text"] for block in message["content"]]
        note({"pid": os.getpid(), "texts": texts})
        answer(texts)


if __name__ == "__main__":
    main()
