"""Imports run down: docs/architecture.md has the table, this reads the tree."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
ADAPTERS = "clew_transports"
FOR_ADAPTERS = frozenset({"clew.transport", "clew.plugins", "clew.config"})
IMPURE = frozenset(
    {
        *("asyncio", "concurrent", "io", "locale", "logging", "multiprocessing", "os", "pathlib", "random", "secrets", "shutil", "socket"),
        *("sqlite3", "structlog", "subprocess", "sys", "tempfile", "threading", "time", "urllib.request", "uuid"),
    }
)
IMPURE_CALLS = frozenset({"open", "print", "input", "hash", "exec", "eval", "now", "utcnow", "today"})

_ROW = re.compile(r"^\| (\d) \| `([a-z_]+)(\.py|/)` \| \S.* \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Import:
    """That `importer`, at `line` of `path`, imports `imported`. `path` is relative to the repository."""

    importer: str
    imported: str
    path: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


def modules(root: Path) -> dict[str, Path]:
    """Dotted name and file of every module under the two source roots."""
    found = {}
    for source in (root / "daemon", root / "transports"):
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(root: Path) -> list[Import]:
    """Every import, those inside functions and for type checkers too. `from a import b` is a.b where that is a module."""
    known = modules(root)
    return [
        Import(name, target if target in known else target.rpartition(".")[0], str(path.relative_to(root)), line)
        for name, path in known.items()
        for target, line in _targets(ast.parse(path.read_text("utf-8")), name, path.name == "__init__.py")
    ]


def _targets(tree: ast.Module, name: str, package: bool) -> Iterator[tuple[str, int]]:
    """(module or module.attribute, line)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((f"{alias.name}.*", node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = name.split(".")[: None if package and node.level == 1 else -(node.level - package)] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((f"{origin}.{alias.name}", node.lineno) for alias in node.names)


def rooms(page: str) -> dict[str, int]:
    """Room and its floor; a package ends with a dot."""
    return {_room(name, kind): int(floor) for floor, name, kind in _ROW.findall(page)}


def _room(name: str, kind: str) -> str:
    if name == "__init__":
        return "clew"
    return f"clew.{name}." if kind == "/" else f"clew.{name}"


def floor_of(module: str, table: Mapping[str, int]) -> int | None:
    return next((floor for room, floor in table.items() if module == room or (f"{module}.".startswith(room) and room.endswith("."))), None)


def without_room(root: Path, table: Mapping[str, int]) -> list[str]:
    """Modules that the table does not name, and rooms that are not there."""
    ours = [name for name in modules(root) if name.partition(".")[0] == "clew"]
    strangers = [f"{name} has no row in docs/architecture.md: give it a floor" for name in ours if floor_of(name, table) is None]
    gone = [f"docs/architecture.md lists {room}, which does not exist" for room in table if not any(floor_of(n, {room: 1}) for n in ours)]
    return strangers + gone


def running_up(root: Path, table: Mapping[str, int]) -> list[str]:
    """Imports from a floor above."""
    found = []
    for each in imports(root):
        own, other = floor_of(each.importer, table), floor_of(each.imported, table)
        if own is not None and other is not None and other > own:
            found.append(f"{each.place}: {each.importer} (floor {own}) imports {each.imported} (floor {other})")
    return found


def circles(root: Path) -> list[str]:
    """Modules that import each other, one line per circle that is met."""
    graph: dict[str, list[str]] = {name: [] for name in modules(root)}
    for each in imports(root):
        if each.imported in graph and each.imported != each.importer:
            graph[each.importer].append(each.imported)
    found: list[str] = []
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> None:
        if name in trail:
            found.append(" imports ".join([*trail[trail.index(name) :], name]))
        elif name not in done:
            for target in graph[name]:
                visit(target, [*trail, name])
            done.add(name)

    for name in graph:
        visit(name, [])
    return found


def through_walls(root: Path) -> list[str]:
    """Adapters that reach into clew, and clew reaching for an adapter."""
    found = []
    for each in imports(root):
        own, other = each.importer.partition(".")[0], each.imported.partition(".")[0]
        if own == ADAPTERS and other == "clew" and each.imported not in FOR_ADAPTERS:
            found.append(f"{each.place}: {each.importer} imports {each.imported}; adapters may import {', '.join(sorted(FOR_ADAPTERS))}")
        if own == "clew" and other == ADAPTERS:
            found.append(f"{each.place}: {each.importer} imports the adapter {each.imported}; adapters come by entry point")
    return found


def impurities(root: Path) -> list[str]:
    """What a pure module does not do: imports and calls that reach outside of its arguments."""
    found = [
        f"{each.place}: {each.importer} is pure and imports {each.imported}"
        for each in imports(root)
        if each.importer.startswith("clew.context") and (each.imported in IMPURE or each.imported.partition(".")[0] in IMPURE)
    ]
    for name, path in modules(root).items():
        if name.startswith("clew.context"):
            found += [
                f"{path.relative_to(root)}:{line}: {name} is pure and calls {called}()"
                for called, line in _calls(ast.parse(path.read_text("utf-8")))
                if called in IMPURE_CALLS
            ]
    return found


def _calls(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=called) | ast.Attribute(attr=called):
                    yield called, node.lineno


TABLE = rooms(PAGE.read_text("utf-8"))


def test_every_module_has_a_floor() -> None:
    assert without_room(ROOT, TABLE) == []


def test_no_import_runs_up() -> None:
    assert running_up(ROOT, TABLE) == []


def test_no_modules_import_each_other() -> None:
    assert circles(ROOT) == []


def test_adapters_stand_beside_the_house() -> None:
    assert through_walls(ROOT) == []


def test_context_is_pure() -> None:  # P29
    assert impurities(ROOT) == []


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A tree with one fault of each kind."""
    files = {
        "daemon/clew/__init__.py": "",
        "daemon/clew/low.py": "def late():\n    from clew.high import thing\n",
        "daemon/clew/high.py": "import clew.mid\n",
        "daemon/clew/mid.py": "from clew import high\n",
        "daemon/clew/reach.py": "import clew_transports.fax\n",
        "daemon/clew/context/__init__.py": "",
        "daemon/clew/context/view.py": "from datetime import datetime\nimport os.path\nstamp = datetime.now()\n",
        "transports/clew_transports/__init__.py": "",
        "transports/clew_transports/fax.py": "from clew.transport import Host\nfrom clew import config, low\nfrom . import text\n",
        "transports/clew_transports/text.py": "",
        "daemon/clew/transport.py": "",
        "daemon/clew/config/__init__.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_each_fault_is_named_with_its_place(house: Path) -> None:
    table = rooms(
        "| 1 | `__init__.py` | x |\n| 1 | `low.py` | x |\n| 2 | `context/` | x |\n| 3 | `mid.py` | x |\n| 3 | `high.py` | x |\n"
        "| 1 | `transport.py` | x |\n| 1 | `config/` | x |\n| 4 | `gone.py` | x |\n"
    )
    assert without_room(house, table) == [
        "clew.reach has no row in docs/architecture.md: give it a floor",
        "docs/architecture.md lists clew.gone, which does not exist",
    ]
    assert running_up(house, table) == ["daemon/clew/low.py:2: clew.low (floor 1) imports clew.high (floor 3)"]
    assert circles(house) == ["clew.high imports clew.mid imports clew.high"]
    assert through_walls(house) == [
        "daemon/clew/reach.py:1: clew.reach imports the adapter clew_transports.fax; adapters come by entry point",
        "transports/clew_transports/fax.py:2: clew_transports.fax imports clew.low; "
        "adapters may import clew.config, clew.plugins, clew.transport",
    ]
    assert impurities(house) == [
        "daemon/clew/context/view.py:2: clew.context.view is pure and imports os.path",
        "daemon/clew/context/view.py:3: clew.context.view is pure and calls now()",
    ]


def test_relative_imports_are_followed(house: Path) -> None:
    assert Import("clew_transports.fax", "clew_transports.text", "transports/clew_transports/fax.py", 3) in imports(house)
