"""Skills: folders with a SKILL.md in the Agent Skills format. Their names stand in the prompt, the rest is opened when it is wanted."""

import asyncio
import contextlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import structlog
import yaml
from pydantic import BaseModel, ConfigDict, Field

from clew.clock import new_id
from clew.context.skill_triggers import Said, words
from clew.messages import Message, ToolCall
from clew.request import ToolSpec
from clew.tools import Tool, ToolContext, ToolError, schema

log = structlog.get_logger()

FILE = "SKILL.md"
OPENING = "skill_open"
MOST = 200
"""Skills of one folder."""
LARGEST = 256 * 2**10
"""Bytes of a file of a skill."""
MOST_FILES = 50
"""Files of a skill that are named."""
LONGEST_DESCRIPTION = 1024
"""Characters, as the format has it."""
BUDGET_CHARS = 6_000
"""Characters of the prompt that names and descriptions may take."""
MOST_TRIGGERS = 20
LONGEST_TRIGGER = 100
"""Triggers of a skill, and characters of one."""
MOST_AT_ONCE = 3
"""Skills that the words of one message open."""
_NAME = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_FRONT = re.compile(r"\A---[ \t]*\r?\n(?P<front>.*?)^---[ \t]*(?:\r?\n|\Z)(?P<body>.*)", re.DOTALL | re.MULTILINE)
HEADING = "Skills, which are instructions for certain tasks. Where one fits, open it with skill_open before you begin:"


class BadSkill(Exception):
    """A folder is no skill; its text says why."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill, by its front matter. folder: where its files are. triggers: words that open it when somebody says them."""

    name: str
    description: str
    folder: Path
    triggers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skills:
    """The skills of a folder, by name. faults: (folder, what is wrong with it). unnamed: those that the budget has no room for."""

    found: tuple[Skill, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()

    @property
    def named(self) -> tuple[Skill, ...]:
        """Those that stand in the prompt: the first by name, as far as the budget goes."""
        taken, kept = len(HEADING), []
        for skill in self.found:
            taken += len(_line(skill)) + 1
            if taken > BUDGET_CHARS:
                break
            kept.append(skill)
        return tuple(kept)

    @property
    def unnamed(self) -> tuple[str, ...]:
        return tuple(skill.name for skill in self.found[len(self.named) :])

    @property
    def text(self) -> str:
        """What stands in the prompt of them, empty where there are none."""
        return "\n".join([HEADING, *map(_line, self.named)]) if self.found else ""

    def called_for(self, said: Iterable[str], opened: Collection[str] = ()) -> list[ToolCall]:
        """The calls that open the skills of which a trigger stands in what was said, the first ones by name. opened: not those again."""
        texts = [Said(each) for each in said]
        wanted = [
            skill.name
            for skill in self.found
            if skill.name not in opened and any(text.has(trigger) for trigger in skill.triggers for text in texts)
        ]
        return [ToolCall(f"call_{new_id()}", OPENING, json.dumps({"name": name})) for name in wanted[:MOST_AT_ONCE]]


def opened(messages: Iterable[Message], shortened: Collection[str]) -> set[str]:
    """The skills whose instructions stand in view, word for word. shortened: rows of which a line is left."""
    asked: dict[str, str] = {}
    found = set()
    for message in messages:
        for call in message.calls:
            asked[call.id] = _asked_for(call)
        for result in message.results:
            if not result.is_error and message.id not in shortened:
                found.add(asked.get(result.call_id, ""))
    return found - {""}


def _asked_for(call: ToolCall) -> str:
    """The skill whose instructions a call opens, empty for any other call."""
    try:
        arguments = Open.model_validate_json(call.arguments or "{}")
    except ValueError:
        return ""
    return arguments.name if call.name == OPENING and not arguments.file else ""


def _line(skill: Skill) -> str:
    return f"- {skill.name}: {skill.description}"


def read(folder: Path | None) -> Skills:
    """The skills in a folder, None for none. Whatever is wrong with one leaves the others alone."""
    if folder is None:
        return Skills()
    try:
        places = sorted(each for each in folder.expanduser().iterdir() if each.is_dir() and not each.name.startswith("."))
    except OSError as error:
        return Skills((), ((str(folder), error.strerror or "it cannot be read"),))
    found, faults = [], [] if len(places) <= MOST else [(str(folder), f"it has more than {MOST} folders; the others are left out")]
    for place in places[:MOST]:
        try:
            found.append(_skill(place))
        except BadSkill as error:
            faults.append((place.name, str(error)))
    return Skills(tuple(found), tuple(faults))


def _skill(place: Path) -> Skill:
    """Raises BadSkill."""
    front, _ = _parts(_text(_inside(place, FILE)))
    name, description = front.get("name"), front.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadSkill("its name must be 1 to 64 small letters, digits and single hyphens")
    if name != place.name:
        raise BadSkill(f"its name is {name!r}, and its folder's must be the same")
    if not isinstance(description, str) or not description.strip():
        raise BadSkill("it has no description")
    if len(description) > LONGEST_DESCRIPTION:
        raise BadSkill(f"its description has {len(description):,} characters, and {LONGEST_DESCRIPTION:,} are the most")
    return Skill(name, " ".join(description.split()), place, _triggers(front))


def _triggers(front: Mapping[str, object]) -> tuple[str, ...]:
    """Those of `triggers`, or of `triggers` under `metadata`: a list, or a text with commas. Raises BadSkill."""
    metadata = front.get("metadata")
    declared = front.get("triggers") or (metadata.get("triggers") if isinstance(metadata, dict) else None) or ()
    given = declared.split(",") if isinstance(declared, str) else declared
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, str) for each in given):
        raise BadSkill("its triggers are neither a list of texts nor a text with commas")
    triggers = tuple(" ".join(each.split()) for each in given)
    if len(triggers) > MOST_TRIGGERS:
        raise BadSkill(f"it has {len(triggers)} triggers, and {MOST_TRIGGERS} are the most")
    for each in triggers:
        if len(each) > LONGEST_TRIGGER or not words(each):
            raise BadSkill(f"its trigger {each[:LONGEST_TRIGGER]!r} must be words, of at most {LONGEST_TRIGGER} characters")
    return triggers


