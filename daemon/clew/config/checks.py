"""What no single key's type can say: impossible combinations, and keys whose feature does not exist yet.

All checks read the plain data of the file, not the models, so that each works whatever else is wrong.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from clew.config import database
from clew.config.settings import DEFAULT_KEEP_RECENT, DEFAULT_TRIGGER_MESSAGES, RULE
from clew.config.yaml import Path, shown


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong at `path`; `nearest` is what was probably meant."""

    path: Path
    message: str
    nearest: str = ""


NOT_YET: tuple[tuple[tuple[str, ...], tuple[Any, ...]], ...] = ((("sessions", "reset"), ("never",)),)
"""Keys whose feature is not there yet, and the values that they may have until then. `*` stands for each list item."""

EMBEDDING_KINDS = ("openai", "ollama")
"""Kinds of providers whose servers have `/embeddings`."""
OWN_WEIGHTS = "wordllama"
"""What `embeddings.provider` may be that is no provider."""

_TOOL = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider takes as a tool's name."""
SHORTEST_TOKEN = 16
"""Characters."""
ALWAYS_THERE = "terminal"
"""The transport that may lack a section: it is reached through the daemon's socket."""


def faults(data: dict[str, Any]) -> list[Fault]:
    """All that `data` combines wrongly or asks for too early."""
    return [fault for check in _CHECKS for fault in check(data)]


def doubts(data: dict[str, Any]) -> list[Fault]:
    """What `data` says that is allowed and hardly meant."""
    return [*_short_token(data)]


def _at(data: Any, *path: str, default: Any = None) -> Any:
    for part in path:
        if not isinstance(data, dict) or part not in data:
            return default
        data = data[part]
    return data


