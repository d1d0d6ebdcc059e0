"""What a new config file is to say, and how it is written. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_origin

from pydantic import BaseModel, SecretStr, ValidationError

from clew.config.wording import annotations_at, unknown, wording
from clew.config.yaml import plain


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that is kept in a file of its own."""

    text: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A text that is read from the environment each time."""

    name: str


Value = Any
"""A plain value of YAML, a Secret or a Variable."""


@dataclass(slots=True)
class Section:
    """A section of `providers` or `transports`. remarks: by key, what stands behind the value as a comment."""

    name: str
    kind: str
    values: dict[str, Value] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Draft:
    """A config. provider: None to take what there is when clew starts. timezone: an IANA name, empty for the machine's."""

    provider: Section | None = None
    owner: str = ""
    timezone: str = ""
    identities: list[str] = field(default_factory=list)
    transports: list[Section] = field(default_factory=list)

    @property
    def sections(self) -> list[Section]:
        return [*([self.provider] if self.provider else []), *self.transports]

    def secrets(self) -> dict[str, str]:
        """Each secret by the name of its file: section and key."""
        return {
            f"{section.name}_{key}": value.text
            for section in self.sections
            for key, value in section.values.items()
            if isinstance(value, Secret)
        }


HEAD = """\
# clew's configuration, made by `clew init`. What is not written here has its default: `clew config show` prints all that is in
# effect, `clew config example` every key with what it does, `clew config check` every mistake with its line.

# data_dir: "${STATE_DIRECTORY:-~/.local/share/clew}"   # where everything is kept
# http: {host: 127.0.0.1, port: 8130}   # the page; for other machines too: another host, a token, and TLS in front
"""
NO_PROVIDER = """
# Ways to reach a model. None is written: clew takes the first that it finds, such as ANTHROPIC_API_KEY or a server on this machine.
# providers:
#   claude: {kind: anthropic, model: claude-sonnet-5-5, api_key: "${ANTHROPIC_API_KEY:-}"}
"""
NO_TRANSPORT = """
# Where clew is talked to, beside the page and the terminal, which need no line. See docs/transports.
# transports:
#   telegram: {token: "${file:telegram.token}"}
"""
OWN = "                      # the page and the terminal of this machine are the owner's anyway"
BELOW = """
# access: {unknown: pair}               # a stranger gets a code, and you let them in; or deny
# schedule:                             # prompts at set times: docs/schedules.md
#   - {name: morning, cron: "30 8 * * 1-5", prompt: What is on today?, deliver_to: web:local}
"""


def rendered(draft: Draft, files: Mapping[str, str]) -> str:
    """The config as YAML. files: where the secrets are, by the names of `Draft.secrets`, relative to the config."""
    text = HEAD
    if draft.provider:
        text += f"\nproviders:\n{_section(draft.provider, files)}"
    else:
        text += NO_PROVIDER
    text += f"\nagent:\n  provider: {written(draft.provider.name) if draft.provider else 'auto'}\n"
    if draft.timezone:
        text += f"  timezone: {written(draft.timezone)}\n"
    text += '  # system_prompt: ""                  # who clew is to be; empty: the built-in one\n'
    if draft.owner:
        known = written(draft.identities) if draft.identities else f"[]{OWN}"
        text += f"\npeople:\n  {name_of(draft.owner)}:\n    role: owner\n    identities: {known}\n"
    text += "\ntransports:\n" + "".join(_section(each, files) for each in draft.transports) if draft.transports else NO_TRANSPORT
    return text + BELOW


def _section(section: Section, files: Mapping[str, str]) -> str:
    lines = [f"  {section.name}:"]
    if section.kind != section.name:
        lines.append(f"    kind: {section.kind}")
    for key, value in section.values.items():
        line = f"    {key}: {_value(value, files.get(f'{section.name}_{key}', ''))}"
        remark = section.remarks.get(key, "")
        lines.append(f"{line:<39} # {remark}" if remark else line)
    if len(lines) == 1:
        lines.append("    enabled: true")
    return "\n".join(lines) + "\n"


def _value(value: Value, file: str) -> str:
    if isinstance(value, Secret):
        return json.dumps(f"${{file:{file}}}", ensure_ascii=False)
    if isinstance(value, Variable):
        return f'"${{{value.name}}}"'
    return written(value)


def written(value: Value) -> str:
    """A plain value on one line of YAML, so that the config's reader gives the same value back."""
    if isinstance(value, str):
        return name_of(value.replace("${", "$${"))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name_of(name)}: {written(item)}" for name, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(written, value))}]"
    return json.dumps(value)


def name_of(text: str) -> str:
    """A key on one line of YAML: nothing is expanded in it."""
    bare = re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*", text) and plain(text) == text
    return text if bare else json.dumps(text, ensure_ascii=False)


def typed(model: type[BaseModel], key: str, answer: str) -> Value:
    """What an answer means as the setting `key` of `model`: text, or as the setting's type says a list, pairs, a number or true and false.

    Raises ValueError where it is none of these.
    """
    kinds = list(annotations_at(model, (key,)))
    origins = [get_origin(each) for each in _types(model, key)]
    if str in kinds or SecretStr in kinds:
        return answer
    if any(isinstance(each, type) and issubclass(each, Mapping) for each in origins):
        pairs = [each.partition(":") for each in answer.strip("{}").split(",") if each.strip()]
        if not all(colon for _, colon, _ in pairs):
            raise ValueError("must be pairs such as this: that")
        return {name.strip(): item.strip() for name, _, item in pairs}
    if any(isinstance(each, type) and issubclass(each, (tuple, list)) for each in origins):
        return [each.strip() for each in answer.strip("[]").split(",") if each.strip()]
    return plain(answer)


def _types(model: type[BaseModel], key: str) -> list[Any]:
    field_ = model.model_fields.get(key)
    return [field_.annotation] if field_ else []


def is_secret(model: type[BaseModel], key: str) -> bool:
    """Whether a setting is one that nobody is to see."""
    return SecretStr in annotations_at(model, (key,))


def fault(model: type[BaseModel], key: str, answer: str) -> str:
    """Why an answer cannot be the setting `key` of `model`; empty where it can."""
    value: Value = answer
    try:
        value = typed(model, key, answer)
        model.model_validate_json(json.dumps({key: value}), strict=True, extra="forbid")
    except ValidationError as error:
        said = [each for each in error.errors(include_url=False, include_input=False) if each["loc"][:1] == (key,)]
        if said and said[0]["type"] == "extra_forbidden":
            message, nearest = unknown(model, (key,))
            return f"{message}; did you mean {nearest}?" if nearest else message
        return wording(said[0], value) if said else ""
    except ValueError as error:
        return str(error)
    return ""
