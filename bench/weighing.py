"""What clew and its providers load and take up on the disk."""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bench.figures import Against, Figure
from bench.machine import ROOT
from bench.subject import Run, Subject
from clew.plugins import registry

TIMES = 5
METHOD = f"""
CPU and resident memory of a process that has imported all that `clew run` imports, without and with what a kind of provider loads before
clew is ready; medians of {TIMES}. Packages that `pip install clew` does not bring, such as tools for development, are hidden from it. The
floor is a Python that does nothing. On the disk: the installed files of the packages that are loaded, with what those require; clew's own
sources are counted without what Python compiles them to.
"""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Milliseconds of CPU, MB of memory, and MB on the disk of what is loaded."""

    cpu: float
    memory: float
    packages: float


async def measure(_: Run) -> list[Figure]:
    nothing, daemon = _bare(), _loaded(None)
    python, without = "a Python that does nothing", "clew without a provider"
    figures = [
        Figure("clew without a provider: CPU of importing", daemon.cpu, "ms", Against(python, nothing)),
        Figure("clew without a provider: packages", daemon.packages, "MB", Against("clew's own sources", _own())),
    ]
    for kind in registry("clew.providers"):
        found = _loaded(kind)
        figures += [
            Figure(f"clew with {kind}: CPU of importing", found.cpu, "ms", Against(without, daemon.cpu)),
            Figure(f"clew with {kind}: memory", found.memory, "MB", Against(without, daemon.memory)),
            Figure(f"clew with {kind}: packages", found.packages, "MB", Against(without, daemon.packages)),
        ]
    everything = sum(map(_size, required(["clew"]))) + _own()
    return [*figures, Figure("all that `pip install clew` brings", everything, "MB", Against(without, daemon.packages))]


def _loaded(kind: str | None) -> Loaded:
    brought = required(["clew"])
    foreign = [module for module, names in _distributions.items() if not brought.union({"clew"}).intersection(map(_canonical, names))]
    command = [sys.executable, "-m", "bench.loaded", *([kind] if kind else [])]
    runs = [json.loads(subprocess.check_output(command, cwd=ROOT, text=True, input=json.dumps(foreign))) for _ in range(TIMES)]
    names = brought.intersection(_canonical(name) for module in runs[0]["modules"] for name in _distributions.get(module, ()))
    return Loaded(
        statistics.median(each["cpu"] for each in runs) * 1e3,
        statistics.median(each["mb"] for each in runs),
        sum(map(_size, required(names))) + _own(),
    )


def _bare() -> float:
    command = [sys.executable, "-c", "import time; print(time.process_time())"]
    return statistics.median(float(subprocess.check_output(command, text=True)) for _ in range(TIMES)) * 1e3


_distributions = packages_distributions()


def required(names: Iterable[str]) -> set[str]:
    """These packages and all that they require, as far as they are installed; clew itself is not among them."""
    seen, waiting = set[tuple[str, str]](), [(name, "") for name in names]
    while waiting:
        name, extra = each = waiting.pop()
        package = _package(name)
        if package is None or each in seen:
            continue
        seen.add(each)
        for needed in map(Requirement, package.requires or ()):
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                waiting += [(needed.name, ""), *((needed.name, more) for more in needed.extras)]
    return {_canonical(name) for name, _ in seen} - {"clew"}


def _canonical(name: str) -> str:
    return str(canonicalize_name(name))


def _package(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:  # of another system
        return None


def _size(name: str) -> float:
    """MB of a package's files."""
    paths = [Path(str(file.locate())) for file in distribution(name).files or ()]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def _own() -> float:
    """MB of clew's own files."""
    paths = [path for source in ("daemon", "transports") for path in (ROOT / source).rglob("*") if "__pycache__" not in path.parts]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


subject = Subject("weighing", "What is loaded and installed", METHOD, measure, lambda _: f"{TIMES} processes each")
