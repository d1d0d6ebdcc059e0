"""The conversation: one question after the other, until a draft is whole."""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import click
from pydantic import BaseModel

from clew.cli.doctor import line
from clew.cli.doctor.doors import port
from clew.cli.doctor.findings import Finding
from clew.cli.doctor.models import called
from clew.cli.doctor.platforms import findings_of
from clew.cli.init.asking import Asker, number_of
from clew.cli.init.draft import Draft, Secret, Section, Variable, fault, is_secret, typed
from clew.cli.init.models import ENDPOINT, KEYED, NONE, WAYS, Found, section_of
from clew.cli.init.staging import Staging
from clew.config import Config, Person
from clew.errors import ConfigError, UsageError
from clew.plugins import Ask, Plugin, Setup, registry

SERVER_ASKS = (("base_url", "Its address", ENDPOINT), ("model", "The model", "any"), ("api_key", "A key", ""))
"""What is asked of a server that was not found."""
LATER = "empty: by a code, later"
NOTHING = "clew answers with what it remembers until one is there"
DRAWN_BYTES = 24
"""Of a secret that nobody names."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says: settings by section and key, the rest as it is called there."""

    provider: str | None = None
    transports: tuple[str, ...] = ()
    owner: str | None = None
    timezone: str | None = None
    identities: tuple[str, ...] = ()
    settings: Mapping[tuple[str, str], str] = field(default_factory=dict)


