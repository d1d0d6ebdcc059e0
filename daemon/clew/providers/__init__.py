"""Ways to reach a model: the door, one file per way. Providers are stateless."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal, Protocol

from clew.messages import Block, Usage
from clew.request import PromptMessage as PromptMessage
from clew.request import Purpose as Purpose
from clew.request import Request as Request
from clew.request import SystemBlock as SystemBlock
from clew.request import SystemKind as SystemKind
from clew.request import ToolSpec as ToolSpec
from clew.request import Ttl as Ttl


@dataclass(frozen=True, slots=True)
class Began:
    """The response has begun: what the request marked is in the cache now."""

    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """Words of the reply, in order."""

    text: str


Stop = Literal["end", "tools", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Done:
    """The whole response. `blocks` in the model's order; `model` is the name the provider reports."""

    blocks: tuple[Block, ...]
    stop: Stop
    usage: Usage
    model: str = ""


Event = Began | Delta | Done

ErrorKind = Literal["rate_limit", "overloaded", "quota", "auth", "overflow", "invalid", "server", "network", "cut", "stall", "unavailable"]
RETRYABLE: frozenset[ErrorKind] = frozenset({"rate_limit", "overloaded", "server", "network", "cut", "stall"})


class ProviderError(Exception):
    """A model call that failed.

    kind: what to do about it follows from this alone. retry_after: seconds the provider asked us to wait. text_delivered: words had
    already been streamed. tokens: (sent, allowed) where an overflow says so.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        retry_after: float | None = None,
        text_delivered: bool = False,
        tokens: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after
        self.text_delivered = text_delivered
        self.tokens = tokens


@dataclass(frozen=True, slots=True)
class Limits:
    """What a model can take.

    window, max_output: tokens. marker_minimum: the shortest prefix a marker caches, None without markers. files: media types that it takes
    as they are.
    """

    window: int
    max_output: int
    marker_minimum: int | None = None
    files: frozenset[str] = frozenset()


class Provider(Protocol):
    """A way to reach one model."""

    @property
    def name(self) -> str:
        """The section of the config."""

    @property
    def kind(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def cache_ttl(self) -> Ttl | None: ...

    @property
    def max_tokens(self) -> int | Literal["auto"]:
        """The longest reply in tokens; `auto` is min(4096, a quarter of the window)."""

    @property
    def configured(self) -> bool:
        """False where a key is needed and missing."""

    async def prepare(self) -> None:
        """Import what is heavy (in a thread). Called before the daemon says that it is ready."""

    async def answers(self) -> bool:
        """A quick look whether the endpoint is there; no tokens are spent. Used to resolve `provider: auto`."""

    async def limits(self) -> Limits:
        """Asked of the endpoint once where it tells, else known or configured numbers. Never raises."""

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Began, any number of Delta, one Done. Raises ProviderError."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to the first byte of a response and between two bytes of it."""

    first_byte: float = 60.0
    between: float = 60.0


def backoff(attempt: int, retry_after: float | None, rand: float, *, base: float = 0.5, cap: float = 60.0) -> float:
    """Seconds to wait before try `attempt` + 1 (attempt counts from 1).

    A stated wait is honoured up to `cap`; else `base` doubles up to `cap`, less up to a quarter by `rand` in [0, 1).
    """
    if retry_after is not None:
        return min(max(retry_after, 0.0), cap)
    return min(cap, base * 2.0 ** min(attempt - 1, 30)) * (1 - 0.25 * rand)
