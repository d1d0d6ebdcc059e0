"""From the config to the parts of a process: transports, providers, tools, people, the zone."""

import importlib
import os
import pwd
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

from tzlocal import get_localzone_name

from clew.bills import Seller
from clew.clock import Time
from clew.config import Config, TransportSection
from clew.documents.reading import Reader
from clew.embedders import Embedder
from clew.fetching import Fetcher
from clew.meaning import Meaning
from clew.passages import Passages
from clew.plugins import registry
from clew.providers import Provider
from clew.providers.auto import Automatic
from clew.request import ToolSpec
from clew.store import Person
from clew.store.sql import SqlStore
from clew.tools import Tool, documents, notes, pages, schedules, sessions, skills
from clew.transcribers import Transcriber
from clew.transcribers.endpoint import Endpoint as TranscribingEndpoint
from clew.transcribers.program import Program
from clew.transport import Transport

LOCAL = ("web", "terminal")
"""Transports that are there unless the config turns them off."""


def sections(config: Config) -> dict[str, TransportSection]:
    """The transports that are turned on, by name."""
    kinds = registry("clew.transports")
    local = {name: TransportSection(kind=name, name=name, enabled=True, settings=kinds[name].Config()) for name in LOCAL}
    return {name: section for name, section in {**local, **config.transports}.items() if section.enabled}


def build_transport(section: TransportSection) -> Transport:
    """The transport of a section of the config."""
    transport: Transport = registry("clew.transports")[section.kind].build(section.name, section.settings)
    return transport


def plugged(group: str) -> Iterator[Any]:
    """What the installed plug-ins of a group build, each with the defaults of its settings."""
    return (plugin.build(name, plugin.Config()) for name, plugin in registry(group).items())


def tool_specs(config: Config) -> list[ToolSpec]:
    """What a model is told of all tools, plug-ins' included."""
    noting = notes.specs() if config.agent.notes.enabled else []
    own = [*sessions.specs(), *schedules.specs(), *documents.specs(), *pages.specs()]
    opening = skills.specs(skills.read(config.agent.skills_dir))
    return [*own, *noting, *opening, *(tool.spec for tool in plugged("clew.tools"))]


def own_tools(
    config: Config, store: SqlStore, meaning: Meaning | None, passages: Passages, reader: Reader, learnt: skills.Skills
) -> list[Tool]:
    """The same tools, ready to run. learnt: the skills in the config's folder."""
    noting = notes.tools(store) if config.agent.notes.enabled else []
    own = [*sessions.tools(store, meaning), *schedules.tools(store), *documents.tools(passages), *pages.tools(Fetcher(), reader)]
    return [*own, *noting, *skills.tools(learnt), *plugged("clew.tools")]


def projects_of(config: Config) -> dict[str, str]:
    """The project of each chat that is named in one, by its address."""
    return {address: name for name, addresses in config.projects.items() for address in addresses}


def providers_of(config: Config, time: Time) -> tuple[list[Provider], Provider]:
    """(the session's own model and its fallbacks, the summariser)."""
    agent = config.agent
    main = _automatic(config, time) if agent.provider == "auto" else build_provider(config, agent.provider)
    built = [main, *(build_provider(config, name) for name in dict.fromkeys(agent.fallback) if name != agent.provider)]
    compression = agent.compression
    if compression.provider or (compression.model and agent.provider != "auto"):
        return built, build_provider(config, compression.provider or agent.provider, compression.model)
    return built, main


def _automatic(config: Config, time: Time) -> Provider:
    built = [build_provider(config, name) for name in config.providers]
    kind = registry("clew.providers")["offline"]
    offline = next((provider for provider in built if provider.kind == "offline"), None) or kind.build("none", kind.Config())
    return Automatic([provider for provider in built if provider.kind != "offline"], offline, time.steady)


def build_provider(config: Config, name: str, model: str | None = None) -> Provider:
    """The provider of a section of the config, with another `model` if one is given."""
    section = config.providers[name]
    settings = section.settings.model_copy(update={"model": model}) if model else section.settings
    provider: Provider = registry("clew.providers")[section.kind].build(name, settings)
    return provider


def embedder_of(config: Config) -> Embedder | None:
    """What turns texts into vectors, None where the config names nothing. Nothing of it is imported then."""
    chosen = config.embeddings
    if chosen is None:
        return None
    section = config.providers.get(chosen.provider)
    if section is None:
        own: Embedder = importlib.import_module("clew.embedders.wordllama").WordLlama()
        return own
    settings: Any = section.settings
    key = getattr(settings, "api_key", None)
    base_url = settings.base_url if section.kind == "openai" else f"{settings.base_url.rstrip('/')}/v1"
    endpoint = importlib.import_module("clew.embedders.endpoint").Endpoint
    built: Embedder = endpoint(base_url, chosen.model or "", key.get_secret_value() if key else None, settings.timeouts.first_byte)
    return built


def embedding_seller(config: Config) -> Seller | None:
    """Whose vectors cost something, None where nobody's do: weights on this machine."""
    chosen = config.embeddings
    section = config.providers.get(chosen.provider) if chosen else None
    return Seller(section.name, section.kind, chosen.model or "") if chosen and section else None


@asynccontextmanager
async def meaning_of(config: Config, store: SqlStore, time: Time) -> AsyncIterator[Meaning | None]:
    """The vectors of what is said, None where the config names no model for them. Raises ConfigError where it cannot be had."""
    embedder = embedder_of(config)
    if embedder is None:
        yield None
        return
    meaning = Meaning(store, embedder, config.secrets(), time)
    try:
        await meaning.prepare()
        yield meaning
    finally:
        await meaning.close()


def transcriber_of(config: Config) -> Transcriber | None:
    """What makes words of voice notes, None where the config names nothing."""
    chosen = config.transcriber
    if chosen is None:
        return None
    if chosen.command is not None:
        return Program(chosen.command, chosen.timeout)
    key = chosen.api_key.get_secret_value() if chosen.api_key else None
    return TranscribingEndpoint(chosen.base_url, chosen.model, key, chosen.language, chosen.timeout)


def transcribing_seller(config: Config) -> Seller | None:
    """Who is paid for what is heard, None where nobody is: a program on this machine."""
    chosen = config.transcriber
    return Seller("transcriber", chosen.kind, chosen.model) if chosen and chosen.kind == "openai" else None


def zone_name(config: Config) -> str:
    """The IANA name of the configured zone, else of the machine's."""
    if config.agent.timezone:
        return config.agent.timezone
    try:
        name = get_localzone_name() or "UTC"
        ZoneInfo(name)
    except Exception:  # tzlocal raises whatever an odd /etc/localtime makes it raise
        return "UTC"
    return name


def people_of(config: Config) -> tuple[dict[str, Person], Person | None]:
    """(configured people, the owner made up for this machine where none is configured). The local user is the owner."""
    local = ("web:local", f"terminal:{unix_user()}")
    people = {name: Person(name, each.role, each.timezone, each.identities) for name, each in config.people.items()}
    taken = {identity for person in people.values() for identity in person.identities}
    free = tuple(identity for identity in local if identity not in taken)
    owner = next((person for person in people.values() if person.role == "owner"), None)
    if owner is None:
        return people, Person("owner", "owner", None, free)
    people[owner.id] = replace(owner, identities=(*owner.identities, *free))
    return people, None


def owner_of(config: Config) -> str:
    """The id of the owner: the first one that is configured, else the one made up for this machine."""
    configured, local_owner = people_of(config)
    return local_owner.id if local_owner else next(each.id for each in configured.values() if each.role == "owner")


def unix_user() -> str:
    """The name of this process's user."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
