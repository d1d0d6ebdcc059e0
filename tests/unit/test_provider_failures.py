import pytest

from clew.providers import ErrorKind
from clew.providers.failures import MAX_MESSAGE, Answer, failure, retry_after, safe

NOW = 1_796_000_000.0


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(400, "bad", "invalid_request_error"), "invalid"),
        (Answer(404, "model: x", "not_found_error"), "invalid"),
        (Answer(413, "too large"), "invalid"),
        (Answer(413, "Request exceeds the maximum size", "request_too_large"), "overflow"),
        (Answer(422, "unprocessable"), "invalid"),
        (Answer(401, "no key", "authentication_error"), "auth"),
        (Answer(403, "not allowed", "permission_error"), "auth"),
        (Answer(402, "pay", "billing_error"), "quota"),
        (Answer(429, "slow down", "rate_limit_error"), "rate_limit"),
        (Answer(429, "cap", "rate_limit_error", "enforced_spend_limit_reached"), "quota"),
        (Answer(429, "plan", "insufficient_quota", "insufficient_quota"), "quota"),
        (Answer(400, "You have reached your specified API usage limits. Regain access on 2026-12-01."), "quota"),
        (Answer(408, "timeout"), "server"),
        (Answer(500, "oops", "api_error"), "server"),
        (Answer(502, "<html>bad gateway</html>"), "server"),
        (Answer(503, "Loading model", "unavailable_error"), "server"),
        (Answer(503, "The engine is currently overloaded"), "overloaded"),
        (Answer(504, "timed out", "timeout_error"), "server"),
        (Answer(529, "Overloaded", "overloaded_error"), "overloaded"),
        (Answer(200, "Overloaded", "overloaded_error"), "overloaded"),
        (Answer(200, "slow", "rate_limit_error"), "rate_limit"),
        (Answer(200, "?", "api_error"), "server"),
        (Answer(200, "The number of tokens to keep from the initial prompt is greater"), "overflow"),
    ],
)
def test_every_answer_has_one_kind(answer: Answer, kind: ErrorKind) -> None:
    assert failure(answer, NOW).kind == kind


def test_malformed_arguments_are_not_an_overflow() -> None:  # BO-116
    error = failure(Answer(400, "messages.3: tool arguments are malformed", "invalid_request_error"), NOW)
    assert (error.kind, error.tokens) == ("invalid", None)


def test_the_status_is_no_number_of_tokens() -> None:
    error = failure(Answer(400, "prompt is too long: 23 tokens > 10 maximum", "invalid_request_error"), NOW)
    assert (error.kind, error.tokens) == ("overflow", (23, 10))


def test_a_rate_limit_about_long_input_stays_a_rate_limit() -> None:
    assert failure(Answer(429, "input is too long for your tokens per minute"), NOW).kind == "rate_limit"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"}, 4_102_444_800 - NOW),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-5"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


def test_the_key_is_never_in_an_error() -> None:
    answer = Answer(401, "Incorrect key my-own-key-1 or sk-abc***xyz, sent as Bearer topsecret", "authentication_error")
    message = str(failure(answer, NOW, secret="my-own-key-1"))
    assert "my-own-key-1" not in message
    assert "sk-abc" not in message
    assert "topsecret" not in message
    assert message.startswith("401 authentication_error: Incorrect key ***")


def test_a_page_of_html_is_kept_short_and_on_one_line() -> None:
    text = safe("<html>\n" + "x" * 10_000)
    assert len(text) == MAX_MESSAGE
    assert "\n" not in text
