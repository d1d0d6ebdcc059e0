"""Tools the model can call: the door."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache
from hashlib import blake2b

from pydantic import BaseModel

from clew.request import ToolSpec
from clew.store import Person

TIMEOUT = 120.0
"""Seconds that a call may take where its tool does not say."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """On whose behalf a tool runs. It comes from the turn, never from the model.

    address: where the turn is answered. after_seq: the last row of the session that is not in view. now: seconds since the epoch, UTC.
    scheduled: nobody wrote, a job runs. direct: the person's own chat, which nobody else reads.
    """

    session: str
    turn: str
    address: str
    person: Person | None
    after_seq: int
    zone: tzinfo
    zone_name: str
    now: float
    scheduled: bool = False
    direct: bool = False


ToolRun = Callable[[ToolContext, BaseModel], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. Arguments: the model its arguments are checked with. idempotent: may run again after a crash. timeout: seconds that one call
    may take. asks: it changes more than the asker's own notes, so that it needs a rule or a yes. foreign: the
    JSON Schema of its arguments where somebody else wrote it.
    """

    name: str
    description: str
    Arguments: type[BaseModel]
    run: ToolRun
    idempotent: bool = False
    asks: bool = False
    timeout: float = TIMEOUT
    foreign: str = ""

    @property
    def wording(self) -> str:
        """A fingerprint of what somebody else says of the tool, empty where it is ours or a plug-in's: who has said yes to it for good has
        said so of that."""
        return blake2b(f"{self.description}\0{self.foreign}".encode(), digest_size=16).hexdigest() if self.foreign else ""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, self.foreign or schema(self.Arguments))


class ToolError(Exception):
    """A tool cannot do what was asked; its text is for the model."""


_LEFT_OUT = frozenset({"title", "additionalProperties", "minLength", "maxLength", "minItems", "maxItems", "pattern", "default"})


@lru_cache(maxsize=256)
def schema(model: type[BaseModel]) -> str:
    """The JSON Schema of a model's arguments, the same bytes every time.

    Without titles, references, defaults and lengths: it is sent with every request, and what is wrong is said when it is met.
    """
    whole = model.model_json_schema()
    parts = whole.pop("$defs", {})

    def bare(node: object) -> object:
        if isinstance(node, dict) and "$ref" in node:
            return bare(parts[node["$ref"].rpartition("/")[2]])
        if isinstance(node, dict):
            return {key: bare(value) for key, value in node.items() if key not in _LEFT_OUT or isinstance(value, dict)}
        return [bare(each) for each in node] if isinstance(node, list) else node

    return json.dumps(bare(whole), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
