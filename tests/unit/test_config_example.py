"""config.example.yaml shows every key with its default and loads as it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from clew.config import Budget, Config, Embeddings, Job, Person, Price, Transcriber, load
from clew.config.wording import annotations_at
from clew.plugins import registry

EXAMPLE = Path(__file__).parents[2] / "config.example.yaml"
SHOWN_COMMENTED: dict[str, type[BaseModel]] = {
    "embeddings": Embeddings,
    "people": Person,
    "schedule": Job,
    "budgets": Budget,
    "prices": Price,
    "transcriber": Transcriber,
}


def models(group: str) -> dict[str, type[BaseModel]]:
    return {kind: plugin.Config for kind, plugin in registry(f"clew.{group}").items()}


def load_here(path: Path, env: dict[str, str] | None = None) -> Config:
    return load(path, transports=models("transports"), providers=models("providers"), env=env or {"HOME": "/home/ada"})


def keys(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """The paths of all keys of `model`, those of sections in sections too."""
    for name in model.model_fields:
        yield (name,)
        for below in annotations_at(model, (name,)):
            if isinstance(below, type) and issubclass(below, BaseModel):
                yield from ((name, *rest) for rest in keys(below))


def present(data: Any, path: tuple[str, ...]) -> bool:
    for part in path:
        if not isinstance(data, dict) or part not in data:
            return False
        data = data[part]
    return True


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    data = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return data


def uncommented(key: str) -> Any:
    """The value of `key` in the block of the example that stands commented out."""
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    start = lines.index(f"# {key}:")
    rows = lines[start : next(n for n in range(start, len(lines)) if not lines[n].startswith("#"))]
    return yaml.safe_load("\n".join(row.removeprefix("# ") for row in rows))[key]


def test_it_loads_with_no_variable_set_and_means_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "clew.yaml").write_text("store: sqlite")
    assert load_here(EXAMPLE) == load_here(tmp_path / "clew.yaml")


def test_it_has_every_key(example: dict[str, Any]) -> None:
    shown = [path for path in keys(Config) if len(path) == 1 or path[0] not in SHOWN_COMMENTED]
    assert [path for path in shown if not present(example, path)] == []


@pytest.mark.parametrize(("group", "common"), [("providers", ["kind"]), ("transports", ["enabled"])])
def test_it_has_every_key_of_every_plug_in(example: dict[str, Any], group: str, common: list[str]) -> None:
    shown = {section.get("kind", name): section for name, section in example[group].items()}
    assert set(shown) == set(models(group))
    for kind, model in models(group).items():
        wanted = [(name,) for name in common] + list(keys(model))
        assert [(kind, *path) for path in wanted if not present(shown[kind], path)] == []


@pytest.mark.parametrize("key", sorted(SHOWN_COMMENTED))
def test_it_has_every_key_of_what_stands_commented_out(key: str) -> None:
    found = uncommented(key)
    first = found[0] if isinstance(found, list) else next(iter(found.values()))
    item = first if isinstance(first, dict) else found
    assert set(item) == set(SHOWN_COMMENTED[key].model_fields)


def test_its_comments_load_when_they_are_taken_away(tmp_path: Path) -> None:
    data = {key: uncommented(key) for key in SHOWN_COMMENTED}
    path = tmp_path / "clew.yaml"
    path.write_text(yaml.safe_dump({**data, "transports": {"web": {"enabled": True}}}))
    assert [job.name for job in load_here(path).schedule] == ["morning"]


def test_it_is_usable_offline_and_without_a_key() -> None:
    config = load_here(EXAMPLE)
    assert config.agent.provider == "auto"
    assert not config.providers["claude"].configured
    assert config.providers["none"].kind == "offline"
    assert [name for name, section in config.transports.items() if section.enabled] == ["web", "terminal"]