class Conversation:
    """env: the environment, in which keys may be."""

    def __init__(self, asker: Asker, staging: Staging, given: Given, env: Mapping[str, str]) -> None:
        self._asker = asker
        self._staging = staging
        self._given = given
        self._env = env
        plugins = registry("clew.transports").items()
        self._kinds = {name: (plugin, plugin.setup) for name, plugin in plugins if plugin.setup}
        self._settings = dict(given.settings)
        self._answers: dict[tuple[str, str], str] = {}
        self._wrong: set[str] = set()
        self.draft = Draft()

    @property
    def is_well(self) -> bool:
        """Whether nothing of what is in the draft was found wrong."""
        return not self._wrong

    def refuse_unchosen(self, found: list[Found]) -> None:
        """Raises UsageError where `--set` names a section that nobody chooses: what it says would be lost."""
        hints = {name: f"Choose it with --provider {name}." for name in WAYS if name != NONE}
        hints |= {kind: f"Choose it with --transport {kind}." for kind in self._kinds}
        chosen = {self._given.provider or next((each.name for each in found), NONE), *self._given.transports}
        for section, key in self._given.settings:
            if section not in (chosen if self._asker.silent else hints):
                hint = hints.get(section, f"There are: {', '.join(hints)}.")
                raise UsageError(f"--set {section}.{key}: there is no {section} in this config.", hint=hint)

    # The model -----------------------------------------------------------------------------------------------------

    def choose_model(self, found: list[Found]) -> None:
        """Until one answers, or the person takes one that does not."""
        while True:
            self.draft.provider = self._provider(found)
            if self.draft.provider is None:
                return
            seen = asyncio.run(called(self._staging.load(self.draft), self.draft.provider.name))
            good = seen.outcome == "answers"
            self._tell("provider", "", [Finding("ok" if good else "problem", seen.text, of=seen.name)])
            if good or self._asker.silent or self._asker.confirm("Keep it all the same?", False):
                return

    def _provider(self, found: list[Found]) -> Section | None:
        """The section of the one that is chosen, None for whatever is there when clew starts."""
        name = self._given.provider or self._chosen(found)
        if name == NONE:
            return None
        there = next((each.section for each in found if each.name == name), None)
        section = Section(there.name, there.kind, dict(there.values)) if there else section_of(name)
        if name in KEYED:
            section.values["api_key"] = self._key(name)
        model = registry("clew.providers")[section.kind].Config
        for key, answer in self._of(name).items():
            section.values[key] = self._value(model, name, key, answer)
        if name == "local" and not section.values.get("base_url"):
            self._ask_server(section, model)
        return section

    def _chosen(self, found: list[Found]) -> str:
        there = [each.name for each in found]
        others = {name: f"{keyed.what}, with a key from {keyed.home}" for name, keyed in KEYED.items() if name not in there}
        if "local" not in there:
            others["local"] = "another server that speaks OpenAI's API"
        choices = {**{each.name: each.why for each in found}, **others, NONE: f"none for now: {NOTHING}"}
        default = 0 if found else len(choices) - 1
        nobody = f"no key is set and no server answers on this machine: {NOTHING}"
        click.echo(f"The model: {found[0].why if found else nobody}" if self._asker.silent else "A model to answer with:")
        return list(choices)[self._asker.choose("Which", list(choices.values()), default)]

    def _key(self, name: str) -> Secret | Variable:
        keyed = KEYED[name]
        if given := self._settings.get((name, "api_key")):
            return _kept(given)
        ask = Ask("api_key", f"The key for {keyed.what}", f"from {keyed.home}", keyed.env)
        return self._secret(name, ask, registry("clew.providers")[keyed.kind].Config)

    def _ask_server(self, section: Section, model: type[BaseModel]) -> None:
        for key, question, default in SERVER_ASKS:
            if key in section.values:
                continue
            hidden = is_secret(model, key)
            answer = self._asker.ask(
                question,
                default,
                hint="empty: none" if hidden else "",
                secret=hidden,
                fault=lambda text, key=key: fault(model, key, text) if text else "",  # type: ignore[misc]
                flag=f"--set {section.name}.{key}=…",
            )
            if answer:
                section.values[key] = Secret(answer) if hidden else typed(model, key, answer)

    # The person ----------------------------------------------------------------------------------------------------

    def name_owner(self, user: str, zone: str) -> None:
        """user, zone: this machine's, for what is not said."""
        name = self._given.owner
        self.draft.owner = name if name is not None else self._asker.ask("Your name here", user, fault=_no_name, flag="--owner")
        if why := _no_name(self.draft.owner):
            raise UsageError(f"--owner: {why}.")
        given = "" if self._given.timezone is None and self._asker.silent else self._given.timezone
        self.draft.timezone = given if given is not None else self._asker.ask("Your time zone", zone, fault=_no_zone, flag="--timezone")
        if why := _no_zone(self.draft.timezone):
            raise UsageError(f"--timezone: {self.draft.timezone} {why}.")
        self.draft.identities = list(self._given.identities)
        self._staging.load(self.draft)

    # Platforms -----------------------------------------------------------------------------------------------------

    def choose_transports(self) -> None:
        chosen = self._given.transports or self._platforms()
        for kind in dict.fromkeys(chosen):
            if kind not in self._kinds:
                raise UsageError(f"--transport: there is no {kind}.", hint=f"There are: {', '.join(self._kinds)}.")
            self._set_up(kind, *self._kinds[kind])

    def _platforms(self) -> list[str]:
        if self._asker.silent:
            return []
        names = list(self._kinds)
        click.echo("\nThe page and the terminal are there. Where else do you want to talk to it?")
        for number, (name, (_, setup)) in enumerate(self._kinds.items(), 1):
            click.echo(f"  {number:>2}  {name:<9} {setup.what}")

        def named(answer: str) -> list[str]:
            words = answer.replace(",", " ").split()
            return [names[number - 1] if (number := number_of(word, len(names))) else word for word in words]

        def why_not(answer: str) -> str:
            unknown = [each for each in named(answer) if each not in names]
            return f"there is no {unknown[0]}" if unknown else ""

        return named(self._asker.ask("Names or numbers", hint="Enter: none", fault=why_not, flag="--transport"))

    def _set_up(self, kind: str, plugin: Plugin, setup: Setup) -> None:
        """Ask for a platform's settings, and look whether they hold, until they do or the person says that they are to stay."""
        click.echo(f"\n{kind}: {setup.what}")
        identities = self.draft.identities
        while True:
            section = Section(kind, kind)
            self.draft.identities = list(identities)
            for ask in setup.asks:
                self._set(section, ask, plugin)
            for key, answer in self._of(kind).items():
                if key not in section.values:
                    section.values[key] = self._value(plugin.Config, kind, key, answer)
            self._ask_sender(kind, setup)
            if self._holds(section):
                break
            # What the command line said did not hold: now it is asked.
            identities = [each for each in identities if not each.startswith(f"{kind}:")]
            for ask in setup.asks:
                self._settings.pop((kind, ask.key), None)
        if section not in self.draft.transports:
            self.draft.identities = identities
            self._wrong.discard(kind)

    def _holds(self, section: Section) -> bool:
        """Whether the draft has the section now, or is to do without it."""
        before = self.draft.transports
        self.draft.transports = [*before, section]
        try:
            findings = asyncio.run(findings_of(self._staging.load(self.draft), section.name))
        except ConfigError as error:
            self.draft.transports = before
            if self._asker.silent or not self._asker.on_terminal:
                raise
            click.echo(f"{error}\n  Once more:")
            return False
        self._tell("transport", section.name, findings)
        if self._asker.silent or section.name not in self._wrong:
            return True
        choice = self._asker.choose("What now", ("keep this, and mend it later", "answer once more", "leave it out"))
        if choice:
            self.draft.transports = before
        return choice != 1

    def _set(self, section: Section, ask: Ask, plugin: Plugin) -> None:
        given, model = self._settings.get((section.name, ask.key)), plugin.Config
        if given is not None:
            section.values[ask.key] = self._value(model, section.name, ask.key, given)
        elif is_secret(model, ask.key):
            value = self._secret(section.name, ask, model)
            if value != Secret(""):
                section.values[ask.key] = value
        else:
            usual = _usual(model, ask.key)
            earlier = self._answers.get((section.name, ask.key), usual)
            flag = f"--set {section.name}.{ask.key}=…"
            answer = self._asker.ask(ask.question, earlier, hint=_hint(ask), fault=_Fault(model, ask), flag=flag)
            self._answers[section.name, ask.key] = answer
            if answer and answer != usual:
                section.values[ask.key] = typed(model, ask.key, answer)
        if ask.key in section.values:
            section.remarks[ask.key] = ask.hint if ask.hint and is_secret(model, ask.key) else ask.question

    def _secret(self, name: str, ask: Ask, model: type[BaseModel]) -> Secret | Variable:
        """A secret: from the environment where it is there, drawn where that will do, else asked for; empty where it need not be."""
        kept = self._env.get(ask.env, "") if ask.env else ""
        if kept and self._asker.silent:
            return Variable(ask.env)
        usual = kept or (secrets.token_hex(DRAWN_BYTES) if ask.drawn else "")
        shown = f"the one in {ask.env}" if kept else "a new one" if usual else ""
        answer = self._asker.ask(
            ask.question,
            usual,
            hint=_hint(ask),
            shown=shown,
            secret=True,
            fault=_Fault(model, ask),
            flag=f"--set {name}.{ask.key}=@FILE" + (f", or set {ask.env}" if ask.env else ""),
        )
        return Secret(answer)

    def _ask_sender(self, kind: str, setup: Setup) -> None:
        if not setup.sender or any(each.startswith(f"{kind}:") for each in self.draft.identities):
            return
        hint = f"{setup.sender_hint}; {LATER}" if setup.sender_hint else LATER
        earlier = self._answers.get((kind, ""), "")
        if answer := self._asker.ask(setup.sender, earlier, hint=hint, flag=f"--identity {kind}:…"):
            self.draft.identities.append(f"{kind}:{answer}")
            self._answers[kind, ""] = answer

    def look_at_port(self) -> None:
        """Load all of it, and say where the page cannot be had."""
        seen = asyncio.run(port(self._staging.load(self.draft)))
        self._tell("port", "http", [each for each in seen if each.level != "ok"])

    # Flags ---------------------------------------------------------------------------------------------------------

    def _of(self, section: str) -> dict[str, str]:
        """What `--set` says of a section."""
        return {key: value for (name, key), value in self._settings.items() if name == section}

    def _value(self, model: type[BaseModel], section: str, key: str, answer: str) -> object:
        if is_secret(model, key):
            return _kept(answer)
        if why := fault(model, key, answer):
            raise UsageError(f"--set {section}.{key}: {why}.")
        return typed(model, key, answer)

    def _tell(self, name: str, section: str, findings: Sequence[Finding]) -> None:
        """Print what was found, and remember whether the section is well."""
        for each in findings:
            click.echo(line(name, each))
        (self._wrong.add if any(each.level == "problem" for each in findings) else self._wrong.discard)(section)


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why an answer cannot be what is asked for."""

    model: type[BaseModel]
    ask: Ask

    def __call__(self, answer: str) -> str:
        if not answer:
            return "must not be empty" if self.ask.needed else ""
        return fault(self.model, self.ask.key, answer)


def _kept(text: str) -> Secret | Variable:
    """A secret of the command line: `${NAME}` is read from the environment each time."""
    name = text.removeprefix("${").removesuffix("}")
    return Variable(name) if text == f"${{{name}}}" and name.isidentifier() else Secret(text)


def _usual(model: type[BaseModel], key: str) -> str:
    """The default of a setting as one would write it, empty where there is none."""
    default = model.model_fields[key].get_default(call_default_factory=True)
    if isinstance(default, bool):
        return str(default).lower()
    return str(default) if default and isinstance(default, (str, int)) else ""


def _hint(ask: Ask) -> str:
    return "; ".join(filter(None, (ask.hint, "" if ask.needed else "empty: none")))


def _no_name(name: str) -> str:
    return "" if name.strip() and len(name) <= 64 and name.isprintable() else "must have 1 to 64 characters that can be seen"


def _no_zone(name: str) -> str:
    return fault(Person, "timezone", name) if name else ""


def first_messages(config: Config) -> list[tuple[str, str]]:
    """(transport, how the first message is sent there), for those that are enabled and know."""
    senders = {each.partition(":")[0]: each.partition(":")[2] for person in config.people.values() for each in person.identities}
    kinds = registry("clew.transports")
    enabled = [each for each in config.transports.values() if each.enabled]
    told = [(each, kinds[each.kind].setup) for each in enabled]
    return [(each.name, setup.first(each.settings, senders.get(each.name, ""))) for each, setup in told if setup]
