"""What the plug-ins of transports say of a whole config: their sections, who can write there, and where replies can go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clew.config.settings import Config, TransportSection
from clew.config.yaml import Path
from clew.plugins import Plugin
from clew.transport import Address


@dataclass(frozen=True, slots=True)
class Said:
    """What is wrong at `path`; `serious`: the config cannot be used with it."""

    path: Path
    message: str
    serious: bool = True


def with_senders(config: Config, plugins: Mapping[str, Plugin]) -> tuple[Config, list[Said]]:
    """`config` with each identity of `people` as messages will have it, and what is wrong with those that none can have."""
    said: list[Said] = []
    owners: dict[str, str] = {}
    people = dict(config.people)
    for name, person in people.items():
        identities = []
        for index, identity in enumerate(person.identities):
            written, wrong = _sender(config, plugins, identity)
            earlier = owners.setdefault(written, name)
            if not wrong and (written in identities or earlier != name):
                wrong = f"this identity is listed for {earlier} already"
            if wrong:
                said.append(Said(("people", name, "identities", index), wrong))
            identities.append(written)
        people[name] = person.model_copy(update={"identities": tuple(identities)})
    return config.model_copy(update={"people": people}), said


def _sender(config: Config, plugins: Mapping[str, Plugin], identity: str) -> tuple[str, str]:
    """(the identity as messages will have it, why none can have it)."""
    transport, _, sender = identity.partition(":")
    section = config.transports.get(transport)
    plugin = plugins.get(section.kind) if section else None
    if section is None or plugin is None or plugin.sender is None:
        return identity, ""
    try:
        return f"{transport}:{plugin.sender(section.settings, sender)}", ""
    except ValueError as why:
        return identity, f"no message can ever come from it: behind {transport}: {why}"


def said(config: Config, plugins: Mapping[str, Plugin]) -> Iterator[Said]:
    """What is wrong with the sections that are enabled, and with the addresses of jobs."""
    accounts: dict[tuple[str, str], str] = {}
    for section in config.transports.values():
        plugin = plugins.get(section.kind)
        if plugin is None or not section.enabled:
            continue
        for each in plugin.mistakes(section.name, section.settings) if plugin.mistakes else ():
            yield Said(("transports", section.name, each.key), each.text, each.serious)
        if plugin.account:
            key, account = plugin.account(section.settings)
            other = accounts.setdefault((section.kind, account), section.name)
            if account and other != section.name:
                text = f"transports.{other} has the same account: each would take messages away from the other"
                yield Said(("transports", section.name, key), text)
    for index, job in enumerate(config.schedule):
        if why := unreachable(config, plugins, job.deliver_to):
            yield Said(("schedule", index, "deliver_to"), why)


def unreachable(config: Config, plugins: Mapping[str, Plugin], address: str) -> str:
    """Why nothing can ever be sent to `address` (`transport:chat[/thread]`); empty where it may, or its transport is not enabled."""
    try:
        to = Address.parse(address)
    except ValueError:
        return "must be transport:chat or transport:chat/thread"
    section = config.transports.get(to.transport)
    plugin = plugins.get(section.kind) if section and section.enabled else None
    why = _refusal(plugin, section, to) if plugin and section else ""
    return f"nothing can be sent to {to}: {why}" if why else ""


def _refusal(plugin: Plugin, section: TransportSection, to: Address) -> str:
    return str(plugin.build(section.name, section.settings).capabilities.unreachable(to))
