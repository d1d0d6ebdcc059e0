"""What Discord's clients make of the text of a message: the words that people see, by the rules of their parser as they are known."""

import re
from collections.abc import Callable

CODE, OTHER = "\ue000", "\ue001"
"""Around what is set as code; in place of what is shown as something other than its words: mentions, times, emoji."""
_LINE = re.compile(r"(?P<indent> *)(?P<mark>#{1,3} +(?=\S)|-# +(?=\S)|[-*] +(?=\S)|[0-9]{1,9}\. +(?=\S))?")
_FENCE = re.compile(r"```(?:([A-Za-z0-9_+\-.#]+?)\n)?\n*([^\n][\s\S]*?)\n*```")
_SPAN = re.compile(r"(`+)([\s\S]*?[^`])\1(?!`)")
_ESCAPE = re.compile(r"\\([^0-9A-Za-z\s])")
_POINTED = re.compile(r"<(https?://[^ >]+)>")
_ADDRESS = re.compile(r"https?://[^\s<]+[^<.,:;\"'\]\s]")
_LINK = re.compile(r"\[((?:\[[^\]]*\]|[^\[\]]|\](?=[^\[]*\]))*)\]\(\s*<?((?:\([^)]*\)|[^\s\\]|\\.)*?)>?\s*\)")
_MENTION = re.compile(r"<(?:@[!&]?|#|a?:[A-Za-z0-9_]+:|t:)-?[0-9]+(?::[a-zA-Z])?>|</[^:]+:[0-9]+>")
_STRONG = re.compile(r"\*\*((?:\\[\s\S]|[^\\])+?)\*\*(?!\*)")
_EMPHASIS = re.compile(r"\*(?=\S)((?:\*\*|\\[\s\S]|\s+(?:\\[\s\S]|[^\s*\\]|\*\*)|[^\s*\\])+?)\*(?!\*)")
_LOW = re.compile(r"\b_((?:__|\\[\s\S]|[^\\_])+?)_\b")
_UNDER = re.compile(r"__((?:\\[\s\S]|[^\\])+?)__(?!_)")
_STRUCK = re.compile(r"~~([\s\S]+?)~~")
_HIDDEN = re.compile(r"\|\|([\s\S]+?)\|\|")
_WHOLE: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (_FENCE, lambda match: CODE + match[2] + CODE),
    (_ESCAPE, lambda match: match[1]),
    (_POINTED, lambda match: match[1]),
    (_MENTION, lambda match: OTHER),
    (_ADDRESS, lambda match: match[0]),
    (_SPAN, lambda match: CODE + re.sub(r"\A (?=`)|(?<=`) \Z", "", match[2]) + CODE),
    (_HIDDEN, lambda match: OTHER),
)
_STYLES = (_STRONG, _EMPHASIS, _LOW, _UNDER)


def shown(text: str) -> str:
    """The words of a message, without what marks lists, headings and quotations; `OTHER` for what no words of ours should become."""
    fences = [match[0] for match in re.finditer(r"```[\s\S]*?```", text)]
    between = re.split(r"```[\s\S]*?```", text)
    unquoted = [re.sub(r"^> ", "", words, flags=re.MULTILINE) for words in between]  # quotations are read before what stands in them
    return _inline("".join(words + fence for words, fence in zip(unquoted, [*fences, ""], strict=True)), lines=True)


def _inline(text: str, *, lines: bool = False) -> str:
    found, at = "", 0
    while at < len(text):
        if lines and (at == 0 or text[at - 1] == "\n") and (match := _LINE.match(text, at)) and match.end() > at:
            found, at = found + (match["mark"] or "").strip(" #-*"), match.end()
            continue
        piece, at = _piece(text, at)
        found += piece
    return found


def _piece(text: str, at: int) -> tuple[str, int]:
    """The first piece of `text` from `at` on, as it is shown, and where the next one begins."""
    for rule, words in _WHOLE:
        if match := rule.match(text, at):
            return words(match), match.end()
    if match := _LINK.match(text, at):
        return _inline(match[1]), match.end()
    styled = [match for rule in _STYLES if (match := rule.match(text, at))]
    if styled:
        longest = max(styled, key=lambda match: match.end())
        return _inline(longest[1]), longest.end()
    if match := _STRUCK.match(text, at):
        return _inline(match[1]), match.end()
    return text[at], at + 1
