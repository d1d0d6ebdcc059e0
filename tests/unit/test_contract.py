"""What is never committed as a summary."""

import pytest

from clew.context.contract import SHORT_SUMMARY, refusal
from clew.context.tokens import estimate

LONG = "Ada asked for the plan of the garden. " * 200


@pytest.mark.parametrize("summary", ["", "  ", "\n\t\n"])
def test_an_empty_summary_is_refused(summary: str) -> None:  # P17
    assert refusal(summary, LONG) == "the summary is empty"


@pytest.mark.parametrize(
    "summary",
    [
        "<!DOCTYPE html><html>502",
        "<html><body>Bad Gateway",
        '{"type":"error","error":{"type":"overloaded_error"}}',
        '{ "error": "no such model" }',
        "Error: connection refused",
        "API Error: 529",
        "internal server error\n",
        "503 Service Unavailable",
        "429: too many requests",
        "I'm sorry, but I cannot do that.",
        "I can't help with that.",
        "Prompt is too long",
        "Invalid API key",
    ],
)
def test_an_error_text_is_refused(summary: str) -> None:  # P17
    assert refusal(summary, LONG) == "the summary is an error text"


@pytest.mark.parametrize(
    "summary",
    [
        "Ada saw the error `429: too many requests` and asked for a retry.",
        "Errors of the build were mended.",
        "5000 seeds were ordered.",
        "Goal: mend the HTTP error 503.",
    ],
)
def test_a_summary_about_errors_is_none(summary: str) -> None:  # P17
    assert refusal(summary, LONG) == ""


def test_a_summary_longer_than_what_it_replaces_is_refused_unless_it_is_short() -> None:  # P17
    assert estimate(LONG) > SHORT_SUMMARY
    assert refusal(LONG, "one word") == "the summary is longer than what it replaces"
    assert refusal(LONG, LONG + LONG) == ""
    short = "Ada asked for a plan. " * 20
    assert estimate(short) < SHORT_SUMMARY
    assert refusal(short, "one word") == ""
