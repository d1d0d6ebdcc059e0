"""Whatever comes to Slack's door, and any Markdown on its way out."""

import asyncio
import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

from aiohttp.base_protocol import BaseProtocol
from aiohttp.streams import StreamReader
from aiohttp.test_utils import make_mocked_request
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict

from clew_transports.slack.callbacks import SLACK, Callbacks
from clew_transports.slack.mrkdwn import escaped, rendered, size, words
from clew_transports.slack.place import Place, order
from clew_transports.text import measure, pieces, split
from tests.emulators.slack_wire import shown
from tests.property.test_markup import markdown

NOW, SECRET = 1_800_000_000, "8f742231b10e"
VARIANTS = 5 * settings().max_examples
"""Of requests that are forged, replayed or cut off: 10,000 in `make soak`."""
STAMP, SIGNATURE = SLACK.timestamp, SLACK.signature

EVENT = {
    "type": "event_callback",
    "team_id": "T0",
    "event": {"type": "message", "channel": "D0", "user": "U0", "ts": "1.1", "text": "hi é"},
}
bodies = st.one_of(
    st.just(json.dumps(EVENT).encode()),
    st.just(json.dumps(EVENT, ensure_ascii=False).encode()),
    st.just(b'{"type": "url_verification", "challenge": "c"}'),
    st.binary(max_size=60),
)


class Kept:
    """Takes everything."""

    def __init__(self) -> None:
        self.payloads: list[Any] = []

    async def payload(self, payload: Any) -> None:
        self.payloads.append(payload)

    def missed_some(self) -> None:
        self.payloads.append("gap")


async def posted(body: bytes, headers: CIMultiDict[str], *, breaks: bool = False) -> tuple[int, list[Any]]:
    """The status of a request, and what it stored. breaks: the connection ends before the body does."""
    kept = Kept()
    door = Callbacks("slack", SECRET, lambda: NOW, lambda: kept)
    loop = asyncio.get_running_loop()
    stream = StreamReader(BaseProtocol(loop), 2**16, loop=loop)
    stream.feed_data(body)
    stream.set_exception(ConnectionResetError()) if breaks else stream.feed_eof()
    answer = await door.posted(make_mocked_request("POST", "/", headers=headers, payload=stream))
    return answer.status, kept.payloads


def cut(body: bytes, number: int) -> bytes:
    return body[: number % max(len(body), 1)]


