"""Which prefixes providers hold, kept in memory beside their table: it is asked before every model call."""

from collections.abc import Iterable, Sequence

from clew.store import CacheEntry

Key = tuple[str, str, str]
"""(provider, model, hash)."""


class PrefixCache:
    """A copy of `cache_entries`, changed after each commit that changes the table."""

    def __init__(self, entries: Iterable[CacheEntry]) -> None:
        self._entries: dict[Key, CacheEntry] = {}
        self.add(entries)

    def add(self, entries: Iterable[CacheEntry]) -> None:
        """Held from now on; one that is held already is held for longer."""
        for entry in entries:
            key = (entry.provider, entry.model, entry.hash)
            held = self._entries.get(key)
            if held is None or held.expires <= entry.expires:
                self._entries[key] = entry

    def held(self, provider: str, model: str, hashes: Sequence[str], now: float) -> dict[str, CacheEntry]:
        """Those of `hashes` that have not expired."""
        found = ((each, self._entries.get((provider, model, each))) for each in hashes)
        return {each: entry for each, entry in found if entry is not None and entry.expires > now}

    def expire(self, now: float) -> None:
        self._entries = {key: entry for key, entry in self._entries.items() if entry.expires > now}
