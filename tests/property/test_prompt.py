"""The request's bytes: in order, parted by one blank line, and stable in front of what is new."""

import re
from dataclasses import replace
from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st

from clew.context.prompt import Parts, Placement, chain, headed, layout, mark, prefixes, request_tokens
from clew.context.view import head, window
from clew.messages import Message, Thinking
from clew.request import Request, ToolSpec
from tests.threads import sound

HEAD = head(UTC, "", direct=True)
placements: st.SearchStrategy[Placement] = st.sampled_from(["system", "message"])
texts = st.just("") | st.text("ab\n", min_size=1, max_size=8).map(str.strip)
tools = st.lists(st.sampled_from("abcdef"), unique=True).map(lambda names: tuple(ToolSpec(name, f"does {name}", "{}") for name in names))
LINE = "[compacted]"


@st.composite
def any_parts(draw: st.DrawFn) -> Parts:
    rows = draw(sound())
    messages = window(rows[draw(st.integers(0, 2)) :]).messages
    base = draw(st.text("ab \n", min_size=1, max_size=8))
    return Parts(base, messages, HEAD, draw(tools), draw(texts), draw(texts), LINE, draw(texts), draw(placements))


def request(parts: Parts) -> Request:
    return layout(parts, max_tokens=10, ttl="1h", cache_key="s")


@given(any_parts())
def test_parts_come_in_order_with_exactly_one_blank_line_between(parts: Parts) -> None:  # P27
    sent = request(parts)
    order = ["base", "notes", "summary", "recall"]
    kinds = [block.kind for block in sent.system]
    assert kinds == sorted(kinds, key=order.index)
    there = {"base": True, "notes": parts.notes, "summary": parts.summary, "recall": parts.recall if parts.placement == "system" else ""}
    assert kinds == [kind for kind in order if there[kind]]
    # The base as configured, then breaks of exactly one blank line.
    assert sent.system[0].text == parts.base
    text = parts.base
    for block in sent.system[1:]:
        words = block.text.lstrip("\n")
        seam = re.search(r"\n*\Z", text)
        assert seam is not None
        breaks = len(seam.group()) + len(block.text) - len(words)
        assert breaks == max(2, len(seam.group()))
        text += block.text
    assert sent.system_text == text


@given(any_parts())
def test_nothing_to_add_leaves_the_base_byte_for_byte(parts: Parts) -> None:  # P27
    sent = request(replace(parts, notes="", summary="", recall=""))
    assert sent.system_text == parts.base
    assert len(sent.system) == 1


@given(any_parts())
def test_the_opening_line_stands_once_and_only_with_a_summary(parts: Parts) -> None:  # P16
    sent = request(parts)
    opens = bool(sent.messages) and any(LINE in getattr(block, "text", "") for block in sent.messages[0].blocks)
    ends = any(block.kind == "summary" and block.text.endswith(f"\n\n{LINE}") for block in sent.system)
    assert opens + ends == bool(parts.summary)
    if parts.summary:
        assert ends == bool(parts.messages and parts.messages[0].kind == "user")
        assert not sent.messages or sent.messages[0].role == "user"


@given(any_parts())
def test_recall_is_one_block_where_its_placement_says(parts: Parts) -> None:  # P29 P31
    sent = request(replace(parts, recall="RECALL"))
    users = [number for number, message in enumerate(parts.messages) if message.kind == "user"]
    in_system = [block for block in sent.system if "RECALL" in block.text]
    in_messages = [
        (number, index)
        for number, message in enumerate(sent.messages)
        for index, block in enumerate(message.blocks)
        if "RECALL" in getattr(block, "text", "")
    ]
    if parts.placement == "system":
        assert (len(in_system), in_messages) == (1, [])
        assert sent.system[-1] == in_system[0]
    else:
        offset = len(sent.messages) - len(parts.messages)
        newest = users[-1] + offset if users else None
        assert in_system == []
        assert in_messages == ([(newest, len(sent.messages[newest].blocks) - 1)] if newest is not None else [])
        assert [m.recall for m in sent.messages if m.recall is not None] == [index for _, index in in_messages]


