"""When Discord may be called again, by what its answers say. Times in seconds of a clock that stands still."""

from clew_transports.discord.limits import MAX_BUCKETS, MOST_CALLS, Call, Limits

SEND, OTHER, EDIT = Call("POST messages", "1"), Call("POST messages", "2"), Call("PATCH message", "1")


def answer(left: int, seconds: float, bucket: str = "b") -> dict[str, str]:
    return {"X-RateLimit-Bucket": bucket, "X-RateLimit-Remaining": str(left), "X-RateLimit-Reset-After": str(seconds)}


def done(limits: Limits, call: Call, now: float) -> None:
    limits.began(call, now)
    limits.ended(now)


def test_a_bucket_that_is_empty_is_left_alone_until_it_is_filled() -> None:  # BO-064
    limits = Limits()
    assert limits.wait(SEND, 10.0) == 0.0
    limits.learn(SEND, answer(1, 5.0), 10.0)
    assert limits.wait(SEND, 10.0) == 0.0
    done(limits, SEND, 10.0)
    assert (limits.wait(SEND, 10.0), limits.wait(SEND, 14.0), limits.wait(SEND, 15.0)) == (5.0, 1.0, 0.0)
    assert (limits.wait(OTHER, 10.0), limits.wait(EDIT, 10.0)) == (0.0, 0.0)


def test_calls_of_one_bucket_share_it_once_its_name_is_known() -> None:  # BO-064
    limits = Limits()
    limits.learn(EDIT, answer(3, 5.0), 10.0)
    limits.learn(SEND, answer(0, 5.0), 10.0)
    assert (limits.wait(EDIT, 10.0), limits.wait(Call("PATCH message", "2"), 10.0)) == (5.0, 0.0)


def test_a_refusal_is_kept_and_an_answer_that_it_has_overtaken_does_not_lift_it() -> None:  # BO-064
    limits = Limits()
    limits.refused(SEND, 40.0, 10.0, everywhere=False)
    limits.learn(SEND, answer(3, 5.0, ""), 11.0)
    assert (limits.wait(SEND, 11.0), limits.wait(OTHER, 11.0), limits.everywhere(11.0)) == (39.0, 0.0, False)
    limits.refused(SEND, 2.0, 11.0, everywhere=True)
    assert (limits.wait(OTHER, 11.0), limits.everywhere(11.0), limits.everywhere(13.0)) == (2.0, True, False)


def test_in_all_no_more_calls_are_made_than_a_bot_may_make() -> None:  # BO-064
    limits = Limits()
    for number in range(MOST_CALLS - 1):
        done(limits, Call("GET x", str(number)), 10.0)
    limits.began(SEND, 10.5)
    assert limits.wait(OTHER, 10.5) == 0.5
    assert limits.wait(OTHER, 11.0) == 0.0
    for _ in range(MOST_CALLS - 1):
        limits.began(OTHER, 11.0)
    assert limits.wait(OTHER, 11.0) > 0.0
    limits.ended(11.2)
    assert (limits.wait(OTHER, 11.2), limits.wait(OTHER, 12.2)) == (1.0, 0.0)


def test_headers_that_say_nothing_change_nothing_and_what_is_remembered_is_bounded() -> None:
    limits = Limits()
    for headers in ({}, {"X-RateLimit-Remaining": "0"}, answer(0, 5.0) | {"X-RateLimit-Reset-After": "soon"}):
        limits.learn(SEND, headers, 10.0)
        assert limits.wait(SEND, 10.0) == 0.0
    for number in range(MAX_BUCKETS + 5):
        limits.refused(Call("x", str(number)), 100.0, 10.0, everywhere=False)
    assert (limits.wait(Call("x", "4"), 10.0), limits.wait(Call("x", "5"), 10.0)) == (0.0, 100.0)
