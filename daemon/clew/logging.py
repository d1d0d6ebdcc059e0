"""Structured logs: dotted event names, JSON for machines, one redactor in front of every line."""

import logging
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

import structlog

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
    render = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()) if console else structlog.processors.JSONRenderer(ensure_ascii=False)
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _redactor(redact),
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
