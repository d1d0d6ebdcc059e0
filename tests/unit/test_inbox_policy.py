"""Who may, and what an arrival is: the one policy, without a store."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from clew.config import Limits
from clew.inbox import OPEN_REQUESTS, Unknown, access_line, decider, is_command, pairing_code
from clew.store import Sender, Verdict, links
from clew.transport import Address, Attachment, Inbound

ADA = Sender("ada", "owner", None, 0, 0, None)
STRANGER = Sender(None, None, None, 0, 0, None)
LIMITS = Limits(message_bytes=1024, attachment_bytes=1024, queued_per_chat=3)


def arrival(text: str = "hello") -> Inbound:
    return Inbound("x1", Address("mqtt", "ada"), "ada", text)


def no_code() -> str:
    raise AssertionError("no code was to be made")


def decide(item: Inbound, sender: Sender, unknown: Unknown = "pair", code: Callable[[], str] = no_code) -> Verdict:
    return decider(unknown, LIMITS, code)(item, sender)


def test_a_known_persons_words_are_a_message() -> None:  # P46
    assert decide(arrival(), ADA) == Verdict("message")


def test_a_stranger_gets_one_code_and_then_silence() -> None:  # P46
    first = decide(arrival(), STRANGER, code=lambda: "CODE2345")
    assert (first.refused, first.pair) == ("unknown sender", "CODE2345")
    assert "CODE2345" in first.reply
    asked = replace(STRANGER, request="open")
    assert decide(arrival(), asked) == Verdict(refused="unknown sender")
    assert decide(arrival(), replace(STRANGER, request="denied")) == Verdict(refused="unknown sender")


def test_strangers_cannot_fill_the_list_of_requests() -> None:  # P46
    crowded = replace(STRANGER, open_requests=OPEN_REQUESTS)
    assert decide(arrival(), crowded) == Verdict(refused="unknown sender")


def test_deny_is_silence_and_allow_lets_in() -> None:  # P46
    assert decide(arrival(), STRANGER, "deny") == Verdict(refused="unknown sender")
    assert decide(arrival(), STRANGER, "allow") == Verdict("message")


@pytest.mark.parametrize("unknown", ["deny", "pair"])
@pytest.mark.parametrize("text", ["/stop", "/help", "x" * 5000, ""])
def test_whatever_a_stranger_says_no_turn_comes_of_it(unknown: Unknown, text: str) -> None:  # P46
    for refused in ("", "malformed JSON"):
        verdict = decide(replace(arrival(text), refused=refused), STRANGER, unknown, lambda: "CODE2345")
        assert verdict.refused == "unknown sender"
        assert verdict.stop is None


def test_an_attachment_that_is_too_big_is_refused_with_its_size() -> None:  # BO-079
    photo = Attachment("photo", "image/jpeg", LIMITS.attachment_bytes + 1, "ref")
    verdict = decide(replace(arrival(""), attachments=(photo,)), ADA)
    assert verdict.reply == "I could not take that message: its attachment has 1,025 bytes, and 1,024 are the most I take."
    assert decide(replace(arrival(""), attachments=(replace(photo, size=1024),)), ADA) == Verdict("message")


def test_what_the_adapter_could_not_take_is_refused_with_its_reason() -> None:
    verdict = decide(replace(arrival(""), refused="it is not JSON"), ADA)
    assert verdict.refused == "it is not JSON"
    assert "it is not JSON" in verdict.reply


@pytest.mark.parametrize(("size", "taken"), [(1024, True), (1025, False)])
def test_size_is_counted_in_bytes(size: int, taken: bool) -> None:  # P49
    text = "é" * (size // 2) + "x" * (size % 2)
    verdict = decide(arrival(text), ADA)
    assert bool(verdict.refused) != taken
    assert taken or "1,025 bytes" in verdict.reply


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_an_empty_message_is_refused(text: str) -> None:
    assert decide(arrival(text), ADA).refused == "it is empty"


@pytest.mark.parametrize(("queued", "taken"), [(2, True), (3, False)])
def test_a_chat_may_have_so_many_messages_waiting(queued: int, taken: bool) -> None:
    verdict = decide(arrival(), replace(ADA, queued=queued))
    assert bool(verdict.refused) != taken


def test_stop_never_waits_and_stops_what_runs() -> None:  # P44
    running = replace(ADA, queued=3, running="t1")
    for text in ("/stop", "/STOP", " /stop now"):
        verdict = decide(arrival(text), running)
        assert (verdict.kind, verdict.stop, verdict.refused) == ("control", "t1", "")
    assert decide(arrival("/stop"), ADA) == Verdict("control", reply="There is nothing to stop.")


def test_a_command_is_a_command() -> None:
    assert decide(arrival("/compact the prices"), ADA).kind == "command"


def test_an_edit_keeps_its_kind() -> None:
    assert decide(replace(arrival(), kind="edit"), ADA).kind == "edit"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/help", True),
        ("/Help me", True),
        ("/no_such_thing", True),
        ("/", False),
        ("/etc/hosts is wrong", False),
        ("//comment", False),
        ("\u200e/private on", True),
        ("\u202a/help\u202c", True),
        ("\ufeff/help", True),
        ("\uff0fhelp", True),
        ("/2", False),
        ("help /me", False),
        ("", False),
    ],
)
def test_what_looks_like_a_command(text: str, command: bool) -> None:
    assert is_command(text) == command


def test_a_code_is_long_enough_and_easy_to_read_out() -> None:  # P46
    codes = {pairing_code() for _ in range(100)}
    assert len(codes) == 100
    assert all(len(code) == links.LENGTH and set(code) <= set(links.ALPHABET) for code in codes)
    assert len(links.ALPHABET) == 32
    assert not set(links.ALPHABET) & set("IO01")


def test_what_is_said_at_start_is_what_is_done() -> None:  # P46
    lines = {unknown: access_line(unknown) for unknown in ("deny", "pair", "allow")}
    assert "ignored" in lines["deny"]
    assert "clew access approve" in lines["pair"]
    assert "let in" in lines["allow"]