def _entries(data: dict[str, Any], key: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Each section in the mapping or list under `key`, with its name or index."""
    found = data.get(key)
    pairs = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    return ((name, item) for name, item in pairs if isinstance(item, dict))


def _nearest(word: str, valid: list[str]) -> str:
    return next(iter(difflib.get_close_matches(word[:80], valid, 1)), "")


def _matching(data: Any, pattern: tuple[str, ...], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if not pattern:
        yield path, data
    elif pattern[0] == "*" and isinstance(data, list):
        for index, item in enumerate(data):
            yield from _matching(item, pattern[1:], (*path, index))
    elif isinstance(data, dict) and pattern[0] in data:
        yield from _matching(data[pattern[0]], pattern[1:], (*path, pattern[0]))


def _not_yet(data: dict[str, Any]) -> Iterator[Fault]:
    for pattern, allowed in NOT_YET:
        for path, value in _matching(data, pattern):
            if value not in allowed:
                words = " or ".join("empty" if not each else str(each) for each in allowed)
                yield Fault(path, f"not available in this version yet; only {words}")


def _compression(data: dict[str, Any]) -> Iterator[Fault]:
    section = ("agent", "compression")
    if _at(data, *section, "model") and not _at(data, *section, "provider") and _at(data, "agent", "provider", default="auto") == "auto":
        yield Fault((*section, "model"), "needs compression.provider beside it while agent.provider is auto")
    mark = _at(data, *section, "trigger_messages", default=0)
    kept = _at(data, *section, "keep_recent", default=0)
    if not isinstance(mark, int) or not isinstance(kept, int):
        return
    mark, kept = mark or DEFAULT_TRIGGER_MESSAGES, kept or DEFAULT_KEEP_RECENT
    if kept >= mark:
        key = "keep_recent" if _at(data, *section, "keep_recent") is not None else "trigger_messages"
        yield Fault((*section, key), f"keep_recent ({kept}) must be smaller than trigger_messages ({mark})")


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _data_dir(data: dict[str, Any]) -> Iterator[Fault]:
    if data.get("data_dir") == "":
        yield Fault(("data_dir",), "must not be empty")


def _store(data: dict[str, Any]) -> Iterator[Fault]:
    where = data.get("store")
    if isinstance(where, str) and (wrong := database.fault(where)):
        yield Fault(("store",), wrong)


def _http(data: dict[str, Any]) -> Iterator[Fault]:
    host = _at(data, "http", "host", default="127.0.0.1")
    if isinstance(host, str) and not _loopback(host) and _at(data, "http", "token") in (None, ""):
        yield Fault(("http", "host"), "other machines could reach this without a secret: set http.token, or use 127.0.0.1")


def _webhooks(data: dict[str, Any]) -> Iterator[Fault]:
    """A platform that is to call clew at an address which nobody gave it."""
    if _at(data, "http", "public_url"):
        return
    for name, section in _entries(data, "transports"):
        if section.get("mode") == "webhook" and section.get("enabled", True) is True:
            yield Fault(("transports", name, "mode"), "needs http.public_url, the address at which the platform reaches clew")


def _short_token(data: dict[str, Any]) -> Iterator[Fault]:
    token = _at(data, "http", "token")
    if isinstance(token, str) and 0 < len(token) < SHORTEST_TOKEN:
        yield Fault(("http", "token"), f"can be guessed: use {SHORTEST_TOKEN} characters or more, as from `openssl rand -hex 32`")


def _providers(data: dict[str, Any]) -> Iterator[Fault]:
    sections = data.get("providers")
    if not isinstance(sections, dict):
        return
    known = list(sections)
    if "auto" in known:
        yield Fault(("providers", "auto"), "a provider cannot be called auto; agent.provider has its own use for it")
    fallback = _at(data, "agent", "fallback", default=[])
    listed = enumerate(fallback) if isinstance(fallback, list) else ()
    named: list[tuple[Path, Any]] = [
        (("agent", "provider"), _at(data, "agent", "provider", default="auto")),
        (("agent", "compression", "provider"), _at(data, "agent", "compression", "provider")),
        *((("agent", "fallback", index), name) for index, name in listed),
    ]
    for path, name in named:
        allowed = [*known, "auto"] if path == ("agent", "provider") else known
        if isinstance(name, str) and name not in allowed:
            there = ", ".join(known) or "none"
            yield Fault(path, f"there is no provider of this name; there are: {there}", _nearest(name, allowed))


def _embeddings(data: dict[str, Any]) -> Iterator[Fault]:
    chosen = _at(data, "embeddings", default={})
    name = _at(chosen, "provider")
    if not isinstance(name, str):
        return
    sections = data.get("providers")
    known = [*(sections if isinstance(sections, dict) else ()), OWN_WEIGHTS]
    if name == OWN_WEIGHTS:
        if _at(chosen, "model") is not None:
            yield Fault(("embeddings", "model"), f"{OWN_WEIGHTS} has one model, which needs no name here")
        return
    if name not in known:
        yield Fault(("embeddings", "provider"), f"there is no provider of this name; there are: {', '.join(known)}", _nearest(name, known))
    elif (kind := _at(data, "providers", name, "kind", default=name)) not in EMBEDDING_KINDS:
        kinds = " or ".join(EMBEDDING_KINDS)
        yield Fault(("embeddings", "provider"), f"a provider of kind {kind} has no embeddings; name one of kind {kinds}, or {OWN_WEIGHTS}")
    elif not _at(chosen, "model"):
        yield Fault(("embeddings",), "needs the model's name, for instance model: nomic-embed-text")


def _identities(data: dict[str, Any]) -> Iterator[Fault]:
    owners: dict[str, str] = {}
    given = data.get("transports")
    sections = list(dict.fromkeys([*(given if isinstance(given, dict) else ()), ALWAYS_THERE]))
    for person, section in _entries(data, "people"):
        listed = section.get("identities")
        for index, identity in enumerate(listed if isinstance(listed, list) else ()):
            if not isinstance(identity, str):
                continue
            path: Path = ("people", person, "identities", index)
            transport, colon, _ = identity.partition(":")
            if colon and transport and transport not in sections:
                message = f"no message can ever come from it: there is no transport of this name; there are: {', '.join(sections)}"
                yield Fault(path, message, _nearest(transport, sections))
            if identity in owners:
                yield Fault(path, f"this identity is listed for {shown((owners[identity],))} already")
            owners.setdefault(identity, person)


def _projects(data: dict[str, Any]) -> Iterator[Fault]:
    found = data.get("projects")
    named: dict[str, str] = {}
    for project, listed in found.items() if isinstance(found, dict) else ():
        if isinstance(project, str) and ":" in project:
            yield Fault(("projects", project), "a project's name has no colon, so that it is not taken for a chat's address")
        for index, address in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(address, str) and named.setdefault(address, project) != project:
                yield Fault(("projects", project, index), f"this chat is in the project {named[address]} already")


def _names(data: dict[str, Any]) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for index, job in _entries(data, "schedule"):
        name = job.get("name")
        if isinstance(name, str) and name in seen:
            yield Fault(("schedule", index, "name"), f"schedule[{seen[name]}] has this name already")
        elif isinstance(name, str):
            seen[name] = index


def _exactly_one(data: dict[str, Any]) -> Iterator[Fault]:
    for index, job in _entries(data, "schedule"):
        for keys in (("cron", "every", "at"), ("prompt", "command")):
            given = [key for key in keys if job.get(key) is not None]
            if len(given) != 1:
                path: Path = ("schedule", index, given[1]) if given else ("schedule", index)
                yield Fault(path, f"exactly one of {', '.join(keys)} must be set")


def _deliveries(data: dict[str, Any]) -> Iterator[Fault]:
    sections = dict(_entries(data, "transports"))
    sections.setdefault(ALWAYS_THERE, {})
    enabled = [name for name, section in sections.items() if section.get("enabled", True) is True]
    for index, job in _entries(data, "schedule"):
        address = job.get("deliver_to")
        name = address.partition(":")[0] if isinstance(address, str) else ALWAYS_THERE
        if name in enabled:
            continue
        state = "is disabled" if name in sections else "does not exist"
        message = f"the transport of this address {state}; enabled are: {', '.join(enabled)}"
        yield Fault(("schedule", index, "deliver_to"), message, _nearest(name, enabled))


def _approver(data: dict[str, Any]) -> Iterator[Fault]:
    """Rules that no call could ever fit, so that a tool would not be denied that is meant to be."""
    mode = _at(data, "agent", "approver", "mode", default="ask")
    for key in ("allow", "deny"):
        rules = _at(data, "agent", "approver", key)
        for index, rule in enumerate(rules if isinstance(rules, list) else ()):
            if not isinstance(rule, str):
                continue
            if mode == "pattern" and not RULE.fullmatch(rule):
                yield Fault(("agent", "approver", key, index), "must be tool or tool(argument=value)")
            elif mode != "pattern" and not _TOOL.fullmatch(rule):
                message = f"with mode: {mode} it must be the name of a tool; patterns and arguments need mode: pattern"
                yield Fault(("agent", "approver", key, index), message)


def _budgets(data: dict[str, Any]) -> Iterator[Fault]:
    found = data.get("people")
    known = [name for name in found if isinstance(name, str)] if isinstance(found, dict) else []
    for name, section in _entries(data, "budgets"):
        given = [key for key in ("tokens", "money") if section.get(key) is not None]
        if len(given) != 1:
            yield Fault(("budgets", name, given[1]) if given else ("budgets", name), "exactly one of tokens, money must be set")
        per = section.get("per", "person")
        for key, wanted in (("roles", "person"), ("people", "person"), ("chats", "chat")):
            if section.get(key) and per != wanted:
                yield Fault(("budgets", name, key), f"has an effect with per: {wanted} only, and this one is per: {per}")
        people = section.get("people")
        for index, person in enumerate(people if isinstance(people, list) else ()):
            if isinstance(person, str) and person not in known and ":" not in person:  # who paired is called by their identity
                there = ", ".join(known) or "none"
                message = f"there is nobody of this name in people; there are: {there}, and who paired is named as transport:user"
                yield Fault(("budgets", name, "people", index), message, _nearest(person, known))


_CHECKS: tuple[Callable[[dict[str, Any]], Iterator[Fault]], ...] = (
    _not_yet,
    _data_dir,
    _store,
    _compression,
    _http,
    _webhooks,
    _providers,
    _embeddings,
    _identities,
    _projects,
    _names,
    _exactly_one,
    _deliveries,
    _approver,
    _budgets,
)
