"""What an entry says that its sources do not."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from clew.evaluation.key import IDENTIFIER
from clew.evaluation.statement import Statement
from clew.evaluation.wording import NEGATION, holds, plain
from clew.messages import Message, Text, ToolCall, ToolResult

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_QUOTED = re.compile(r"[“„\"«「『]([^“”„\"«»「」『』\n]{2,80})[”“\"»」』]")


def said(messages: Sequence[Message], zone: tzinfo) -> dict[int, str]:
    """Everything that stands in each message, its calls, results and date included, as `plain` gives it, by its number."""
    return {message.seq: plain(f"{_words(message)}\n{datetime.fromtimestamp(message.at, zone):%Y-%m-%d}") for message in messages}


def _words(message: Message) -> str:
    pieces = [message.sender_name]
    for block in message.blocks:
        match block:
            case Text(text):
                pieces.append(text)
            case ToolCall(name=name, arguments=arguments):
                pieces.append(f"{name} {arguments}")
            case ToolResult(name=name, text=text):
                pieces.append(f"{name} {text}")
    return "\n".join(pieces)


def invented(statement: Statement, texts: Mapping[int, str]) -> list[str]:
    """The identifiers, numbers and quoted names in a statement that its sources do not hold, and `not` where none of them denies anything.

    texts: what was said in each message behind the cut (see `said`). A statement without sources stands on all of them.
    """
    source = "\n".join(texts[number] for number in sorted(statement.sources or texts) if number in texts)
    tokens = dict.fromkeys(plain(each) for each in (*IDENTIFIER.findall(statement.text), *_NUMBER.findall(statement.text)))
    tokens |= dict.fromkeys(plain(each) for each in _QUOTED.findall(statement.text))
    found = [token for token in tokens if token and not holds(source, token) and not _same_number(token, source)]
    if NEGATION.search(statement.words) and not NEGATION.search(source):
        found.append("not")
    return found


def _same_number(token: str, source: str) -> bool:
    """Whether a number stands in the source with other separators, as 1,480 for 1480."""
    digits = re.sub(r"\D", "", token)
    return bool(_NUMBER.fullmatch(token)) and any(re.sub(r"\D", "", each) == digits for each in _NUMBER.findall(source))
