"""What may become one line in the view, and in which order."""

from dataclasses import replace

from clew.context.shortening import FROM_CHARS, shortenings
from clew.context.view import window
from clew.messages import Text, ToolResult
from tests.threads import Thread

LONG = "x" * FROM_CHARS


def rows(thread: Thread, **more: object) -> list[str]:
    return [each.row for each in shortenings(thread.window(), (), (), **more)]  # type: ignore[arg-type]


def answered(*texts: str) -> Thread:
    """A turn for each text: asked, looked up with this result, answered."""
    thread = Thread()
    for number, text in enumerate(texts):
        thread.turn = f"t{number}"
        thread.user("look")
        thread.calls(f"c{number}")
        thread.result(f"c{number}", text)
        thread.reply("yes")
    return thread


def test_only_long_results_that_the_model_has_answered_to_count() -> None:  # P10
    thread = answered(LONG, "short", LONG)
    assert rows(thread) == ["m3", "m11"]
    thread.user("look again")
    thread.calls("late")
    thread.result("late", LONG)
    assert rows(thread) == ["m3", "m11"]
    thread.calls("later")
    assert rows(thread) == ["m3", "m11", "m15"]


def test_a_result_that_no_model_call_followed_is_unread_whatever_people_wrote_since() -> None:  # P10
    thread = Thread()
    thread.user("look")
    thread.round("c1", size=400)
    thread.user("are you there?")
    assert rows(thread) == []


def test_the_least_referred_to_goes_first_then_the_largest_then_the_oldest() -> None:  # P10
    thread = answered(f"harbour {LONG}", LONG, f"{LONG}{LONG}", LONG, f"lighthouse {LONG}")
    thread.user("what about the lighthouse?")
    thread.reply("The lighthouse is lit.")
    thread.user("and the harbour")
    assert rows(thread) == ["m11", "m7", "m15", "m3", "m19"]
    assert [each.references for each in shortenings(thread.window(), (), ())] == [0, 0, 0, 1, 2]


def test_words_that_were_there_before_and_words_of_every_day_are_no_reference() -> None:  # P10
    thread = Thread()
    thread.user("where is the lighthouse of Genoa, and what is it like?")
    thread.calls("c1")
    thread.result("c1", f"the lighthouse of genoa {LONG}")
    thread.reply("It is there.")
    thread.user("what is the lighthouse made of")
    (found,) = shortenings(thread.window(), (), ())
    assert found.references == 0


def test_a_message_that_names_the_row_refers_to_it() -> None:  # P10
    thread = answered(LONG)
    thread.rows = [replace(row, id=f"abcdefgh{row.seq:04d}") for row in thread.rows]
    thread.calls("open", arguments='{"id": "abcdefgh0003"}')
    (found,) = shortenings(thread.window(), (), ())
    assert (found.row, found.references) == ("abcdefgh0003", 1)


def test_characters_of_unspaced_writing_refer_too() -> None:  # P10
    thread = answered(f"灯台は港の北にある。{LONG}", LONG)
    thread.user("灯台の高さは？")
    assert rows(thread) == ["m7", "m3"]


def test_pinned_and_already_shortened_rows_are_left() -> None:  # P10, P13
    thread = answered(LONG, LONG, LONG)
    assert [each.row for each in shortenings(thread.window(), ("m3",), ("m7",))] == ["m11"]


def test_words_beside_calls_count_once_their_turn_has_ended() -> None:  # P23
    thread = Thread(turn="t")
    thread.user("look")
    thread.calls("c1", text=f"Let me think. {LONG}")
    thread.result("c1", "short")
    thread.reply("yes")
    assert rows(thread, turn="t") == []
    assert rows(thread, turn="another") == ["m2"]


def test_a_line_names_the_tool_the_size_and_how_to_open_it() -> None:  # P10 P23
    thread = answered(LONG)
    made = window(thread.rows, shortened={"m3"}).messages[2]
    (result,) = made.blocks
    assert isinstance(result, ToolResult)
    assert result.text == '[find answered 1,000 characters left out here; session_open with id "m3" and around 0 shows them.]'
    assert made.rows[0].results[0].text == LONG
    (found,) = shortenings(thread.window(), (), ())
    assert found.saved > 250


def test_a_failed_result_says_so_and_words_beside_calls_keep_their_call() -> None:  # P11 P23
    thread = Thread(turn="t")
    thread.user("look")
    thread.calls("c1", text=LONG)
    thread.result("c1", LONG)
    thread.rows[-1] = replace(thread.rows[-1], blocks=(ToolResult("c1", "find", LONG, is_error=True),))
    call, result = window(thread.rows, shortened={"m2", "m3"}).messages[1:]
    assert isinstance(call.blocks[0], Text)
    assert call.blocks[0].text == '[1,000 characters left out here; session_open with id "m2" and around 0 shows them.]'
    assert call.blocks[1] == thread.rows[1].calls[0]
    (block,) = result.blocks
    assert isinstance(block, ToolResult)
    assert block.is_error
    assert block.text.startswith("[find failed, saying 1,000 characters")


def test_what_is_shorter_than_its_line_is_left_as_it_is() -> None:  # P23
    thread = answered("noon")
    assert window(thread.rows, shortened={"m3"}).messages == thread.window()
