"""clew as a program that is killed at one of its own points: at a commit, at a request to the model, at a call, at a send.

`python -m tests.acceptance.fault_points` reads jobs, a line of JSON each, and forks a daemon for each: so the imports are paid for once.
For each job it writes the daemon's process id, and when it has ended its status, negative for a signal. A job that names the folder of a
PostgreSQL server has that killed in the daemon's place, once.
"""

import functools
import gc
import importlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from clew.cli import main
from clew.plugins import registry
from clew.providers.anthropic import Anthropic
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
from tests.acceptance import server_points
from tests.acceptance.points import Points, Reach, in_writes

WARM = ("anthropic", "clew.cli.run", "clew.service", "clew.web.server", "clew.providers.watch")
PLUGINS = ("clew.transports", "clew.providers", "clew.embedders", "clew.transcribers", "clew.tools", "clew.recall")
"""What a daemon would import only when it needs it."""


def install(reach: Reach) -> None:
    """Put the points into this process's clew."""
    in_writes(reach)
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


def _around(owner: type, method: str, name: str, reach: Reach) -> None:
    wrapped = getattr(owner, method)

    @functools.wraps(wrapped)
    async def around(*args: Any, **kwargs: Any) -> Any:
        reach(f"before {name}")
        done = await wrapped(*args, **kwargs)
        reach(f"after {name}")
        return done

    setattr(owner, method, around)


def _around_files(reach: Reach) -> None:
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


def _around_confirmation(reach: Reach) -> None:
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


def _behind_acknowledgement(reach: Reach) -> None:
    acknowledge = Connection.acknowledge

    def acknowledged(self: Connection, packet: Any) -> None:
        acknowledge(self, packet)
        self._client.loop_write()  # the event loop would do it in its next round: a kill must find it gone
        reach("acknowledged")

    Connection.acknowledge = acknowledged  # type: ignore[method-assign]


def _in_stream(reach: Reach) -> None:
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
    points = os.open(job["points"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    if job["server"]:
        server_points.install(Points(job["at"], points, lambda: None), Path(job["server"]), job["store"])
    else:
        install(Points(job["at"], points))
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
