"""The models: providers, embeddings, the transcriber; tools, rules for them, skills."""

import asyncio
import fnmatch
import io
import time
import wave
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from clew.assembly import build_provider, embedder_of, tool_specs, transcriber_of, zone_name
from clew.budget import numbers
from clew.cli.doctor.findings import Bounded, Finding
from clew.config import Config
from clew.context.prompt import base_prompt
from clew.context.redact import redact
from clew.context.shares import affordable
from clew.errors import ClewError
from clew.messages import Text
from clew.providers import PromptMessage, ProviderError, Request
from clew.tools.skills import BUDGET_CHARS, read
from clew.transcribers import NotTranscribed, Recording

CALLED_S = 45.0
"""Seconds for an answer of one token: a model may have to be loaded for it."""
TRANSCRIBER_S = 60.0
"""Seconds for half a second of silence: a program loads its model first."""
GET_A_MODEL = "export ANTHROPIC_API_KEY=…, or start a model server, or name one in the config (docs/providers.md)"
SILENCES = {"ollama": "does not answer or lacks the model", "claude_cli": "is not installed or not signed in"}
"""What it may mean that a kind does not answer."""
TOO_SHORT = "max_tokens or model output limit"
"""What OpenAI says where a model that thinks first could say nothing in the one token it was given."""
SMALLEST = Request(system=(), messages=(PromptMessage("user", (Text("Say yes."),)),), max_tokens=1)


Outcome = Literal["answers", "silent", "busy", "refuses"]
SAYS_NO: Mapping[str, str] = {"auth": "refuses the key", "quota": "has no credit left, or a spending limit is reached"}
BUSY = ("rate_limit", "overloaded", "server", "stall", "cut")
OWN_LOOK = ("ollama", "claude_cli")
"""Kinds that say without a call whether they can take one: the model is pulled, somebody is signed in."""


@dataclass(frozen=True, slots=True)
class Called:
    """What came of one call. silent: nobody is there. busy: it will pass. refuses: it will not."""

    name: str
    outcome: Outcome
    text: str


async def providers(config: Config) -> Sequence[Finding]:
    """One call for a single token with each provider that is configured and there."""
    names = [name for name, each in config.providers.items() if each.configured and each.kind != "offline"]
    if not names:
        return [Finding("warning", "no way to reach a model is configured: clew answers with what it remembers", GET_A_MODEL)]
    outcomes = await asyncio.gather(*(called(config, name) for name in names))
    agent = config.agent
    wanted = {agent.provider, *agent.fallback, agent.compression.provider}
    used = next((each.name for each in outcomes if each.outcome == "answers"), "")
    found = [_finding(each, each.name in wanted, used) for each in outcomes]
    if agent.provider == "auto" and not used:
        found.append(Finding("warning", "no model answers: clew answers with what it remembers, and looks again every minute", GET_A_MODEL))
    if agent.provider != "auto" and config.providers[agent.provider].kind == "offline":
        found.append(Finding("warning", "agent.provider is one that says that no model is there", "set agent.provider in the config"))
    return found


def _finding(called: Called, wanted: bool, used: str) -> Finding:
    """wanted: the config names it. used: one that answers; empty where none does."""
    where = f"check providers.{called.name} in the config"
    match called.outcome:
        case "answers":
            return Finding("ok", called.text, of=called.name)
        case "refuses":
            return Finding("problem", called.text, where, called.name)
        case "busy":
            return Finding("warning", called.text, "try again later", called.name)
    if wanted:
        return Finding("problem", called.text, where, called.name)
    return Finding("ok", f"{called.text}; not needed, for {used} answers" if used else called.text, of=called.name)


async def called(config: Config, name: str) -> Called:
    """What comes of one call for a single token. (The `claude` program has no such bound: it says a word.)"""
    section = config.providers[name]
    provider = build_provider(config, name)
    silent = SILENCES.get(section.kind, "does not answer")
    await provider.prepare()
    there, begun = False, time.monotonic()
    try:
        async with asyncio.timeout(CALLED_S):
            there = await provider.answers()
            if not there and section.kind in OWN_LOOK:
                return Called(name, "silent", silent)
            async with aclosing(provider.stream(SMALLEST)) as events:
                async for _ in events:
                    pass
    except TimeoutError:
        return Called(name, "busy" if there else "silent", f"has not answered within {CALLED_S:.0f} s")
    except ProviderError as error:
        if TOO_SHORT not in str(error):
            return _failed(name, error, there, silent, config)
    except ClewError as error:
        return Called(name, "refuses", error.told)
    finally:
        await provider.close()
    return Called(name, "answers", f"{provider.model} answers ({time.monotonic() - begun:.1f} s)")


