from clew_transports.text import split


def test_a_text_that_fits_is_one_part() -> None:
    assert split("", 100) == [""]
    assert split("Hello.\n\nYou.", 100) == ["Hello.\n\nYou."]


def test_a_blank_line_is_preferred_to_a_line() -> None:
    text = "a" * 60 + "\n\n" + "b" * 20 + "\n" + "c" * 60
    assert split(text, 100) == ["a" * 60 + "\n\n", "b" * 20 + "\n" + "c" * 60]


def test_a_line_is_preferred_to_a_sentence() -> None:
    text = "a" * 60 + "\n" + "b" * 20 + ". " + "c" * 60
    assert split(text, 100)[0] == "a" * 60 + "\n"


def test_a_sentence_is_preferred_to_a_space() -> None:
    text = "a" * 60 + '." ' + "b" * 20 + " " + "c" * 60
    assert split(text, 100)[0] == "a" * 60 + '." '


def test_a_space_is_preferred_to_a_letter() -> None:
    assert split("a" * 60 + " " + "b" * 90, 100) == ["a" * 60 + " ", "b" * 90]


def test_a_separator_near_the_beginning_does_not_make_a_tiny_part() -> None:
    assert [len(part) for part in split("Hi.\n\n" + "a" * 195, 100)] == [100, 100]


def test_the_limit_is_counted_in_the_platforms_unit() -> None:
    assert [len(part) for part in split("😀" * 100, 100, "characters")] == [100]
    assert [len(part) for part in split("😀" * 100, 100, "utf16")] == [50, 50]
    assert [len(part) for part in split("😀" * 100, 100, "bytes")] == [25, 25, 25, 25]


def test_a_code_fence_is_closed_and_opened_again_with_its_language() -> None:
    lines = "".join(f"line {number:02}\n" for number in range(20))
    first, second, *_ = split(f"Look:\n```python title=x\n{lines}```\nDone.", 120)
    assert first.startswith("Look:\n```python title=x\nline 00\n")
    assert first.endswith("\n```")
    assert second.startswith("```python\nline ")


def test_a_fence_is_not_parted_from_its_code() -> None:
    parts = split("a" * 85 + "\n```python\nx = 1\n```\n" + "b" * 20, 100)
    assert parts == ["a" * 85 + "\n", "```python\nx = 1\n```\n" + "b" * 20]


def test_a_run_of_white_space_longer_than_a_part_is_left_out() -> None:
    assert [part.strip() for part in split("a" * 100 + "\n" * 250 + "b", 100)] == ["a" * 100, "b"]


def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    assert split("\ud83d" + "a" * 100, 101, "bytes") == ["?" + "a" * 100]
