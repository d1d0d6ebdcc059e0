import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import is_hypothesis_test, settings

from tests import servers, synapse
from tests.databases import databases

# How long an example takes says more about the machine than about the code. The same examples each time, so that a change
# is judged by itself; `make soak` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("same")
LESS = 3
"""Of the examples of a property as many fewer are tried on PostgreSQL, after all of them on SQLite."""


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A command that runs inside of a test sets up the log of the whole process, and loggers keep what they were first used with."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    if structlog.is_configured():
        structlog.reset_defaults()
        root.handlers[:] = handlers
        root.setLevel(level)
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in ("clew", "clew_transports"):
                getattr(getattr(module, "log", None), "__dict__", {}).pop("bind", None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on each of the databases that its mark names, else that of its module."""
    if mark := metafunc.definition.get_closest_marker("stores"):
        metafunc.parametrize("database", mark.args, indirect=True)


@pytest.fixture(autouse=True)
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """What the stores of this test are in, see `tests.databases.BOTH`; CLEW_TEST_STORE says it for tests that do not."""
    kind: str = getattr(request, "param", os.environ.get("CLEW_TEST_STORE", "sqlite"))
    databases.begin(kind)
    with pytest.MonkeyPatch.context() as patch:
        if kind == "postgresql" and is_hypothesis_test(request.function):
            its = request.function._hypothesis_internal_use_settings
            fewer = settings(its, max_examples=max(1, its.max_examples // LESS))
            patch.setattr(request.function, "_hypothesis_internal_use_settings", fewer)
        yield kind


@pytest.fixture
def free_port() -> int:
    """A TCP port on loopback that was free a moment ago."""
    return servers.free_port()


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[servers.Mosquitto]:
    """A running broker of this test's own, open to anonymous clients. Skips where mosquitto is not installed."""
    if servers.find_program("mosquitto") is None:
        pytest.skip(servers.MOSQUITTO_MISSING)
    directory = tmp_path / "mosquitto"
    directory.mkdir()
    with servers.Mosquitto(directory) as broker:
        yield broker


@pytest.fixture(scope="session")
def homeserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[synapse.Synapse]:
    """A running Matrix homeserver for the whole run: each test has accounts and rooms of its own there. Skips where it is not installed."""
    if not synapse.PYTHON.exists():
        pytest.skip(synapse.MISSING)
    with synapse.Synapse(tmp_path_factory.mktemp("synapse")) as server:
        yield server
