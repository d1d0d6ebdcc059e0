"""Texts that are written for a model: files with a version, loaded by name."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class PromptText:
    """`version` is stored with what the prompt produced."""

    version: str
    text: str


@cache
def load(name: str) -> PromptText:
    """The prompt `name`.md: its first line is `version: N`, the text follows."""
    head, _, text = files("clew.prompts").joinpath(f"{name}.md").read_text("utf-8").partition("\n")
    return PromptText(f"{name}-{head.removeprefix('version:').strip()}", text.strip())
