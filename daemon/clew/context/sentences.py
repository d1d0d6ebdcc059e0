"""Texts in sentences. Pure."""

import re
from collections.abc import Iterator, Sequence

from clew.context.phrases import MONTHS, fold
from clew.context.stopwords import LANGUAGES

LONGEST_SENTENCE = 600
"""Characters of a sentence; a longer run of text is parted at a space."""
MAX_CHARS = 200_000
"""Characters of one text that are read."""

_WRAPPED = 4
"""Words of a line that goes on in small letters on the next: shorter ones are lists."""
_UNFINISHED = frozenset[str]().union(*LANGUAGES)
"""Stop words: articles, prepositions, "not", "must". Behind a pronoun among them two sentences may stand together; none is lost."""
_ITEM = re.compile(r"\d+[.)]\s")

_CLOSING = r"[\"'”’)\]]"
_END = re.compile(rf"(?<=[.!?…])\s+|(?<=[.!?…]{_CLOSING})\s+|(?<=[.!?…]{_CLOSING}{{2}})\s+|(?<=[。！？])")
_MOST_PARTS = 20
"""Abbreviations in one sentence that are believed."""
_LONGEST_ABBREVIATION = 8
_ABBREVIATED = re.compile(
    r"(?:^|[\s.])[A-Za-z]\.$|\b(?:e\.g|i\.e|z\.B|d\.h|bzw|ca|Dr|Mr|Mrs|Ms|Nr|No|St|vs|etc|usw|approx|p\.ex|p\.ej|Sr|Sra|Dott|bijv|np|tzw|ul"
    r"|т\.д|т\.е|г|ул|стр)\.$"
    r"|\b(?:am|im|der|den|dem|die|das|vom|zum|zur|beim|bis|ab)\s\d{1,2}\.$",
    re.IGNORECASE,
)
_QUOTES = (("„", "“”"), ("«", "»"), ("「", "」"), ("『", "』"))
_OPENED = re.compile(r"(?:^|[\s(])\"(?=\S)[^\"]*$")
_QUOTE_MARKS = frozenset('"„«「『')
_LONGEST_QUOTED = 200
"""Characters of two sentences that one quotation holds together."""
_ORDINAL = re.compile(r"(?:^|\s)\d{1,2}\.$")


def sentences(text: str) -> Iterator[str]:
    """The sentences of `text`, unchanged but for the white space around and inside them."""
    for paragraph in _unwrapped(text[:MAX_CHARS].splitlines()):
        parts: list[str] = []
        pieces = _END.split(" ".join(paragraph.split()))
        quoted = not _QUOTE_MARKS.isdisjoint(paragraph)
        for piece, following in zip(pieces, (*pieces[1:], ""), strict=True):
            parts.append(piece)
            ended = not _goes_on(piece[-_LONGEST_ABBREVIATION:], following) and not (quoted and _quotes_on(piece, following))
            if len(parts) == _MOST_PARTS or ended:
                yield from _pieces(_joined(parts))
                parts = []
        yield from _pieces(_joined(parts))


def _unwrapped(lines: Sequence[str]) -> Iterator[str]:
    """Lines, those joined that a mail program, an editor or a hand broke in the middle of a sentence."""
    parts: list[str] = []
    for line in lines:
        if parts and not _is_broken(parts[-1].rstrip(), line.lstrip()):
            yield " ".join(parts)
            parts = []
        parts.append(line)
    if parts:
        yield " ".join(parts)


def _is_broken(line: str, after: str) -> bool:
    """Whether the sentence of a line goes on in the line after it."""
    if not line or not (line[-1].isalnum() or line[-1] == ",") or not after[:1].isalnum() or _ITEM.match(after):
        return False
    words = line.split()
    return words[-1].casefold() in _UNFINISHED or (after[0].islower() and len(words) >= _WRAPPED)


def _joined(parts: Sequence[str]) -> str:
    return "".join(part if part[-1:] in "。！？" else f"{part} " for part in parts if part).strip()


def _goes_on(end: str, following: str) -> bool:
    """Whether a piece that ends with `end` is no whole sentence: its last dot belongs to an abbreviation or to an ordinal."""
    if not end.endswith("."):
        return False
    if _ABBREVIATED.search(end):
        return True
    return bool(_ORDINAL.search(end)) and (following[:1].islower() or fold(following.partition(" ")[0]).strip(".,") in MONTHS)


def _quotes_on(piece: str, following: str) -> bool:
    """Whether a quotation that begins in `piece` ends in the next one: it is of one mind, as an error text is."""
    if len(piece) + len(following) > _LONGEST_QUOTED:
        return False
    if _OPENED.search(piece) and '"' in following:
        return True
    return any(piece.rfind(opening) > max(map(piece.rfind, closing)) and any(map(following.count, closing)) for opening, closing in _QUOTES)


def _pieces(sentence: str) -> Iterator[str]:
    while len(sentence) > LONGEST_SENTENCE:
        cut = sentence.rfind(" ", 1, LONGEST_SENTENCE) + 1 or LONGEST_SENTENCE
        yield sentence[:cut].strip()
        sentence = sentence[cut:]
    if sentence:
        yield sentence