def _failed(name: str, error: ProviderError, there: bool, silent: str, config: Config) -> Called:
    if error.kind in SAYS_NO:
        return Called(name, "refuses", SAYS_NO[error.kind])
    if not there or error.kind in ("network", "unavailable"):
        return Called(name, "silent", silent)
    # A server may say back what it was sent.
    said = redact(str(error), known=config.secrets())[:300]
    return Called(name, "busy" if error.kind in BUSY else "refuses", f"answers, but not the call: {said}")


async def embeddings(config: Config) -> Sequence[Finding]:
    """Whether one text becomes a vector."""
    try:
        made = embedder_of(config)
        if made is None:
            return [Finding("ok", "none: what was said is found by its words")]
        try:
            await made.prepare()
            [vector] = await made.embed(["a ball of thread"])
        finally:
            await made.close()
    except ClewError as error:
        return [Finding("problem", error.message, error.hint or "correct embeddings in the config")]
    except ProviderError as error:
        text = redact(str(error), known=config.secrets())[:300]
        return [Finding("problem", f"no vector is made: {text}", "start its server, or correct embeddings in the config")]
    return [Finding("ok", f"a text becomes a vector of {len(vector):,} bytes")]


async def transcriber(config: Config) -> Sequence[Finding]:
    """Whether half a second of silence is heard as such."""
    made = transcriber_of(config)
    if made is None:
        return [Finding("ok", "none: voice notes are answered with a line that says so")]
    try:
        async with asyncio.timeout(TRANSCRIBER_S):
            await made.transcribe(Recording(_silence(), "audio/wav"))
    except TimeoutError:
        return [Finding("problem", f"it does not answer within {TRANSCRIBER_S:.0f} s", "correct transcriber in the config")]
    except NotTranscribed as error:
        return [Finding("problem", str(error), "correct transcriber in the config")]
    except Exception as error:
        return [Finding("problem", f"it does not answer ({error})", "start its server, or correct transcriber in the config")]
    return [Finding("ok", "it hears")]


def _silence() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(bytes(16_000))
    return file.getvalue()


async def tools(config: Config) -> Sequence[Finding]:
    """Whether the model's window can afford all tools: a request's tools and base prompt share a quarter of it."""
    wanted = config.agent.provider
    usable = [name for name, each in config.providers.items() if each.configured and each.kind != "offline"]
    name = wanted if wanted != "auto" else next(iter(usable), None)
    if name is None:
        return [Finding("ok", "no model whose window could be too small for them is configured")]
    provider = build_provider(config, name)
    try:
        limits = await provider.limits()
    finally:
        await provider.close()
    bounds, specs = numbers(provider, limits, config.agent.compression), tool_specs(config)
    kept = affordable(specs, base_prompt(config.agent.system_prompt, zone_name(config)), bounds.base_limit)
    if left := sorted({each.name for each in specs} - {each.name for each in kept}):
        text = f"a window of {limits.window:,} tokens cannot afford all tools beside the base prompt; left out: {', '.join(left)}"
        return [Finding("warning", text, "raise context_window, or shorten agent.system_prompt")]
    return [Finding("ok", f"all tools fit a window of {limits.window:,} tokens")]


async def approver(config: Config) -> Sequence[Finding]:
    """Whether each rule names a tool that there is. Those of MCP servers are known when they are connected."""
    known, settings = [spec.name for spec in tool_specs(config)], config.agent.approver
    servers = [f"{name}__" for name in config.mcp_servers]
    names = [rule.partition("(")[0] for rule in (*settings.allow, *settings.deny)]
    if lost := sorted({n for n in names if not fnmatch.filter(known, n) and not any(_may_be_of(n, server) for server in servers)}):
        return [Finding("warning", f"agent.approver names tools that there are not: {', '.join(lost)}", "docs/tools.md has their names")]
    return [Finding("ok", f"mode {settings.mode}, {len(names)} rules")]


def _may_be_of(rule: str, server: str) -> bool:
    """Whether tools of an MCP server may fit a rule."""
    return rule.startswith(server) or fnmatch.fnmatchcase(f"{server}x", rule)


async def skills(config: Config) -> Sequence[Finding]:
    found = read(config.agent.skills_dir)
    if found.faults:
        return [
            Finding("problem", "; ".join(f"{name}: {fault}" for name, fault in found.faults), "docs/tools.md has the format of SKILL.md")
        ]
    if found.unnamed:
        text = f"names and descriptions take more than {BUDGET_CHARS:,} characters; the model is not told of {', '.join(found.unnamed)}"
        return [Finding("warning", text, "shorten descriptions, or take some out of agent.skills_dir")]
    return [Finding("ok", f"{len(found.found)} of them" if found.found else "none")]


CHECKS: Mapping[str, Bounded] = {
    "provider": Bounded(providers, CALLED_S + 10),
    "embeddings": Bounded(embeddings, 30),
    "transcriber": Bounded(transcriber, TRANSCRIBER_S + 5),
    "tools": Bounded(tools, 20),
    "approver": Bounded(approver),
    "skills": Bounded(skills),
}