@given(any_parts(), st.randoms(use_true_random=False))
def test_the_order_of_tools_does_not_matter(parts: Parts, shuffled: object) -> None:  # P29, BO-029
    assert request(replace(parts, tools=parts.tools[::-1])) == request(parts)
    names = [tool.name for tool in request(parts).tools]
    assert names == sorted(names)


@given(any_parts(), sound(max_turns=3))
def test_what_is_said_later_leaves_every_earlier_prefix_as_it_was(parts: Parts, more: list[Message]) -> None:  # P29
    if parts.placement == "message":
        parts = replace(parts, recall="")
    if not parts.messages:
        return
    renamed = [replace(row, id=f"n{row.seq}", seq=row.seq + 1000) for row in more]
    grown = replace(parts, messages=(*parts.messages, *window(renamed).messages))
    before, after = prefixes(request(parts)), prefixes(request(grown))
    assert [each.hash for each in after[: len(before)]] == [each.hash for each in before]


@given(any_parts(), any_parts())
def test_two_requests_share_a_hash_only_where_they_share_all_blocks_up_to_it(one: Parts, other: Parts) -> None:  # P28
    first, second = request(one), request(other)
    left, right = blocks(first), blocks(second)
    hashes = {each.hash: index for index, each in enumerate(prefixes(first))}
    for index, each in enumerate(prefixes(second)):
        same = left[: index + 1] == right[: index + 1]
        assert (hashes.get(each.hash) == index) == same


@given(any_parts(), any_parts(), st.integers(0, 12), st.sampled_from("ab"))
def test_a_chain_is_the_same_whatever_chain_it_goes_on_from(parts: Parts, other: Parts, cut: int, account: str) -> None:  # P28
    sent = request(parts)
    earlier = request(replace(parts, messages=parts.messages[:cut]))
    alone = chain(sent, account)
    assert alone.tokens == request_tokens(sent)
    for before in (earlier, sent, request(other), replace(earlier, tools=())):
        gone_on = chain(sent, account, chain(before, "a"))
        assert (gone_on.prefixes, gone_on.tokens) == (alone.prefixes, alone.tokens)
        assert chain(sent, account, gone_on).prefixes == alone.prefixes  # what it went on from was not changed by it


@given(any_parts(), any_parts(), st.integers(0, 12), st.booleans())
def test_messages_are_the_same_whatever_they_go_on_from(parts: Parts, other: Parts, cut: int, direct: bool) -> None:  # P29
    alone = headed(parts.messages, HEAD)
    for before in (parts.messages[:cut], other.messages, parts.messages):
        gone_on = headed(parts.messages, HEAD, headed(before, head(UTC, "" if direct else "Etc/UTC", direct=True)))
        assert gone_on.made == alone.made
    assert layout(parts, max_tokens=10, ttl="1h", cache_key="s", made=alone) == request(parts)


def blocks(sent: Request) -> list[tuple[str, object]]:
    listed: list[tuple[str, object]] = [("tool", tool) for tool in sent.tools]
    listed += [("system", block.text) for block in sent.system]
    return listed + [(message.role, block) for message in sent.messages for block in message.blocks]


@given(any_parts(), st.data())
def test_markers_are_four_at_most_and_on_blocks_that_can_bear_one(parts: Parts, data: st.DataObject) -> None:  # P28 P29
    sent = request(parts)
    hashed = prefixes(sent)
    assert len({each.hash for each in hashed}) == len(hashed)
    cached = data.draw(st.sets(st.sampled_from([each.hash for each in hashed]))) if hashed else set()
    marks = mark(sent, hashed, cached)
    system = [block for block in marks.request.system if block.marked]
    inside = [(message, index) for message in marks.request.messages for index in message.marked]
    assert len(system) + len(inside) == len(marks.marked) <= 4
    assert all(block.kind != "recall" for block in system)
    assert all(index != message.recall and not isinstance(message.blocks[index], Thinking) for message, index in inside)
    # But for the markers nothing is changed.
    plain = replace(
        marks.request,
        system=tuple(replace(block, marked=False) for block in marks.request.system),
        messages=tuple(replace(message, marked=()) for message in marks.request.messages),
    )
    assert plain == sent
