"""The commands that README and docs name, as a reader would type them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
_BLOCK = re.compile(r"^ *```(?:sh|console)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`((?:sudo -u clew )?clew [a-z][^`]*)`")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a block: page (a path in the repository), number in it, and the command without its comment."""

    page: str
    number: int
    command: str

    def __str__(self) -> str:
        return f"{self.page}:{self.number}: {self.command}"


def lines() -> Iterator[Line]:
    """Every command of every block, in order. In a block with prompts what stands behind none is output."""
    for page in PAGES:
        text = page.read_text("utf-8")
        for block in _BLOCK.finditer(text):
            first = text.count("\n", 0, block.start(1)) + 1
            prompts = re.search(r"^ *\$ ", block[1], re.MULTILINE)
            joined = ""
            for number, line in enumerate(block[1].splitlines(), first):
                command = line.strip()
                if prompts and not joined and not command.startswith("$ "):
                    continue
                joined += command.removeprefix("$ ")
                if joined.endswith("\\"):
                    joined = joined[:-1]
                    continue
                if command := _without_comment(joined):
                    yield Line(str(page.relative_to(ROOT)), number, command)
                joined = ""


def named() -> Iterator[Line]:
    """Every call of clew in blocks and in running text."""
    for line in lines():
        for piece in re.split(r"&&|\||;", line.command):
            if call := re.search(r"(?:^|[\s/])(clew [a-z].*)$", piece.replace("clew clew ", "clew ")):
                yield Line(line.page, line.number, call[1].strip())
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in _INLINE.finditer(text):
            command = re.sub(r"\s+", " ", match[1]).removeprefix("sudo -u clew ")
            yield Line(str(page.relative_to(ROOT)), text.count("\n", 0, match.start()) + 1, command)


def _without_comment(command: str) -> str:
    return re.sub(r"\s+#\s.*$|^#.*$", "", command).strip()


def words(command: str) -> list[str]:
    """A call as words, without redirections. Raises ValueError where quotes are open."""
    return [word for word in shlex.split(re.sub(r"[<>]+ *\S+|&$", " ", command)) if word]
