"""Ollama's own API: the only one of its APIs that lets a client set the window and forbid that a prompt is cut silently."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from io import BytesIO
from typing import Annotated, Any

import aiohttp
import structlog
from pydantic import Field

from clew.config.settings import Settings as Section
from clew.config.units import Duration
from clew.context.files import IMAGES
from clew.context.prompt import request_tokens
from clew.messages import Block, File, Text, ToolCall, ToolResult, Usage
from clew.plugins import Plugin
from clew.providers import Began, Delta, Done, Event, Limits, ProviderError, Request, Stop, Timeouts, Ttl
from clew.providers.failures import Answer, failure, safe, stalled
from clew.providers.lines import Lines
from clew.providers.probe import get_json, on_this_machine
from clew.providers.sections import MaxTokens, ModelName, Url, Waits, Window
from clew.providers.wire import Turn, arguments, count, schema, turns, well_formed

log = structlog.get_logger()

KIND = "ollama"
ENDPOINT = "http://127.0.0.1:11434"
ANSWERS_S = 1.5
"""Seconds in which the server must list its models to count as there."""
FACTS_S = 3.0
"""Seconds to ask the server about a model."""
CONNECT_S = 10.0
"""Seconds to establish a connection."""
SMALL_WINDOW = 8192
"""Tokens of the window where neither the config nor the server says one: a plain thread fits, and so does the memory of a small machine."""
LEAST_WINDOW = 1024
"""Tokens; a server that tells less is not believed."""
MAX_ERROR_BYTES = 2**16
JUDGED_TOKENS = 2_000
"""A prompt whose estimate is smaller is not looked at for a cut: clew's own fixed parts weigh too much in it."""

_STOPS: Mapping[str, Stop] = {"length": "length"}


class SlowWaits(Waits):
    """Seconds, with room for a model that has to be loaded from disk and for tool calls, which Ollama holds back until they are whole."""

    first_byte: Annotated[Duration, Field(gt=0)] = 300.0
    between: Annotated[Duration, Field(gt=0)] = 120.0


class Settings(Section):
    """A model of an Ollama server. Sizes are in tokens.

    context_window: what the model is loaded with, so it costs memory; None: what it is loaded with already, else 8,192.
    """

    model: ModelName = "qwen3"
    base_url: Url = ENDPOINT
    max_tokens: MaxTokens = "auto"
    context_window: Window | None = None
    timeouts: SlowWaits = SlowWaits()


def payload(request: Request, model: str, window: int) -> dict[str, Any]:
    """The body of the call. window: tokens, always the same ones, as another number makes Ollama load the model anew."""
    body: dict[str, Any] = {"model": model, "messages": _messages(request)}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": each.name, "description": each.description, "parameters": schema(each.schema)},
            }
            for each in request.tools
        ]
    return {
        **body,
        "stream": True,
        "truncate": False,
        "shift": False,
        "options": {"num_ctx": window, "num_predict": request.max_tokens},
    }


def _messages(request: Request) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if request.system_text.strip():
        messages.append({"role": "system", "content": well_formed(request.system_text)})
    for turn in turns(request.messages, KIND):
        messages.extend([_assistant(turn)] if turn.role == "assistant" else _user(turn, request.files))
    return messages


def _assistant(turn: Turn) -> dict[str, Any]:
    calls = [
        {"function": {"name": well_formed(block.name), "arguments": arguments(block.arguments)}}
        for block, _ in turn.blocks
        if isinstance(block, ToolCall)
    ]
    return {"role": "assistant", "content": _text(turn), **({"tool_calls": calls} if calls else {})}


def _user(turn: Turn, files: Mapping[str, str]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": "tool", "tool_name": well_formed(block.name), "content": well_formed(block.text)}
        for block, _ in turn.blocks
        if isinstance(block, ToolResult)
    ]
    text = _text(turn)
    if images := [files[block.hash] for block, _ in turn.blocks if isinstance(block, File)]:
        return [*messages, {"role": "user", "content": text, "images": images}]
    return [*messages, {"role": "user", "content": text}] if text else messages


def _text(turn: Turn) -> str:
    return "\n\n".join(well_formed(block.text) for block, _ in turn.blocks if isinstance(block, Text))


def listed(listing: Any, model: str) -> dict[str, Any] | None:
    """The entry of `model` in what `/api/tags` or `/api/ps` answers; a name without a tag means `:latest`."""
    models = listing.get("models") if isinstance(listing, dict) else None
    entries = [each for each in models if isinstance(each, dict)] if isinstance(models, list) else []
    names = {model, f"{model}:latest"}
    return next((each for each in entries if names & {str(each.get("name")), str(each.get("model"))}), None)


def window_of(loaded: Any, shown: Any, model: str) -> int:
    """The window in tokens for `model`: what `/api/ps` says that it is loaded with, else 8,192; never more than it was trained for.

    loaded, shown: the answers of `/api/ps` and `/api/show`.
    """
    window = _size((listed(loaded, model) or {}).get("context_length")) or SMALL_WINDOW
    facts = shown.get("model_info") if isinstance(shown, dict) else None
    facts = facts if isinstance(facts, dict) else {}
    return min(window, _size(facts.get(f"{facts.get('general.architecture')}.context_length")) or window)


