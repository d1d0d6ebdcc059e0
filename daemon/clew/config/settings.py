"""What can be configured: every key with its type, its bounds and its default.

All models are frozen and strict and refuse unknown keys. Sections of transports and providers keep the fields that
all of them share and the typed model of their plug-in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    SerializeAsAny,
    model_validator,
)

from clew.config import database
from clew.config.types import Address, Command, Cron, Instant, Name, Names, OptionalSecret, Prompt, Rules, ServerName, Text, Zone
from clew.config.units import Duration, Size
from clew.errors import Finding

DEFAULT_TRIGGER_MESSAGES = 60
"""What `trigger_messages: 0` means (promise 8)."""
DEFAULT_KEEP_RECENT = 8
"""What `keep_recent: 0` means (promise 8)."""


class Settings(BaseModel):
    """A section: frozen, strict, and without unknown keys."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)


class Http(Settings):
    """Where the daemon listens. Without a `token` it listens on the loopback address only."""

    host: Annotated[str, Field(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8130
    public_url: Annotated[str, Field(pattern=r"^https?://[^/\s]+", max_length=2000)] | None = None
    token: OptionalSecret = None


class Log(Settings):
    """How much is logged and how it looks. `auto`: console on a terminal, JSON elsewhere."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "console", "json"] = "auto"


class ProviderSection(Settings):
    """One way to reach a model: its `name`, the plug-in's `kind`, and the plug-in's own `settings`."""

    kind: str
    name: str
    settings: SerializeAsAny[BaseModel]

    @property
    def configured(self) -> bool:
        """Whether it can be tried at all: none of its secrets is the empty text. (`None` means that none is needed.)"""
        return not empty(self.settings)


class TransportSection(Settings):
    """One platform: its `name` in addresses, the plug-in's `kind`, `enabled`, and the plug-in's own `settings`."""

    kind: str
    name: str
    enabled: bool = True
    settings: SerializeAsAny[BaseModel]


class Compression(Settings):
    """When and how a window is compacted."""

    enabled: bool = True
    trigger_messages: Annotated[int, Field(ge=0, le=100_000)] = DEFAULT_TRIGGER_MESSAGES
    keep_recent: Annotated[int, Field(ge=0, le=100_000)] = DEFAULT_KEEP_RECENT
    prompt: Text = ""
    provider: Name | None = None
    model: Name | None = None
    trigger_tokens: Literal["auto", "off"] | Annotated[int, Field(ge=1, le=100_000_000)] = "auto"
    quiet_after: Literal["auto", "off"] | Duration = "auto"
    summary_tokens: Annotated[int, Field(ge=100, le=100_000)] = 1500
    daily_tokens: Annotated[int, Field(ge=0)] | None = None

    @property
    def count_mark(self) -> int:
        """Messages at which the count trigger fires: `trigger_messages`, 0 meaning 60."""
        return self.trigger_messages or DEFAULT_TRIGGER_MESSAGES

    @property
    def kept_messages(self) -> int:
        """Newest messages that stay verbatim: `keep_recent`, 0 meaning 8."""
        return self.keep_recent or DEFAULT_KEEP_RECENT


class Recall(Settings):
    """What is brought back from other sessions. `budget_chars` counts code points, headings and fence included."""

    enabled: bool = True
    max_excerpts: Annotated[int, Field(ge=0, le=100)] = 5
    budget_chars: Annotated[int, Field(ge=0, le=100_000)] = 2000
    placement: Literal["system", "message"] = "system"


class Notes(Settings):
    """The notes in the system prompt. `budget_chars` counts code points. `ask_model`: with each summary the summariser is asked which of
    the sentences that leave are worth a note."""

    enabled: bool = True
    budget_chars: Annotated[int, Field(ge=0, le=100_000)] = 1500
    ask_model: bool = False


RULE = re.compile(r"(?P<tool>[^()]+)(?:\((?P<argument>[^()=]+)=(?P<value>.*)\))?", re.DOTALL)
"""An entry of `allow` or `deny` with the mode `pattern`."""


class Approver(Settings):
    """Whether a tool call needs somebody's yes. `allow` and `deny` name tools; with `pattern` they are patterns such as
    `fetch_url(url=https://example.org/*)`. `expires`: seconds after which a question that nobody answered is a no."""

    mode: Literal["ask", "allow", "deny", "pattern"] = "ask"
    allow: Rules = ()
    deny: Rules = ()
    expires: Annotated[Duration, Field(ge=1.0, le=30 * 86_400.0)] = 3600.0


class Agent(Settings):
    """How a turn is run."""

    provider: Name = "auto"
    fallback: Names = ()
    system_prompt: Text = ""
    max_model_calls: Annotated[int, Field(ge=1, le=1000)] = 32
    timezone: Zone | None = None
    while_busy: Literal["merge", "one_by_one", "steer"] = "merge"
    skills_dir: Path | None = None
    compression: Compression = Compression()
    recall: Recall = Recall()
    notes: Notes = Notes()
    approver: Approver = Approver()


class Person(Settings):
    """Somebody known: a role, a zone (null: the agent's) and the identities `transport:user` that are theirs."""

    role: Literal["owner", "member", "guest"] = "member"
    timezone: Zone | None = None
    identities: Annotated[tuple[Address, ...], Field(max_length=100)] = ()


class Access(Settings):
    """What becomes of an unknown sender."""

    unknown: Literal["deny", "pair", "allow"] = "pair"


Retention = Literal["forever"] | Annotated[Duration, Field(ge=3600.0)]
"""How long what was said is kept: an hour at least, since a shorter one is a slip of the pen."""


class Sessions(Settings):
    """When a session ends by itself (`never`) and how long what was said is kept.

    Of the rules that fit a chat the narrowest counts: `chats` (an address, with the threads below it), then `people` (whose direct chat
    it is), then `transports`, then `retention`.
    """

    reset: Name = "never"
    retention: Retention = "forever"
    chats: dict[str, Retention] = {}
    people: dict[str, Retention] = {}
    transports: dict[str, Retention] = {}


Span = Annotated[Duration, Field(le=3650 * 86_400.0)]
"""Ten years at most: what comes later has no date that could be shown."""


class Job(Settings):
    """One job: exactly one of `cron`, `every`, `at`, and exactly one of `prompt`, `command`.

    `cron` is stored as five fields (`@daily` is resolved). `at` without an offset is meant in `timezone`. `condition`: a program that
    is run first; where it ends with 1 nothing is asked. `session`: `chat`, `isolated`, or the name of one that carries over. `grace`: how
    late a run that was missed may be made up for. `jitter`: runs are put off by up to so much. Durations are seconds.
    """

    name: Name
    cron: Cron | None = None
    every: Annotated[Span, Field(ge=1.0)] | None = None
    at: Instant | None = None
    timezone: Zone | None = None
    prompt: Prompt | None = None
    command: Command | None = None
    condition: Command | None = None
    deliver_to: Address
    session: Name = "chat"
    misfire: Literal["skip", "once", "all"] = "once"
    grace: Span | None = None
    jitter: Span | None = None
    timeout: Span | None = None
    overlap: Literal["skip", "queue"] = "skip"


class Embeddings(Settings):
    """What turns texts into vectors, so that they are found by their meaning too. `provider`: a section of `providers` whose server has
    `/embeddings` (kind openai or ollama), with the `model` there; or `wordllama`, the weights of the package of that name, without one."""

    provider: Name
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class Transcriber(Settings):
    """What makes words of voice notes.

    openai: a server with `/audio/transcriptions` below `base_url`, its `model`, and the `language` (ISO 639-1) where it is always one.
    command: a program, `{file}` in its arguments being the path of the recording, that writes what is said to its standard output.
    timeout: seconds for one recording.
    """

    kind: Literal["openai", "command"]
    base_url: Annotated[str, Field(max_length=2000, pattern="^https?://")] = "https://api.openai.com/v1"
    api_key: SecretStr | None = None
    model: Annotated[str, Field(min_length=1, max_length=200)] = "whisper-1"
    language: Annotated[str, Field(pattern="^[a-z]{2,3}$")] | None = None
    command: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=4000)], ...], Field(min_length=1, max_length=100)] | None = None
    timeout: Annotated[Duration, Field(ge=1.0, le=3600.0)] = 300.0

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.kind == "command") != (self.command is not None):
            raise ValueError("command is needed for kind command, and for no other")
        return self