def flipped(body: bytes, number: int) -> bytes:
    place = number % max(8 * len(body), 1)
    return bytes(byte ^ (1 << place % 8 if index == place // 8 else 0) for index, byte in enumerate(body))


def grown(body: bytes, number: int) -> bytes:
    place = number % (len(body) + 1)
    return body[:place] + bytes([number % 256]) + body[place:]


def headers(**changed: str | None) -> Callable[[dict[str, str]], dict[str, str]]:
    def change(given: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in (given | {key: changed[key] for key in changed}).items() if value is not None}

    return change


forged_bodies = st.tuples(st.sampled_from([cut, flipped, grown]), st.integers(0, 10**6))
digits = st.text(st.sampled_from("0123456789abcdefABCDEF"), min_size=64, max_size=64)
strange = st.text(st.characters(codec="latin-1", exclude_characters="\r\n\0"), max_size=90)
forged_signatures = st.one_of(digits.map(lambda text: f"v0={text}"), digits, strange, st.just(""), st.none())
forged_stamps = st.one_of(st.integers(-(10**12), 10**13).map(str), strange, st.just(f"{NOW}.0"), st.just(f"+{NOW}"), st.none())


@settings(max_examples=VARIANTS)
@given(bodies, st.integers(0, 3), forged_bodies, forged_signatures, forged_stamps, st.integers(301, 10**9), st.booleans())
def test_nothing_that_was_forged_replayed_or_cut_is_taken(  # P42, BO-066
    body: bytes, kind: int, how: tuple[Any, int], signature: str | None, stamp: str | None, age: int, later: bool
) -> None:
    change, number = how
    right = SLACK.signed(SECRET, NOW, body)
    match kind:
        case 0:  # another body under a signature that was seen
            sent, given = change(body, number), right
            assume(sent != body)
        case 1:  # another signature, or none
            sent, given = body, headers(**{SIGNATURE: signature})(right)
            assume(given.get(SIGNATURE, "").lower() != right[SIGNATURE])
        case 2:  # another time, or none
            sent, given = body, headers(**{STAMP: stamp})(right)
            assume(given.get(STAMP) != right[STAMP])
        case _:  # the whole request once more, later or from the future; or signed with another secret
            sent = body
            given = SLACK.signed(SECRET, NOW + age if later else max(NOW - age, 0), body) if number % 2 else SLACK.signed("", NOW, body)
    status, stored = asyncio.run(posted(sent, CIMultiDict(given)))
    assert (status, stored) == (401, [])


@given(bodies, st.integers(0, 10**6))
def test_a_request_that_breaks_off_is_none(body: bytes, number: int) -> None:  # BO-066
    given = CIMultiDict(SLACK.signed(SECRET, NOW, body))
    status, stored = asyncio.run(posted(cut(body, number), given, breaks=True))
    assert (status, stored) == (400, [])


@given(bodies)
def test_two_headers_of_one_name_are_none(body: bytes) -> None:  # BO-066
    right = SLACK.signed(SECRET, NOW, body)
    for name in right:
        status, stored = asyncio.run(posted(body, CIMultiDict([*right.items(), (name, right[name])])))
        assert (status, stored) == (401, [])


@given(bodies | st.dictionaries(st.text(max_size=5), st.integers()).map(lambda value: json.dumps(value).encode()), st.integers(-300, 300))
def test_what_is_signed_is_taken_if_it_is_json(body: bytes, age: int) -> None:
    status, stored = asyncio.run(posted(body, CIMultiDict(SLACK.signed(SECRET, NOW + age, body))))
    with contextlib.suppress(ValueError):
        if isinstance(value := json.loads(body.decode()), dict):
            assert status == 200
            assert stored == ([] if value.get("type") == "url_verification" else [value])
            return
    assert (status, stored) == (400, [])


# Out -------------------------------------------------------------------------------------------------------------


@given(markdown)
@example("<!channel> <@U1> [<!here>](https://e.org) `<!here>` <https://e.org/<!here>>")
@example("[a|b](https://e.org/a|b>c)")
@example("``a`b`````python\n")
@example("**bold**```python\n")
def test_any_markdown_is_mrkdwn_that_calls_nobody(text: str) -> None:  # BO-062, BO-125
    written = rendered(text)
    shown(written)
    assert not re.search(r"<[!@#]", written)
    assert written.count("```") % 2 == 0


@given(markdown, st.integers(800, 1600))
@example("&" * 3000, 800)
@example("!.-" * 1400, 1200)
def test_each_part_fits_once_it_is_escaped_and_is_valid_by_itself(text: str, limit: int) -> None:  # BO-059
    for part in split(text, limit, "utf16", size):
        written = rendered(part)
        shown(written)
        assert measure(written, "utf16") <= limit
        assert written.count("```") % 2 == 0


@given(markdown, st.integers(400, 1200))
def test_the_parts_rejoin_to_the_text(text: str, limit: int) -> None:
    assert "".join(piece.body for piece in pieces(text, limit, "utf16", size)) == text


said = st.lists(
    st.sampled_from(["alpha", "beta2", "γάμμα", "你好", "שלום", "snake_case", "x<1", "a&b", "**bold**", "*it*"]), min_size=1, max_size=40
)
joints = st.sampled_from([" ", "\n", "\n\n", "\n- ", "\n\n> ", "\n\n1. ", "\n\n# ", ". "])


@given(said, joints)
def test_no_word_is_lost(some: list[str], joint: str) -> None:  # BO-061
    text = shown(rendered(joint.join(some)))
    assert all(word.strip("*") in text for word in some)


@given(st.text())
def test_what_is_escaped_is_read_as_it_was(text: str) -> None:
    assert words(escaped(text), {}) == text


# Place -----------------------------------------------------------------------------------------------------------

stamps = st.tuples(st.integers(1, 10**11), st.integers(0, 999_999)).map(lambda pair: f"{pair[0]}.{pair[1]:06}")


@given(st.lists(stamps, min_size=1, max_size=20), st.lists(st.tuples(st.sampled_from("ABC"), stamps), max_size=20))
def test_the_place_moves_on_and_comes_back_from_its_text(read: list[str], threads: list[tuple[str, str]]) -> None:  # P42
    place = Place("T/U", "1.000000", "1.000000")
    for ts in read:
        place = place.read(ts)
    for channel, thread in threads:
        place = place.met(channel).joined(channel, thread)
    assert place.since == max([*read, "1.000000"], key=order)
    assert Place.load(str(place)) == place
    assert all(place.is_joined(*each) for each in threads)
    assert order("1.000000") <= order(place.before(600)) <= order(place.since)
