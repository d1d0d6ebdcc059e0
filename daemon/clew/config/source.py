"""Where a configuration is read from, again and again while the daemon lives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clew.config.load import Models, defaults, find_config, load
from clew.config.settings import Config
from clew.config.shown import Origins


@dataclass(frozen=True, slots=True)
class Source:
    """explicit: the file that was named, None for the usual places. transports, providers: as `load` has them.

    before: told of a config that was read before anybody gets it, so that its secrets are secrets from then on.
    """

    explicit: Path | None
    transports: Models
    providers: Models
    before: Callable[[Config], object] = lambda config: None

    def file(self) -> Path | None:
        """The file that is read now; None: there is none, and the defaults are. Raises ConfigError."""
        return find_config(self.explicit)

    def read(self) -> Config:
        """Raises ConfigError."""
        found = self.file()
        if found is None:
            config = defaults(transports=self.transports, providers=self.providers)
        else:
            config = load(found, transports=self.transports, providers=self.providers)
        self.before(config)
        return config

    def origins(self) -> Origins | None:
        """Where the values come from; None where there is no file. Raises ConfigError."""
        found = self.file()
        return Origins(found) if found else None