class Docs(Settings):
    """Documents: watched files and folders. `budget_chars` counts code points of the passages in a prompt."""

    paths: Annotated[tuple[str, ...], Field(max_length=1000)] = ()
    budget_chars: Annotated[int, Field(ge=0, le=100_000)] = 2000


_Amount = Annotated[float, Field(ge=0, le=1_000_000)]


class McpServer(Settings):
    """A server of tools: a program that is started (`command`, with `env` beside a few harmless variables), or a `url` with `headers`.

    timeout: seconds that one call may take.
    """

    command: Annotated[tuple[str, ...], Field(min_length=1, max_length=1000)] | None = None
    env: Mapping[Name, SecretStr] = {}
    url: Annotated[str, Field(max_length=2000, pattern="^https?://")] | None = None
    headers: Mapping[Name, SecretStr] = {}
    timeout: Annotated[Duration, Field(ge=1.0, le=3600.0)] = 120.0

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("exactly one of command and url is needed")
        return self


class Price(Settings):
    """US dollars per million tokens of one model, and per `minute` of a recording for one that is paid so."""

    input: _Amount
    output: _Amount
    cache_read: _Amount | None = None
    cache_write: _Amount | None = None
    minute: _Amount | None = None


class Budget(Settings):
    """What may be spent in a calendar day or month: `tokens` (read, written and cached together) or `money` (US dollars, by `prices`).

    per: counted for each person, for each chat, or for all together. roles, people: whose, of budgets per person; chats: which, of those
    per chat. Of budgets that count the same, the one that names the person or chat holds, else the one that names the role.
    """

    per: Literal["person", "chat", "all"] = "person"
    every: Literal["day", "month"]
    tokens: Annotated[int, Field(ge=0, le=10**15)] | None = None
    money: Annotated[float, Field(ge=0, le=1e9)] | None = None
    roles: Annotated[tuple[Literal["owner", "member", "guest"], ...], Field(max_length=3)] = ()
    people: Names = ()
    chats: Annotated[tuple[Address, ...], Field(max_length=1000)] = ()