def sees(shown: Any) -> bool:
    """Whether a model takes images. shown: the answer of `/api/show`; servers older than 0.6.4 tell no capabilities, but of a projector."""
    if not isinstance(shown, dict):
        return False
    capabilities = shown.get("capabilities")
    return "vision" in capabilities if isinstance(capabilities, list) else bool(shown.get("projector_info"))


def _size(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= LEAST_WINDOW else None


def looks_cut(counted: int, estimated: int) -> bool:
    """Whether the server read so much less than was sent that it must have left something out.

    counted: its own count of the prompt, 0 where it tells none. The estimate is at most 1.6 times the count of the most frugal
    tokenizer on plain text; twice the count is only seen beyond that.
    """
    return estimated >= JUDGED_TOKENS and 0 < counted < estimated / 2


class Reply:
    """The lines of one response, put together. `feed` them in order; `done` once `complete`."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._pieces: list[str] = []
        self._calls: list[ToolCall] = []
        self._reason = ""
        self.began = False
        self.complete = False
        self.counted = 0
        self._output = 0

    @property
    def text_delivered(self) -> bool:
        return bool(self._pieces)

    def feed(self, line: Mapping[str, Any]) -> list[Began | Delta]:
        """What is to be passed on for one line. The model's thinking is not. Raises ProviderError for an error in the stream."""
        if "error" in line:
            raise failure(Answer(200, _words(line["error"])), time.time())
        passed: list[Began | Delta] = [] if self.began else [Began()]
        self.began, self._model = True, well_formed(str(line.get("model") or self._model))
        message = line.get("message")
        if isinstance(message, dict):
            passed.extend(self._said(message))
        if line.get("done") is True:
            self.complete, self._reason = True, str(line.get("done_reason") or "")
            self.counted, self._output = count(line.get("prompt_eval_count")), count(line.get("eval_count"))
        return passed

    def done(self) -> Done:
        """The whole response. What of the prompt came from Ollama's cache is not told."""
        text = well_formed("".join(self._pieces))
        words: tuple[Block, ...] = (Text(text),) if text.strip() else ()
        stop: Stop = _STOPS.get(self._reason) or ("tools" if self._calls else "end")
        return Done((*words, *self._calls), stop, Usage(self.counted, self._output), self._model)

    def _said(self, message: dict[str, Any]) -> list[Delta]:
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            self._called(call)
        text = message.get("content")
        if not isinstance(text, str) or not text:
            return []
        self._pieces.append(text)
        return [Delta(well_formed(text))]

    def _called(self, call: Any) -> None:
        """Calls come whole; older servers give them no id."""
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not function.get("name"):
            return
        given = function.get("arguments")
        text = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
        identifier = str(call.get("id") or f"call_{uuid.uuid4().hex}")
        self._calls.append(ToolCall(well_formed(identifier), well_formed(str(function["name"])), well_formed(text)))


def _words(error: Any) -> str:
    return str(error.get("message") or error) if isinstance(error, dict) else str(error)


class Ollama:
    """See `clew.providers.Provider`. `build(name, settings)` makes one for a section of the config."""

    kind = KIND
    cache_ttl: Ttl | None = None
    configured = True

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.model = settings.model
        self.max_tokens = settings.max_tokens
        self._base_url = settings.base_url.rstrip("/")
        self._timeouts = Timeouts(settings.timeouts.first_byte, settings.timeouts.between)
        self._window = settings.context_window
        self._deciding = asyncio.Lock()
        self._files: frozenset[str] | None = None
        self._calls_tools = True
        self._client: aiohttp.ClientSession | None = None

    async def prepare(self) -> None:
        self._session()

    async def answers(self) -> bool:
        """Whether the server is there and has the model."""
        return listed(await get_json(f"{self._base_url}/api/tags", {}, ANSWERS_S), self.model) is not None

    async def limits(self) -> Limits:
        async with self._deciding:
            if self._window is None or self._files is None:
                await self._ask()
        window = self._window or SMALL_WINDOW
        return Limits(window, window, files=self._files or frozenset())

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        window = (await self.limits()).window
        reply = Reply(self.model)
        try:
            async with self._response(request, window) as lines:
                async for line in lines:
                    for passed in reply.feed(_object(line, cut=lines.unfinished)):
                        yield passed
                    lines.began = True
                    if reply.complete:
                        break
            await self._check_cut(request, reply.counted, window)
        except ProviderError as error:
            error.text_delivered = reply.text_delivered
            raise
        except (aiohttp.ClientError, OSError) as error:
            raise _lost(error, reply) from None
        if not reply.complete:
            raise ProviderError("cut", "the response ended early", text_delivered=reply.text_delivered)
        yield reply.done()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @asynccontextmanager
    async def _response(self, request: Request, window: int) -> AsyncIterator[Lines]:
        response = await self._post(self._sendable(request), window)
        if request.tools and self._calls_tools and response.status == 400:
            refused = await self._refused(response)
            if "does not support tools" not in str(refused):
                raise refused
            log.warning("provider.no_tools", provider=self.name, model=self.model)
            self._calls_tools = False
            response = await self._post(self._sendable(request), window)
        async with response:
            if response.status != 200:
                raise await self._refused(response)
            yield Lines(response.content.readany, self._timeouts)

    def _sendable(self, request: Request) -> Request:
        """`request` without tools for a model that was found to know none: it can still talk."""
        return request if self._calls_tools else replace(request, tools=())

    async def _post(self, request: Request, window: int) -> aiohttp.ClientResponse:
        body = BytesIO(json.dumps(payload(request, self.model, window)).encode())  # pictures make it large: sent in pieces
        headers = {"Content-Type": "application/json"}
        try:
            async with asyncio.timeout(self._timeouts.first_byte):
                return await self._session().post(f"{self._base_url}/api/chat", data=body, headers=headers)
        except aiohttp.ServerTimeoutError:  # of the connection
            raise
        except TimeoutError:
            raise stalled(self._timeouts.first_byte) from None

    def _session(self) -> aiohttp.ClientSession:
        if self._client is None:
            waits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
            self._client = aiohttp.ClientSession(timeout=waits, trust_env=not on_this_machine(self._base_url))
        return self._client

    async def _refused(self, response: aiohttp.ClientResponse) -> ProviderError:
        """The error of an answer that is not 200, with what to do where that is known."""
        async with response:
            body = await _beginning(response, self._timeouts.between)
        try:
            words = _words(json.loads(body)["error"])
        except (ValueError, RecursionError, LookupError, TypeError):
            words = body.decode("utf-8", "replace")
        headers = {name.lower(): value for name, value in response.headers.items()}
        kind = "overloaded_error" if response.status == 503 else ""  # its queue is full
        error = failure(Answer(response.status, words, kind, headers=headers), time.time())
        if response.status == 404:
            return ProviderError("invalid", f"{error}; `ollama pull {self.model}` fetches the model, `ollama list` shows what is there")
        if "requires more system memory" in words:
            return ProviderError("unavailable", f"{error}; take a smaller model, or a smaller context_window for it")
        return error

    async def _ask(self) -> None:
        """Ask the server what it does not know of the model yet; where it does not answer, it is asked again."""
        shown = await self._shown()
        if shown is not None:
            self._files = IMAGES if sees(shown) else frozenset()
        if self._window is None and (loaded := await get_json(f"{self._base_url}/api/ps", {}, FACTS_S)) is not None:
            self._window = window_of(loaded, shown, self.model)

    async def _shown(self) -> Any:
        waits = Timeouts(FACTS_S, FACTS_S)
        try:
            async with (
                asyncio.timeout(FACTS_S),
                self._session().post(f"{self._base_url}/api/show", json={"model": self.model}) as response,
            ):
                body = b"\n".join([line async for line in Lines(response.content.readany, waits)])
                return json.loads(body)
        except (aiohttp.ClientError, OSError, ValueError, RecursionError, ProviderError):
            return None

    async def _check_cut(self, request: Request, counted: int, window: int) -> None:
        """Raise `overflow` for a prompt of which the server silently read a part only.

        A count far below the estimate is a suspicion, and logged. It is an overflow only if the prompt cannot have fitted into
        the window that the model runs with, which may be smaller than the one that was asked for. That window is the one to
        keep from then on.
        """
        estimated = request_tokens(self._sendable(request))
        if not looks_cut(counted, estimated):
            return
        running = listed(await get_json(f"{self._base_url}/api/ps", {}, FACTS_S), self.model) or {}
        held = min(window, _size(running.get("context_length")) or window)
        log.warning("provider.prompt_cut", provider=self.name, model=self.model, counted=counted, estimated=estimated, window=held)
        if estimated / 2 > held:
            self._window = held
            told = f"the server read {counted} of about {estimated} tokens: the model runs with a window of {held}"
            raise ProviderError("overflow", told, tokens=(estimated, held))


def _object(line: bytes, *, cut: bool) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError) as error:
        if cut:
            raise ProviderError("cut", "the response ended inside a line") from None
        raise ProviderError("server", f"the response cannot be read: {safe(str(error))}") from None
    if not isinstance(parsed, dict):
        raise ProviderError("server", "the response cannot be read: a line is no JSON object")
    return parsed


async def _beginning(response: aiohttp.ClientResponse, seconds: float) -> bytes:
    """The first bytes of an error's body, as many as come in time."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in response.content.iter_chunked(MAX_ERROR_BYTES):
                body += chunk
                if len(body) >= MAX_ERROR_BYTES:
                    break
    except (aiohttp.ClientError, OSError):
        pass
    return bytes(body)


def _lost(error: Exception, reply: Reply) -> ProviderError:
    """The error of a connection that could not be made or, once the response had begun, broke."""
    detail = safe(f"{type(error).__name__}: {error}")
    if reply.began:
        return ProviderError("cut", f"the response was cut: {detail}", text_delivered=reply.text_delivered)
    return ProviderError("network", f"no connection: {detail}")


plugin = Plugin(KIND, Settings, Ollama)
