"""Structured logs: dotted event names, JSON for machines, one redactor in front of every line."""

import logging
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, TextIO, cast

import structlog

from clew.log_ring import recent

Redact = Callable[[str], str]

_QUIET = (
    "aiohttp.access",
    "apscheduler",
    "httpx2",
    "httpcore2",
    "httpx",
    "httpcore",
    "anthropic",
    "openai",
    "asyncio",
    "aiosqlite",
    "mqtt",
)
"""Libraries that would log addresses, headers or bodies below warning: request URLs may hold tokens."""


def setup(level: str, format: Literal["auto", "console", "json"], redact: Redact) -> None:
    """Send our log and everybody's to stderr. `redact` is handed in, so that nothing secret passes whichever room logs it."""
    console = format == "console" or (format == "auto" and sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
        structlog.processors.UnicodeDecoder(),
    ]
    render: structlog.typing.Processor = structlog.processors.JSONRenderer(ensure_ascii=False)
    if console:
        render = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    elif _journal_reads(sys.stderr):
        render = _with_priority(render)
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _redactor(redact),
            _keep,
            render,
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_is_ours)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it quotes what servers say; what ends a connection is ours to log
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(root.level),
        cache_logger_on_first_use=True,
    )


def _journal_reads(stream: TextIO) -> bool:
    """Whether systemd's journal is at the other end: it names the device and inode of its pipe (systemd.exec(5), $JOURNAL_STREAM)."""
    try:
        about = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{about.st_dev}:{about.st_ino}"


PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}
"""syslog(3)'s numbers, which the journal takes from the beginning of a line (sd-daemon(3))."""


def _with_priority(render: structlog.typing.Processor) -> structlog.typing.Processor:
    def process(logger: Any, name: str, event: structlog.typing.EventDict) -> str:
        priority = PRIORITIES[event["level"]]  # before rendering takes the event apart
        return f"<{priority}>{cast(str, render(logger, name, event))}"

    return process


def _keep(logger: Any, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    recent.keep(event)
    return event


def _is_ours(record: logging.LogRecord) -> bool:
    """False for the traceback that aiohttp logs for each line that is no HTTP: whoever reaches the port could fill the disk with them."""
    error = record.exc_info[1] if record.exc_info else None
    return type(error).__module__ != "aiohttp.http_exceptions"


SHORT = 64
"""Characters of values that come again and again (event names, ids, transports): what they look like redacted is remembered."""


def _redactor(redact: Redact) -> structlog.typing.Processor:
    remembered = lru_cache(maxsize=2048)(redact)

    def clean(value: Any) -> Any:
        match value:
            case str():
                return remembered(value) if len(value) <= SHORT else redact(value)
            case dict():
                return {key: clean(each) for key, each in value.items()}
            case list() | tuple():
                return [clean(each) for each in value]
            case None | bool() | int() | float():
                return value
        return redact(str(value))

    def process(logger: Any, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        return {key: clean(value) for key, value in event.items()}

    return process
