"""The figures served at `/metrics`."""

from typing import Any, Self

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)


class Labelled(Counter):
    """A counter that remembers its children: prometheus_client takes a lock and makes texts of the labels whenever one is asked for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._known: dict[tuple[Any, ...], Self] = {}
        super().__init__(*args, **kwargs)

    def labels(self, *labelvalues: Any, **labelkwargs: Any) -> Self:
        if labelkwargs:
            return super().labels(*labelvalues, **labelkwargs)
        if labelvalues not in self._known:
            self._known[labelvalues] = super().labels(*labelvalues)
        return self._known[labelvalues]


class Metrics:
    """One registry of our own; nothing of the process is measured by default."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.messages = Labelled("clew_messages", "Messages taken in and replies sent", ["transport", "direction"], registry=registry)
        self.turn_seconds = Histogram("clew_turn_seconds", "Duration of a turn", buckets=SECONDS, registry=registry)
        self.turns = Labelled("clew_turns", "Turns by how they ended", ["outcome"], registry=registry)
        self.tokens = Labelled("clew_model_tokens", "Tokens of model calls", ["provider", "kind"], registry=registry)
        self.model_errors = Counter("clew_model_errors", "Failed model calls", ["provider", "kind"], registry=registry)
        self.fallbacks = Counter("clew_model_fallbacks", "Calls that were left to the next provider", ["provider"], registry=registry)
        self.breaker_open = Gauge("clew_provider_breaker_open", "1 while a provider is left alone", ["provider"], registry=registry)
        self.compactions = Counter("clew_compactions", "Compactions", ["trigger", "outcome"], registry=registry)
        self.recall_seconds = Histogram(
            "clew_recall_seconds", "Duration of a recall", buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1), registry=registry
        )
        self.inbox_pending = Gauge("clew_inbox_pending", "Arrivals that wait", registry=registry)
        self.outbox_pending = Gauge("clew_outbox_pending", "Replies that wait", registry=registry)
        self.outbox_dead = Gauge("clew_outbox_dead", "Replies that no platform takes", registry=registry)
        self.transport_up = Gauge("clew_transport_up", "1 while a transport is connected", ["transport"], registry=registry)
        self.cron_runs = Counter("clew_cron_runs", "Runs of scheduled prompts", ["job", "outcome"], registry=registry)

    def render(self) -> bytes:
        return generate_latest(self.registry)
