"""Ways to a model that are found on this machine, and those that a person can name."""

import json
import shutil
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from clew.cli.init.draft import Section

ENDPOINT = "http://127.0.0.1:8080/v1"
"""Where llama.cpp's server listens when nothing else is said."""
OLLAMA = "http://127.0.0.1:11434"
OPENAI, OPENROUTER = "https://api.openai.com/v1", "https://openrouter.ai/api/v1"
PROBE_S = 1.5
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Keyed:
    """A provider that is reached with a key. env: where that usually is. home: where one gets it."""

    what: str
    kind: str
    env: str
    home: str
    values: Mapping[str, str]


KEYED: Mapping[str, Keyed] = {
    "claude": Keyed("Claude", "anthropic", "ANTHROPIC_API_KEY", "console.anthropic.com", {"model": "claude-sonnet-5-5"}),
    "openai": Keyed("OpenAI", "openai", "OPENAI_API_KEY", "platform.openai.com", {"base_url": OPENAI, "model": "gpt-5.6"}),
    "openrouter": Keyed(
        "OpenRouter", "openai", "OPENROUTER_API_KEY", "openrouter.ai", {"base_url": OPENROUTER, "model": "openrouter/auto"}
    ),
}
SERVERS: Mapping[str, str] = {"local": "openai", "home": "ollama", "sub": "claude_cli"}
"""The other ways, as the defaults name them, and their kinds."""
MODELS: Mapping[str, Mapping[str, str]] = {"home": {"model": "qwen3"}, "sub": {"model": "sonnet"}}
NONE = "none"
WAYS = (*KEYED, *SERVERS, NONE)


@dataclass(frozen=True, slots=True)
class Found:
    """A way to a model that is there. why: how it was found, in words."""

    name: str
    why: str
    section: Section


def found(env: Mapping[str, str]) -> list[Found]:
    """What is there, the best first: keys in the environment, servers on this machine, the `claude` program."""
    with ThreadPoolExecutor(2) as pool:
        llama = pool.submit(_first_of, f"{ENDPOINT}/models", "data", "id")
        ollama = pool.submit(_first_of, f"{OLLAMA}/api/tags", "models", "name")
    ways = [Found(name, f"{keyed.what}: {keyed.env} is set", section_of(name)) for name, keyed in KEYED.items() if env.get(keyed.env)]
    if model := llama.result():
        section = section_of("local", base_url=ENDPOINT, model=model)
        ways.append(Found("local", f"a server on this machine: {ENDPOINT} has {model}", section))
    if model := ollama.result():
        ways.append(Found("home", f"Ollama on this machine: it has {model}", section_of("home", model=model)))
    if shutil.which("claude", path=env.get("PATH")):
        ways.append(Found("sub", "the claude program, with the account that it is signed in to", section_of("sub")))
    return ways


def section_of(name: str, **values: str) -> Section:
    """A section for the way `name`, without its key."""
    keyed = KEYED.get(name)
    usual = keyed.values if keyed else MODELS.get(name, {})
    return Section(name, keyed.kind if keyed else SERVERS[name], {**usual, **values})


def _first_of(url: str, listing: str, key: str) -> str | None:
    """The first model that a server lists, None where there is no server or no model."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=PROBE_S) as response:
            listed: Any = json.loads(response.read(2**20))
        name = listed[listing][0][key]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable() else None
