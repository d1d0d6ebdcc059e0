"""Traces of turns, model calls and tools for OpenTelemetry, by the names of its GenAI conventions. No text stands in them.

https://opentelemetry.io/docs/specs/semconv/gen-ai/ (attributes under development in November 2026). Off unless the environment names an
endpoint: by OpenTelemetry's convention its own variables configure it, not the program's config.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import structlog

from clew import __version__

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
FLUSH = 2.0
"""Seconds that the end of the process waits for spans that are not sent."""

Attributes = Mapping[str, str | int | float | bool]
Note = Callable[[Attributes], None]
"""Adds attributes to a span."""

log = structlog.get_logger()
_tracer: Any = None


def start() -> Callable[[], None]:
    """Begin to trace, where the environment asks for it. Returns what ends it."""
    global _tracer  # one per process, like the log
    if not any(os.environ.get(name) for name in ENDPOINTS) or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return lambda: None
    try:
        resources, sdk, export = (import_module(f"opentelemetry.sdk.{name}") for name in ("resources", "trace", "trace.export"))
        exporter = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter").OTLPSpanExporter()
    except ImportError as error:
        log.warning("tracing.off", err=str(error), hint="pip install 'clew[otel]'")
        return lambda: None
    about = {"service.name": os.environ.get("OTEL_SERVICE_NAME") or "clew", "service.version": __version__}
    provider = sdk.TracerProvider(resource=resources.Resource.create(about), shutdown_on_exit=False)
    provider.add_span_processor(export.BatchSpanProcessor(exporter))
    _tracer = provider.get_tracer("clew", __version__)

    def stop() -> None:
        global _tracer
        _tracer = None
        ending = threading.Thread(target=provider.shutdown, daemon=True)  # the SDK's own bound is not kept while it exports
        ending.start()
        ending.join(FLUSH)

    return stop


@contextmanager
def span(name: str, attributes: Attributes) -> Iterator[Note]:
    """A span around the block; what ends it by an exception is its `error.type`."""
    if _tracer is None:
        yield _nothing
        return
    api = import_module("opentelemetry.trace")
    with _tracer.start_as_current_span(name, attributes=attributes, record_exception=False, set_status_on_exception=False) as current:
        try:
            yield current.set_attributes
        except BaseException as error:
            current.set_status(api.StatusCode.ERROR)
            current.set_attribute("error.type", str(getattr(error, "kind", type(error).__name__)))
            raise


def note(attributes: Attributes) -> None:
    """Add to the span around the caller."""
    if _tracer is not None:
        import_module("opentelemetry.trace").get_current_span().set_attributes(attributes)


def _nothing(attributes: Attributes) -> None:
    pass
