"""Which tests prove which promise: read from the comments in the tests, written into docs/promises.md.

`python -m tests.promises --write` brings the page up to date; without `--write` it says what is out of date and ends with 1.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "promises.md"
NUMBERS = range(1, 51)
PROVEN = "Proven by:"
UNPROVEN = f"{PROVEN} not proven yet"

HEADING = re.compile(r"^### P(\d+)\b", re.MULTILINE)
_LIST = re.compile(rf"^{PROVEN}.*(?:\n- `.*)*$", re.MULTILINE)
_NAMED = re.compile(r"\bP([1-9]\d?)\b")

Proofs = Mapping[int, Sequence[str]]


def proofs(root: Path = ROOT) -> dict[int, list[str]]:
    """Promise → tests that name it in a comment on them or in them, as `tests/…::test_name`, sorted."""
    found: dict[int, list[str]] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        text = path.read_text("utf-8")
        comments = _comments(text)
        for name, first, last in _tests(ast.parse(text)):
            # Comment lines right above a test belong to it.
            while comments.get(first - 1, ("", False))[1]:
                first -= 1
            said = " ".join(comments[line][0] for line in range(first, last + 1) if line in comments)
            for number in {int(digits) for digits in _NAMED.findall(said)}:
                found.setdefault(number, []).append(f"{path.relative_to(root).as_posix()}::{name}")
    return {number: sorted(tests) for number, tests in sorted(found.items())}


def _tests(tree: ast.Module) -> Iterator[tuple[str, int, int]]:
    """(name with its class, first and last line) of each test."""
    for node in tree.body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        for each in members:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test_"):
                first = min([each.lineno, *(decorator.lineno for decorator in each.decorator_list)])
                yield f"{prefix}{each.name}", first, each.end_lineno or each.lineno


def _comments(text: str) -> dict[int, tuple[str, bool]]:
    """Line → (its comment, whether there is nothing else on it)."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {each.start[0]: (each.string, each.line.lstrip().startswith("#")) for each in tokens if each.type == tokenize.COMMENT}


def promised(page: str) -> list[int]:
    """The numbers of the promises on the page, in its order."""
    return [int(number) for number in HEADING.findall(page)]


def proven(page: str) -> dict[int, str]:
    """Promise → its `Proven by` list, empty where there is none or more than one."""
    sections = HEADING.split(page)
    return {int(number): _only(_LIST.findall(text)) for number, text in zip(sections[1::2], sections[2::2], strict=True)}


def _only(lines: Sequence[str]) -> str:
    return lines[0] if len(lines) == 1 else ""


def listed(tests: Sequence[str]) -> str:
    """The `Proven by` list, a line for each file."""
    files = groupby(tests, key=lambda test: test.partition("::")[0])
    lines = [f"- `{file}`: " + ", ".join(f"`{test.partition('::')[2]}`" for test in group) for file, group in files]
    return "\n".join([PROVEN, *lines]) if lines else UNPROVEN


def updated(page: str, found: Proofs) -> str:
    """The page with every `Proven by` list as `found` has it."""
    sections = HEADING.split(page)
    parts = [sections[0]]
    for number, text in zip(sections[1::2], sections[2::2], strict=True):
        new = listed(found.get(int(number), ()))
        parts.append(f"### P{number}{_LIST.sub(lambda _, new=new: new, text)}")
    return "".join(parts)


def main(arguments: Sequence[str]) -> int:
    page = PAGE.read_text("utf-8")
    new = updated(page, proofs())
    if "--write" in arguments:
        PAGE.write_text(new, encoding="utf-8")
    elif new != page:
        print("docs/promises.md is out of date: run `python -m tests.promises --write`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
