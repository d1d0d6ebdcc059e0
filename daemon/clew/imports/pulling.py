"""JSON that is too large to be read at once: its lists and objects one element after the other."""

import codecs
import json
from collections.abc import Iterator
from typing import Any

from clew.imports.conversation import ExportError
from clew.imports.opening import Stream

PIECE = 2**20
LONGEST_VALUE = 64 * 2**20
"""Characters of a value that is read as a whole."""
DEEPEST = 100
"""Levels of what is passed over."""
_SPACE = " \t\r\n"
_OF_NUMBERS = "0123456789+-.eE"
"""What a number may go on with; so may one at the end of what is read so far."""


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse, strict=False)


class Pull:
    """JSON of the file `name`, from front to back. Raises ExportError where it is none."""

    def __init__(self, name: str, stream: Stream) -> None:
        self._name = name
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("strict").decode
        self._text = ""
        self._at = 0
        self._ended = False

    def kind(self) -> str:
        """The first character of what comes next; empty at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._more(PIECE):
                return ""

    def items(self) -> Iterator[None]:
        """Once for each element of a list. The element has to be taken (`value`, `items`, `members`, `skip`) before the next one."""
        self._expect("[")
        if self.kind() == "]":
            self._at += 1
            return
        while True:
            yield
            if self._divider("]"):
                return

    def members(self) -> Iterator[str]:
        """The key of each member of an object. Its value has to be taken before the next one."""
        self._expect("{")
        if self.kind() == "}":
            self._at += 1
            return
        while True:
            key = self.value() if self.kind() == '"' else self._fail("a key is missing")
            self._expect(":")
            yield str(key)
            if self._divider("}"):
                return

    def value(self) -> Any:
        """What comes next, whole."""
        if not self.kind():
            self._fail("it breaks off")
        size = PIECE
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._at)
                if not isinstance(found, int | float) or self._ended or self._text[end : end + 1] not in _OF_NUMBERS:
                    self._at = end
                    return found
            except RecursionError:
                self._fail("it is nested too deeply")
            except ValueError as error:
                if self._ended or not isinstance(error, json.JSONDecodeError):
                    self._fail(str(error))
            if len(self._text) - self._at > LONGEST_VALUE:
                self._fail(f"one of its values has more than {LONGEST_VALUE // 2**20} MiB, or is none")
            self._more(size)
            size *= 2

    def skip(self, depth: int = 0) -> None:
        """Pass what comes next over, however large it is."""
        if depth > DEEPEST:
            self._fail("it is nested too deeply")
        match self.kind():
            case "[":
                for _ in self.items():
                    self.skip(depth + 1)
            case "{":
                for _ in self.members():
                    self.skip(depth + 1)
            case _:
                self.value()

    def _more(self, count: int) -> bool:
        """Read on. Returns whether there was more."""
        if self._ended:
            return False
        read = self._stream.read(count)
        self._ended = not read
        try:
            self._text = self._text[self._at :] + self._decode(read, final=self._ended)
        except UnicodeDecodeError:
            self._fail("it is not UTF-8")
        self._at = 0
        return bool(read)

    def _expect(self, what: str) -> None:
        if self.kind() != what:
            self._fail(f"{what} is missing")
        self._at += 1

    def _divider(self, end: str) -> bool:
        """Whether a list or an object ends here; else there is a comma."""
        found = self.kind()
        if found not in (end, ",") or not found:
            self._fail(f", or {end} is missing" if found else "it breaks off")
        self._at += 1
        return found == end

    def _fail(self, why: str) -> Any:
        raise ExportError(f"{self._name} is not the JSON of such an export ({why}).", hint="Is it the right file, and the right --from?")


def lines(name: str, stream: Stream) -> Iterator[str]:
    """The lines of a file of text, without their ends. Raises ExportError where one is longer than a value may be, or it is not UTF-8."""
    decode, rest = codecs.getincrementaldecoder("utf-8-sig")("strict").decode, ""
    while True:
        read = stream.read(PIECE)
        try:
            *whole, rest = (rest + decode(read, final=not read)).split("\n")
        except UnicodeDecodeError:
            raise ExportError(f"{name} is not UTF-8.", hint="Is it the right file, and the right --from?") from None
        yield from (each.removesuffix("\r") for each in whole)
        if len(rest) > LONGEST_VALUE:
            raise ExportError(f"{name} has a line of more than {LONGEST_VALUE // 2**20} MiB.")
        if not read:
            if rest:
                yield rest
            return
