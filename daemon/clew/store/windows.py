"""The messages of windows that were read for a turn, kept so that the next turn of their session reads only what is new."""

from collections.abc import Mapping, Sequence

from clew.messages import Message
from clew.store import Seen, ViewRows

LIMIT = 64
"""Sessions whose window is kept; the one that was asked for the longest time ago goes first."""


class Windows:
    """What committed transactions read. A row never changes, so that it need not be read again while its session is there."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}
        self._gone = 0

    def seen(self, gone: int = 0) -> Mapping[str, Seen]:
        """By session: what was read when other processes had deleted or emptied rows `gone` times."""
        return self._seen if gone == self._gone else {}

    def keep(self, rows: ViewRows, gone: int = 0) -> None:
        """Keep the window of a session. That of a run which goes on from another session is not its own. gone: as in `seen`."""
        if gone < self._gone:
            return
        if gone > self._gone:
            self._gone, self._seen = gone, {}
        self.forget(rows.session)
        if rows.base is None:
            self._seen[rows.session] = Seen(rows.to_seq, rows.messages, rows.taken_back)
        if len(self._seen) > LIMIT:
            del self._seen[next(iter(self._seen))]

    def add(self, session: str, written: Sequence[Message]) -> None:
        """A turn wrote these messages. They are kept where nothing came in between."""
        seen = self._seen.get(session)
        if seen is not None:
            self._seen[session] = joined(seen, written)

    def clear(self) -> None:
        """Rows of any session were deleted."""
        self._seen.clear()

    def forget(self, session: str) -> None:
        """A session was deleted: rows that come under its name from now on, by an import, are others."""
        self._seen.pop(session, None)


def joined(seen: Seen, written: Sequence[Message]) -> Seen:
    """`seen` with what was written since, where nothing came in between."""
    follows = seen.messages and written and written[0].seq == seen.messages[-1].seq + 1
    return seen._replace(messages=(*seen.messages, *written)) if follows else seen