def _parts(text: str) -> tuple[dict[str, object], str]:
    """(the front matter, the body). Raises BadSkill."""
    parts = _FRONT.match(text)
    if parts is None:
        raise BadSkill(f"{FILE} does not begin with front matter between two lines of ---")
    try:
        front = yaml.safe_load(parts["front"])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise BadSkill(f"its front matter is no YAML{f' (line {mark.line + 2})' if mark else ''}") from None
    if not isinstance(front, dict):
        raise BadSkill("its front matter is no mapping")
    return front, parts["body"]


def _text(path: Path) -> str:
    """Raises BadSkill."""
    try:
        if path.stat().st_size > LARGEST:
            raise BadSkill(f"{path.name} is larger than {LARGEST // 1024} KiB")
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise BadSkill(f"there is no {path.name} in it") from None
    except (OSError, ValueError) as error:
        raise BadSkill(f"{path.name} cannot be read as UTF-8 text ({type(error).__name__})") from None


class Open(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(description="The skill's name.", min_length=1, max_length=64)]
    file: Annotated[str, Field(description="Another file of it, by the path that the skill gives.", max_length=500)] = ""


_OPEN = (OPENING, "Open a skill: its instructions, or another file of it.", Open)


def tools(skills: Skills) -> list[Tool]:
    """skill_open, where there are skills."""
    known = {skill.name: skill for skill in skills.found}

    async def open_skill(context: ToolContext, arguments: BaseModel) -> str:
        asked = Open.model_validate(arguments.model_dump())
        skill = known.get(asked.name)
        if skill is None:
            raise ToolError(f"There is no skill {asked.name!r}. The skills are: {', '.join(known)}.")
        try:
            return await asyncio.to_thread(_opened, skill, asked.file)
        except BadSkill as error:
            raise ToolError(f"The skill {skill.name} cannot be opened: {error}.") from None

    return [Tool(*_OPEN, open_skill, idempotent=True)] if known else []


def specs(skills: Skills) -> list[ToolSpec]:
    """What a model is told of this tool."""
    name, description, arguments = _OPEN
    return [ToolSpec(name, description, schema(arguments))] if skills.found else []


def _opened(skill: Skill, file: str) -> str:
    """A file of a skill; without one its instructions, with the names of the others. Raises BadSkill."""
    if file:
        return _text(_inside(skill.folder, file))
    body = _parts(_text(_inside(skill.folder, FILE)))[1].strip()
    others = ", ".join(islice(_files(skill.folder, skill.folder), MOST_FILES))
    return f"{body}\n\nIts other files, for skill_open: {others}" if others else body


def _inside(folder: Path, file: str) -> Path:
    """A plain file of a skill, and no other one. Raises BadSkill."""
    home = folder.resolve()
    with contextlib.suppress(OSError, ValueError, RuntimeError):  # a name that can be none, links that lead in a circle
        path = (home / file).resolve()
        if path.is_relative_to(home) and path.is_file():
            return path
    raise BadSkill(f"there is no {FILE} in it" if file == FILE else f"it has no file {file!r}")


def _files(place: Path, folder: Path) -> Iterator[str]:
    """The files of a folder in the order of their names, those of a folder in it where its name stands; hidden ones are left out, and
    links to folders are not followed."""
    try:
        entries = sorted(os.scandir(place), key=lambda each: each.name)
    except OSError:
        return
    for each in entries:
        if each.name.startswith("."):
            continue
        if each.is_dir(follow_symlinks=False):
            yield from _files(Path(each.path), folder)
        elif each.is_file() and each.name != FILE:
            yield str(Path(each.path).relative_to(folder))
