"""What recall gave a turn, and why, in words for people."""

from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo

from clew.compacted import short
from clew.context.redact import redact
from clew.store import Quote, RecalledFor

QUOTED = 160
"""Characters of a message that is quoted."""
ASKED = 60
"""Characters of what was asked."""
MOST_TERMS = 8
"""Terms of one excerpt that are named."""
_AGES = ((365.25 * 86_400, "year"), (30.44 * 86_400, "month"), (7 * 86_400, "week"), (86_400, "day"), (3_600, "hour"), (60, "minute"))


def told(given: RecalledFor | None, zone: tzinfo) -> str:
    """The excerpts that stood in the prompt, then those that were found and did not, each with its date, age, chat, speaker, terms and
    score."""
    if given is None:
        return "Nothing was asked here yet."
    asked = f"“{short(redact(given.asked), ASKED)}”"
    if not given.quotes and not given.hidden:
        return f"Nothing was recalled for {asked}."
    return "\n".join(_lines(given, asked, zone))


def _lines(given: RecalledFor, asked: str, zone: tzinfo) -> Iterator[str]:
    for shown, heading in ((True, f"Recalled for {asked}:"), (False, "Found and left out:")):
        quotes = [quote for quote in given.quotes if quote.shown is shown]
        if quotes:
            yield heading
            yield from (f"- {_line(quote, given.at, zone)}" for quote in quotes)
    if given.hidden:
        yield f"What was written elsewhere, or was taken back, is not shown here: {given.hidden}."


def _line(quote: Quote, at: float, zone: tzinfo) -> str:
    message = quote.message
    when = f"{datetime.fromtimestamp(message.at, zone):%Y-%m-%d %H:%M} ({age(at - message.at)})"
    said = short(redact(message.text), QUOTED)
    return f"{when} {message.speaker} in {message.chat}: {said} [{message.id}; {reason(quote)}]"


def reason(quote: Quote) -> str:
    """Why an excerpt was considered: its terms and its score."""
    terms = ", ".join(quote.why[:MOST_TERMS]) + ", …" * (len(quote.why) > MOST_TERMS)
    return f"by {terms}, score {quote.score:.2f}" if terms else f"score {quote.score:.2f}" if quote.score else "it stood there already"


def snippet(text: str, why: Sequence[str], most: int) -> str:
    """`text` as one line of about `most` characters around the first of the terms by which it was found."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    low = line.casefold()
    first = min((at for word in why if (at := low.find(word.casefold())) >= 0), default=0)
    start = max(0, min(first - most // 4, len(line) - most))
    return ("…" if start else "") + line[start : start + most] + ("…" if start + most < len(line) else "")


def age(seconds: float) -> str:
    """How long before something was, in its largest unit: `3 days before`."""
    for size, unit in _AGES:
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' * (count > 1)} before"
    return "just before"
