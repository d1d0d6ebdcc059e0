"""Ways to turn texts into vectors that lie near each other where the texts mean alike: the door, one file per way."""

from collections.abc import Iterable, Sequence
from typing import Protocol

BATCH = 32
"""Texts of one call: the fewest that a server in use takes by its default (Hugging Face's TEI)."""
MAX_CHARS = 1500
"""Characters of a text that are embedded: about 400 tokens, so that models with a window of 512 take it."""


class Vectors(list[bytes]):
    """Vectors, with the tokens that the server says it read for them: 0 where it says nothing, or nobody is paid."""

    def __init__(self, vectors: Iterable[bytes] = (), tokens: int = 0) -> None:
        super().__init__(vectors)
        self.tokens = tokens


class Embedder(Protocol):
    """A way to reach one embedding model. Vectors are as `clew.context.vectors.quantised` makes them."""

    @property
    def version(self) -> str:
        """Names the model and how texts are put to it. Vectors of different versions do not compare."""

    async def prepare(self) -> None:
        """Load what is heavy, in a thread. Raises ConfigError where it cannot be had."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """A vector for each of at most `BATCH` texts, in their order, empty for a text that has none; all of one length.

        Texts are cut at `MAX_CHARS`. They leave this machine where the model is elsewhere: whoever calls has taken the secrets out.
        Raises clew.providers.ProviderError.
        """

    async def close(self) -> None: ...
