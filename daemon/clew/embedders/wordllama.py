"""WordLlama's static vectors, from the weights in its own wheel: nothing is fetched, nothing leaves this machine."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clew.context.vectors import quantised
from clew.embedders import BATCH, MAX_CHARS, Vectors
from clew.errors import ConfigError

NAME = "wordllama"
"""In place of a provider's name, in the config."""
MODEL = "l2_supercat_256"


class WordLlama:
    """See `clew.embedders.Embedder`. Some 16 MB of weights, a thousand texts in well under a second."""

    def __init__(self) -> None:
        self._model: Any = None

    @property
    def version(self) -> str:
        return f"{NAME}-{version(NAME)}/{MODEL}"

    async def prepare(self) -> None:
        if self._model is None:
            self._model = await asyncio.to_thread(_load)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) > BATCH:
            raise ValueError(f"at most {BATCH} texts")
        await self.prepare()
        return Vectors(await asyncio.to_thread(self._embedded, [text[:MAX_CHARS] for text in texts]))

    async def close(self) -> None:
        self._model = None

    def _embedded(self, texts: list[str]) -> list[bytes]:
        # Texts without a word would be divided by their number of words, 0.
        spoken = [place for place, text in enumerate(texts) if text.strip()]
        vectors = [b""] * len(texts)
        for place, row in zip(spoken, self._model.embed([texts[place] for place in spoken]).tolist() if spoken else (), strict=True):
            vectors[place] = quantised(row)
        return vectors


def _load() -> Any:
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    try:
        module = importlib.import_module(NAME)
        # The weights lie where the package looks first; its tokenizer only where its cache would be.
        return module.WordLlama.load(cache_dir=Path(module.__file__ or "").parent, disable_download=True)
    except ImportError as error:
        hint = "Install clew with its extra: pip install 'clew[vectors]'. Or name a provider of kind openai."
        raise ConfigError(f"embeddings.provider: the package {NAME} is not there ({error}).", hint=hint) from None
    finally:
        root.setLevel(before[0])  # it sets up the whole program's logging when it is imported
        root.handlers[:] = before[1]
