"""The life of the daemon's process."""

import gc

from clew.lifecycle import keep_what_is_there


def test_the_collector_looks_no_more_at_what_a_start_made() -> None:
    there = [{"made": "at the start"}]
    try:
        keep_what_is_there()
        assert gc.get_freeze_count() > 0
        assert not any(each is there for each in gc.get_objects())
    finally:
        gc.unfreeze()
