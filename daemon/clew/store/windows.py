"""The messages of windows that were read for a turn, kept so that the next turn of their session reads only what is new."""

from collections.abc import Mapping

from clew.messages import Message
from clew.store import ViewRows

LIMIT = 64
"""Sessions whose window is kept; the one that was asked for the longest time ago goes first."""


class Windows:
    """What committed transactions read. A row never changes, so that it need not be read again while its session is there."""

    def __init__(self) -> None:
        self._messages: dict[str, tuple[Message, ...]] = {}

    @property
    def messages(self) -> Mapping[str, tuple[Message, ...]]:
        """By session, in order."""
        return self._messages

    def keep(self, rows: ViewRows) -> None:
        """Keep the window of a session. That of a run which goes on from another session is not its own."""
        self.forget(rows.session)
        if rows.base is None:
            self._messages[rows.session] = rows.messages
        if len(self._messages) > LIMIT:
            del self._messages[next(iter(self._messages))]

    def clear(self) -> None:
        """Rows of any session were deleted."""
        self._messages.clear()

    def forget(self, session: str) -> None:
        """A session was deleted: rows that come under its name from now on, by an import, are others."""
        self._messages.pop(session, None)
