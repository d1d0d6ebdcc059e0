"""`clew init`: a config file to begin with."""

import json
import os
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import click

from clew.cli.options import settings
from clew.errors import ClewError, UsageError

EXAMPLE_ENDPOINT = "http://127.0.0.1:8080/v1"
"""What the example names; llama.cpp's server listens there."""
PROBED = (EXAMPLE_ENDPOINT, "http://127.0.0.1:11434/v1")
"""Where llama.cpp's server and Ollama listen when nothing else is said."""
PROBE_TIMEOUT = 1.0
LONGEST_ANSWER = 2**20
OPENAI_MODEL = "gpt-5.6"


@dataclass(frozen=True, slots=True)
class Found:
    """A way to reach a model. section: lines for `providers`, empty where the example has them already; replaced: texts of the example
    and what stands there instead."""

    name: str
    why: str
    section: str = ""
    replaced: tuple[tuple[str, str], ...] = ()


@click.command()
@click.option("--config", "path", type=click.Path(path_type=Path, dir_okay=False), default=Path("clew.yaml"), help="The file to write.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def init(path: Path, yes: bool) -> None:
    """Write a commented config file (./clew.yaml), with the way to a model that is found on this machine."""
    if path.exists():
        raise UsageError(f"{path} is there already.", hint="Name another file with --config, or move that one away.")
    found = find(os.environ)
    click.echo(found.why)
    if not (yes or sys.stdin.isatty()):
        raise UsageError("There is nobody to ask.", hint="`clew init --yes` writes the file without a question.")
    if not yes and not click.confirm(f"Write {path}?", default=True):
        raise ClewError("nothing was written.")
    _write(path, written(example(), found))
    settings(path)
    click.echo(f"{path} is written and loads. Next:")
    for command, text in _next(path):
        click.echo(f"  {command:<40} {text}")


def _next(path: Path) -> list[tuple[str, str]]:
    option = "" if path == Path("clew.yaml") else f" --config {path}"
    return [
        (f"clew doctor{option}", "looks whether all is well"),
        (f"clew chat{option}", "talks to it here, now"),
        (f"clew run{option}", "runs the daemon, with its chat page"),
    ]


def find(env: Mapping[str, str]) -> Found:
    """The first way to a model: a key in the environment, else a server on this machine, else none."""
    if env.get("ANTHROPIC_API_KEY"):
        return Found("claude", "ANTHROPIC_API_KEY is set: clew will use Claude.")
    if env.get("OPENAI_API_KEY"):
        return Found("openai", "OPENAI_API_KEY is set: clew will use OpenAI.", _OPENAI)
    for url in PROBED:
        model = _first_model(url)
        if model:
            replaced = ((EXAMPLE_ENDPOINT, url), ("model: any", f"model: {json.dumps(model)}"))
            return Found("local", f"A model server answers at {url}: clew will use its model {model}.", replaced=replaced)
    return Found("auto", "No key is set and no model server answers on this machine: clew will say so until one is there.")


_OPENAI = f"""\
  openai:
    kind: openai
    base_url: https://api.openai.com/v1
    model: {OPENAI_MODEL}
    api_key: "${{OPENAI_API_KEY}}"
"""


def _first_model(url: str) -> str | None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/models", timeout=PROBE_TIMEOUT) as response:
            listed = json.loads(response.read(LONGEST_ANSWER))
        name = listed["data"][0]["id"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return name if isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable() else None


def example() -> str:
    """The commented example of every key: packaged with clew, or at the top of its source tree."""
    packaged = files("clew").joinpath("config.example.yaml")
    if packaged.is_file():
        return packaged.read_text("utf-8")
    return Path(__file__).parents[3].joinpath("config.example.yaml").read_text("utf-8")


def written(text: str, found: Found) -> str:
    """The example `text` with what was found put in. Raises ValueError where the example has no place for it."""
    changes = [("  provider: auto ", f"  provider: {found.name} "), *found.replaced]
    if found.section:
        changes.append(("providers:\n", "providers:\n" + found.section))
    for old, new in changes:
        if old not in text:
            raise ValueError(f"the example has no {old!r}")
        text = text.replace(old, new, 1)
    return text


def _write(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
