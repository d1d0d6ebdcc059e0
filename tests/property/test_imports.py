"""Readers of exports over trees in any order and over hostile files: each takes what it is given, or says that it is no such export."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.context.text import clean
from clew.imports import FORMATS, Format, chatgpt, conversations, openclaw
from clew.imports.conversation import LONGEST_KEY, LONGEST_TITLE, Conversation, ExportError
from clew.imports.dividing import MOST
from clew.imports.pulling import Pull, lines
from clew.messages import blocks_to_json
from tests import exports
from tests.property.test_hostile_inputs import SEEDS

UTC = ZoneInfo("UTC")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)
SAMPLES: dict[Format, Any] = {
    "chatgpt": [exports.chatgpt(*exports.BOILER, current="a2")],
    "claude": [exports.CLAUDE],
    "hermes": exports.HERMES,
    "openclaw": list(exports.OPENCLAW),
    "telegram": exports.TELEGRAM_ALL,
    "whatsapp": exports.WHATSAPP_ANDROID,
}
NAMES: dict[Format, str] = {"hermes": "a.json", "openclaw": "a.jsonl"}


class Bytes:
    """A stream that gives a few bytes at a time."""

    def __init__(self, content: bytes, most: int) -> None:
        self._left, self._most = content, most

    def read(self, count: int) -> bytes:
        found, self._left = self._left[: min(count, self._most)], self._left[min(count, self._most) :]
        return found


def read(kind: Format, content: str | bytes) -> list[Conversation]:
    """What is found in a file with that content. Raises nothing but ExportError, which counts as nothing."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / NAMES.get(kind, "a.json")
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        try:
            return [each for each in conversations(kind, path, None, UTC) if isinstance(each, Conversation)]
        except ExportError:
            return []


def storable(found: list[Conversation]) -> None:
    for each in found:
        assert 0 < len(each.key) <= LONGEST_KEY
        assert len(each.title) <= LONGEST_TITLE
        assert 0 < len(each.messages) <= MOST
        for said in each.messages:
            assert 0 < len(said.key) <= LONGEST_KEY
            assert said.blocks
            assert 0 <= said.at < 32_503_680_000
            blocks_to_json(said.blocks).encode()
            assert clean(said.name) == said.name


@given(st.permutations(exports.BOILER))
def test_the_order_of_a_trees_nodes_says_nothing(nodes: list[Any]) -> None:
    """ChatGPT's mapping is a tree by its ids, whatever stands first in it."""
    fresh = [json.loads(json.dumps({**each, "children": []})) for each in nodes]
    told = exports.chatgpt(*fresh, current="a2")
    assert [key for key, _ in chatgpt.branch(told["mapping"], "a2")] == ["sys", "q1", "a1", "q2", "c1", "t1", "h1", "a2"]


@given(st.lists(st.tuples(st.integers(0, 20), st.none() | st.integers(0, 20)), max_size=20))
def test_any_graph_ends(edges: list[tuple[int, int | None]]) -> None:
    nodes: dict[str, Any] = {f"{key}": {"parent": None if up is None else f"{up}", "children": [], "message": {}} for key, up in edges}
    for start in [*nodes, None]:
        keys = [key for key, _ in chatgpt.branch(nodes, start)]
        assert len(keys) == len(set(keys))
    entries = [{"id": f"{key}", "parentId": None if up is None else f"{up}"} for key, up in edges]
    assert len(openclaw.branch(entries)) <= len(entries)


@pytest.mark.parametrize("kind", FORMATS)
@given(st.data())
def test_any_text_and_any_json(kind: Format, data: st.DataObject) -> None:
    content = data.draw(st.one_of(st.text(max_size=200), st.sampled_from(SEEDS), JSON.map(json.dumps), st.binary(max_size=100)))
    storable(read(kind, content))


@pytest.mark.parametrize("kind", FORMATS)
@given(st.data())
def test_what_is_nearly_right(kind: Format, data: st.DataObject) -> None:
    """A true export of which one part is something else, or is cut off somewhere."""
    sample = SAMPLES[kind]
    if isinstance(sample, str):
        at = data.draw(st.integers(0, len(sample)))
        storable(read(kind, sample[:at] + data.draw(st.sampled_from(["", "\u200e", "[", "<", *SEEDS])) + sample[at:]))
        return
    changed = json.loads(json.dumps(sample))
    place = changed
    while isinstance(place, dict | list) and place:
        key = data.draw(st.sampled_from(list(place))) if isinstance(place, dict) else data.draw(st.integers(0, len(place) - 1))
        if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            place[key] = data.draw(JSON)
            break
        place = place[key]
    text = "\n".join(map(json.dumps, changed)) if kind == "openclaw" else json.dumps(changed)
    storable(read(kind, text[: data.draw(st.integers(0, len(text)))] if data.draw(st.booleans()) else text))


@given(JSON, st.integers(1, 30))
def test_pulled_json_is_the_same_as_json_that_is_read_whole(value: Any, most: int) -> None:
    def pulled(pull: Pull) -> Any:
        match pull.kind():
            case "[":
                return [pulled(pull) for _ in pull.items()]
            case "{":
                return {key: pulled(pull) for key in pull.members()}
            case _:
                return pull.value()

    text = json.dumps(value, ensure_ascii=False, indent=most % 3 or None).encode()
    assert pulled(Pull("x", Bytes(text, most))) == json.loads(text)
    assert Pull("x", Bytes(text, most)).value() == json.loads(text)
    pull = Pull("x", Bytes(text, most))
    pull.skip()
    assert pull.kind() == ""


@given(st.text(max_size=200), st.integers(1, 10))
def test_lines_are_those_of_the_text(text: str, most: int) -> None:
    content = text.encode("utf-8", "replace")
    expected = [each.removesuffix("\r") for each in content.decode().removeprefix("\ufeff").split("\n")]
    found = list(lines("x", Bytes(content, most)))
    assert found == (expected[:-1] if not expected[-1] else expected) or (found == expected)


@pytest.mark.parametrize("separator", ["/", ".", "-"])
@given(st.data())
def test_whatsapp_dates_come_back(separator: str, data: st.DataObject) -> None:
    """Days of one chat, written day first or month first: where a day above 12 tells which, all times are as they were."""
    days = sorted(data.draw(st.lists(st.datetimes(exports.FIRST_DAY, exports.LAST_DAY), min_size=1, max_size=8)))
    days.append(days[-1].replace(day=28))
    days.sort()
    month_first = separator == "/" and data.draw(st.booleans())
    form = f"%m{separator}%d{separator}%Y, %H:%M" if month_first else f"%d{separator}%m{separator}%Y, %H:%M"
    text = "\n".join(f"{day:{form}} - {'Ada' if index % 2 else 'Bob'}: line {index}" for index, day in enumerate(days))
    with TemporaryDirectory() as folder:
        path = exports.written(Path(folder) / "WhatsApp Chat with Bob.txt", text)
        found = [
            each for whole in conversations("whatsapp", path, "Bob", UTC) if isinstance(whole, Conversation) for each in whole.messages
        ]
    assert [each.at for each in found] == [day.replace(second=0, microsecond=0, tzinfo=UTC).timestamp() for day in days]
