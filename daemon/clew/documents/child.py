"""The process in which one document is read that its sender may have made to do harm: little memory, little time, no file written.

It is given a document on standard input and answers with one JSON object on standard output.
"""

import json
import resource
import sys
from collections.abc import Callable

from clew.documents import Contents, Kind, Refused
from clew.documents.docx import docx
from clew.documents.html import html
from clew.documents.pdf import pdf

MEMORY = 1024 * 2**20
"""Bytes of address space: a PDF of 20 MiB takes some hundred."""
CPU = 60
"""Seconds of CPU."""


def _page(body: bytes) -> Contents:
    return html(body.decode())


READERS: dict[Kind, Callable[[bytes], Contents]] = {"html": _page, "pdf": pdf, "docx": docx}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    reader = READERS[sys.argv[1]]  # type: ignore[index]  # one of them
    try:
        contents = reader(sys.stdin.buffer.read())
        sections = [(each.place, each.text, each.unit, each.first) for each in contents.sections]
        answer: dict[str, object] = {"title": contents.title, "sections": sections}
    except Refused as error:
        answer = {"refused": error.message, "hint": error.hint}
    except ImportError as error:
        answer = {"missing": error.name or ""}
    except (MemoryError, RecursionError):
        answer = {"refused": f"reading it takes more than {MEMORY // 2**20:,} MiB of memory.", "hint": ""}
    sys.stdout.buffer.write(json.dumps(answer).encode("ascii"))


if __name__ == "__main__":
    main()
