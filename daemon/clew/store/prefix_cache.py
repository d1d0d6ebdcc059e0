"""Which prefixes providers hold, kept in memory beside their table: it is asked before every model call."""

from collections.abc import Iterable, Sequence

from clew.store import CacheEntry

Key = tuple[str, str, str]
"""(provider, model, hash)."""

LIMIT = 10_000
"""Entries that are kept, about 400 bytes each: two or three a turn, for as long as the provider holds them. Where there are more, the table
is asked."""


class PrefixCache:
    """A copy of `cache_entries`, changed after each commit that changes the table.

    whole: whether every entry of the table is in it, so that the table need not be asked.
    """

    def __init__(self) -> None:
        self._entries: dict[Key, CacheEntry] = {}
        self._overflowed = False
        self.whole = False

    def load(self, entries: Iterable[CacheEntry]) -> None:
        """Take in what the table held at some moment since this was made."""
        self.add(entries)
        self.whole = not self._overflowed

    def add(self, entries: Iterable[CacheEntry]) -> None:
        """Held from now on; one that is held already is held for longer."""
        if self._overflowed:
            return
        for entry in entries:
            key = (entry.provider, entry.model, entry.hash)
            held = self._entries.get(key)
            if held is None or held.expires <= entry.expires:
                self._entries[key] = entry
        if len(self._entries) > LIMIT:
            self._entries.clear()
            self._overflowed, self.whole = True, False

    def held(self, provider: str, model: str, hashes: Sequence[str], now: float) -> dict[str, CacheEntry]:
        """Those of `hashes` that have not expired."""
        found = ((each, self._entries.get((provider, model, each))) for each in hashes)
        return {each: entry for each, entry in found if entry is not None and entry.expires > now}

    def expire(self, now: float) -> None:
        self._entries = {key: entry for key, entry in self._entries.items() if entry.expires > now}
