"""The dashboard and the alerts ask for figures that clew serves, by labels that those have."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import Counter, Histogram
from prometheus_client.metrics import MetricWrapperBase

from clew.metrics import Metrics

FOLDER = Path(__file__).parents[2] / "deploy" / "monitoring"
OF_PROMETHEUS = {"job", "instance", "exported_job", "le"}


def dashboard() -> Iterator[tuple[str, str]]:
    for panel in json.loads((FOLDER / "grafana.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def alerts() -> Iterator[tuple[str, str]]:
    for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def served() -> dict[str, set[str]]:
    """Labels of each figure by the name under which Prometheus has it."""
    found = {"up": set[str]()}
    for each in vars(Metrics()).values():
        if isinstance(each, MetricWrapperBase):
            ends = ("_bucket", "_count", "_sum") if isinstance(each, Histogram) else ("_total",) if isinstance(each, Counter) else ("",)
            found |= {f"{each._name}{end}": set(each._labelnames) for end in ends}
    return found


@pytest.mark.parametrize(("name", "expression"), [*dashboard(), *alerts()])
def test_each_asks_for_what_is_there(name: str, expression: str) -> None:
    figures = served()
    asked = re.findall(r"\b(up|clew_\w+)\{([^}]*)\}", expression)
    assert asked, name
    labels = set[str]()
    for figure, matchers in asked:
        assert figure in figures, name
        labels |= figures[figure]
        assert set(re.findall(r"(\w+)\s*=~?", matchers)) <= figures[figure] | OF_PROMETHEUS
    by = [label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")]
    assert set(by) <= labels | OF_PROMETHEUS


def test_the_page_lists_what_is_served() -> None:
    page = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text()
    listed = dict(re.findall(r"^\| `(clew_\w+)` \|([^|]*)\|", page, re.MULTILINE))
    kinds = {
        each._name + ("_total" if isinstance(each, Counter) else ""): each
        for each in vars(Metrics()).values()
        if isinstance(each, MetricWrapperBase)
    }
    assert {name: set(re.findall(r"\w+", labels)) for name, labels in listed.items()} == {
        name: set(each._labelnames) for name, each in kinds.items()
    }
    for each in kinds.values():
        assert each._documentation in page