class Limits(Settings):
    """Upper bounds for what comes in and what runs at once."""

    message_bytes: Annotated[Size, Field(ge=1024, le=16 * 2**20)] = 128 * 2**10
    attachment_bytes: Annotated[Size, Field(ge=0, le=2**30)] = 20 * 2**20
    tool_output_chars: Annotated[int, Field(ge=100, le=1_000_000)] = 20_000
    queued_per_chat: Annotated[int, Field(ge=1, le=10_000)] = 50
    turns_at_once: Annotated[int, Field(ge=1, le=1000)] = 16


class Config(Settings):
    """The whole configuration, immutable. `Config()` has every default except the sections of plug-ins."""

    data_dir: Path = Path("~/.local/share/clew")
    store: Annotated[str, Field(max_length=2000)] = database.FILE
    http: Http = Http()
    log: Log = Log()
    providers: Mapping[str, ProviderSection] = {}
    agent: Agent = Agent()
    people: Mapping[Name, Person] = {}
    projects: Mapping[Name, Annotated[tuple[Address, ...], Field(max_length=1000)]] = {}
    access: Access = Access()
    sessions: Sessions = Sessions()
    transports: Mapping[str, TransportSection] = {}
    schedule: Annotated[tuple[Job, ...], Field(max_length=1000)] = ()
    embeddings: Embeddings | None = None
    transcriber: Transcriber | None = None
    docs: Docs = Docs()
    mcp_servers: Mapping[ServerName, McpServer] = {}
    budgets: Mapping[Name, Budget] = {}
    prices: Mapping[Name, Price] = {}
    limits: Limits = Limits()

    _credentials: frozenset[str] = PrivateAttr(frozenset())
    _secret_files: frozenset[Path] = PrivateAttr(frozenset())
    _warnings: tuple[Finding, ...] = PrivateAttr(())

    @property
    def secret_files(self) -> frozenset[Path]:
        """What `${file:PATH}` names, there or not."""
        return self._secret_files

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What is allowed and hardly meant, in the order of the file."""
        return self._warnings

    def secrets(self) -> frozenset[str]:
        """Plain values of all secrets, for the log's redactor: secret fields, the database's password, what `${file:}`, `${cred:}` gave."""
        found = {each.get_secret_value() for each in _secrets(self)}
        found |= database.passwords(self.store)
        return frozenset(value for value in found | self._credentials if value)


class Needed:
    """Marks a text that must not be empty where the section is used: `Annotated[str, Needed()]`. Secrets are needed without it."""


def empty(model: BaseModel) -> list[str]:
    """Names of the fields of `model` that are needed and hold the empty text."""
    found = []
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        needed = isinstance(value, SecretStr) or any(isinstance(mark, Needed) for mark in field.metadata)
        if needed and not (value.get_secret_value() if isinstance(value, SecretStr) else value):
            found.append(name)
    return found


def _secrets(value: Any) -> Iterator[SecretStr]:
    if isinstance(value, SecretStr):
        yield value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _secrets(getattr(value, name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _secrets(item)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for item in value:
            yield from _secrets(item)
