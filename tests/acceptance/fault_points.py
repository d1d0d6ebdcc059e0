"""clew as a program that is killed at one of its own points: at a commit, at a request to the model, at a call, at a send.

`python -m tests.acceptance.fault_points` reads jobs, a line of JSON each, and forks a daemon for each: so the imports are paid for once.
For each job it writes the daemon's process id, and when it has ended its status, negative for a signal.
"""

import functools
import gc
import importlib
import inspect
import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from clew.cli import main
from clew.plugins import registry
from clew.providers.anthropic import Anthropic
from clew.store import grouping
from clew.store.files.folder import Writing
from clew.tools.runner import ToolRunner
from clew_transports.discord.sending import Sender
from clew_transports.discord.transport import DiscordTransport
from clew_transports.mqtt.connection import Connection
from clew_transports.mqtt.transport import MqttTransport
from clew_transports.slack.transport import SlackTransport
from clew_transports.telegram.api import Api
from clew_transports.telegram.transport import TelegramTransport
from clew_transports.webhook.transport import WebhookTransport

WARM = ("anthropic", "clew.cli.run", "clew.service", "clew.web.server", "clew.providers.watch")
PLUGINS = ("clew.transports", "clew.providers", "clew.embedders", "clew.transcribers", "clew.tools", "clew.recall")
"""What a daemon would import only when it needs it."""


class Points:
    """Writes the name of each point down as it is passed, with how often it was by then, and kills this process at one of them.

    at: such a line, empty for none. file: descriptor that they are written to.
    """

    def __init__(self, at: str, file: int) -> None:
        self._at = at
        self._file = file
        self._passed: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, name: str) -> None:
        with self._lock:
            self._passed[name] += 1
            point = f"{name} {self._passed[name]}"
            os.write(self._file, f"{point}\n".encode())
            if point == self._at:
                os.kill(os.getpid(), signal.SIGKILL)
                threading.Event().wait()


def install(reach: Callable[[str], None]) -> None:
    """Put the points into this process's clew."""
    transact, idle = grouping._transact, set[Any]()

    def written(run: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
        def then_reach(db: Any, write: Any, kind: Any) -> Any:
            due = write.look is None or write.look(db)[0]  # one that shares a commit with others is not asked
            done = run(db, write, kind)
            if due and not _claimed_nothing(write, done):
                idle.discard(write)
                reach(f"written {_verb(write)}")
            else:
                idle.add(write)
            return done

        return then_reach

    def committed(db: Any, group: Any, **how: Any) -> Any:
        done = transact(db, group, **how)
        for write in group:  # which of them share a commit is a matter of moments
            if write not in idle:
                reach(f"committed {_verb(write)}")
        idle.clear()
        return done

    for name in ("_first", "_part"):
        setattr(grouping, name, written(getattr(grouping, name)))
    grouping._transact = committed
    _around(ToolRunner, "_run", "call", reach)
    _around(MqttTransport, "send", "send", reach)
    _around(WebhookTransport, "send", "send", reach)
    _around(TelegramTransport, "send", "send", reach)
    _around(TelegramTransport, "_previewed", "preview", reach)
    _around(DiscordTransport, "send", "send", reach)
    _around(Sender, "preview", "preview", reach)
    _around_files(reach)
    _around(SlackTransport, "send", "send", reach)
    _around(SlackTransport, "_previewed", "preview", reach)
    _around_confirmation(reach)
    _behind_acknowledgement(reach)
    _in_stream(reach)


def _verb(write: Any) -> str:
    run = inspect.getclosurevars(write.run).nonlocals.get("run")
    run = run.func if isinstance(run, functools.partial) else run
    return str(getattr(run, "__name__", "other")).lstrip("_")


def _claimed_nothing(write: Any, outcome: Any) -> bool:
    """Whether it looked for a turn or a delivery and there was none after all. How often that happens is a matter of moments too."""
    value, _ = outcome
    return write.look is not None and _verb(write) in ("claim", "take") and not (value[0] if isinstance(value, tuple) and value else value)


def _around(owner: type, method: str, name: str, reach: Callable[[str], None]) -> None:
    wrapped = getattr(owner, method)

    @functools.wraps(wrapped)
    async def around(*args: Any, **kwargs: Any) -> Any:
        reach(f"before {name}")
        done = await wrapped(*args, **kwargs)
        reach(f"after {name}")
        return done

    setattr(owner, method, around)


def _around_files(reach: Callable[[str], None]) -> None:
    """Where a file of a message is fetched, and where it is given its place."""
    download, keep = Api.download, Writing.keep

    async def downloaded(self: Api, file_id: str) -> AsyncIterator[bytes]:
        reach("before download")
        async for piece in download(self, file_id):
            yield piece
            reach("piece")

    def kept(self: Writing) -> None:
        reach("before keep")
        keep(self)
        reach("after keep")

    Api.download = downloaded  # type: ignore[method-assign]
    Writing.keep = kept  # type: ignore[method-assign]


def _around_confirmation(reach: Callable[[str], None]) -> None:
    """The poll whose offset confirms what is stored: before it leaves, and once Telegram has it."""
    call = Api.call

    async def confirming(self: Api, method: str, arguments: Any = None, *more: Any, **named: Any) -> Any:
        if method != "getUpdates" or "offset" not in arguments:
            return await call(self, method, arguments, *more, **named)
        reach("before confirmation")
        await call(self, method, {**arguments, "timeout": 0}, *more, **named)
        reach("confirmed")
        return await call(self, method, arguments, *more, **named)

    Api.call = confirming  # type: ignore[method-assign]


def _behind_acknowledgement(reach: Callable[[str], None]) -> None:
    acknowledge = Connection.acknowledge

    def acknowledged(self: Connection, packet: Any) -> None:
        acknowledge(self, packet)
        self._client.loop_write()  # the event loop would do it in its next round: a kill must find it gone
        reach("acknowledged")

    Connection.acknowledge = acknowledged  # type: ignore[method-assign]


def _in_stream(reach: Callable[[str], None]) -> None:
    stream = Anthropic.stream

    async def watched(self: Anthropic, request: Any) -> AsyncIterator[Any]:
        reach("before request")
        seen = set()
        async for event in stream(self, request):
            kind = type(event).__name__.lower()
            if kind not in seen:
                seen.add(kind)
                reach(f"response {kind}")
            yield event

    Anthropic.stream = watched  # type: ignore[assignment, method-assign]


def _daemon(job: dict[str, Any]) -> None:
    """The forked process. It does not return."""
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(job["environment"])
    install(Points(job["at"], os.open(job["points"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)))
    main(["run", "--config", job["config"]])


def _serve() -> None:
    for name in WARM:
        importlib.import_module(name)
    for group in PLUGINS:
        registry(group)
    gc.collect()
    gc.freeze()  # no daemon has to look through it again
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _daemon(json.loads(line))
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    _serve()
