"""When two names, or two sentences, are the same one written differently. Pure."""

from __future__ import annotations

import re
import unicodedata

from clew.context.text import normalise

_PART = re.compile(r"[^\W_]+|[+#]+")
_LATIN_MARK = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_END = re.compile(r"[\s.!。！…]+\Z")


def name_key(name: str) -> str:
    """What a name is told apart by: case, width, Latin accents, punctuation and spaces do not count, `+` and `#` do.

    `Harbor Clinic`, `harbor_clinic` and `HARBOR-CLINIC` are one; `C` and `C++` are two, and so are `v1.2` and `v12`.
    """
    plain = _LATIN_MARK.sub("", unicodedata.normalize("NFD", normalise(name)))
    parts = _PART.findall(unicodedata.normalize("NFC", plain))
    if not parts:
        return " ".join(normalise(name).split())
    key: str = parts[0]
    for part in parts[1:]:
        key += f".{part}" if key[-1].isdigit() and part[0].isdigit() else part
    return key


def text_key(text: str) -> str:
    """What a sentence is told apart by: case, width, runs of spaces and the full stop at its end do not count."""
    plain = " ".join(normalise(text).split())
    return _END.sub("", plain) or plain
