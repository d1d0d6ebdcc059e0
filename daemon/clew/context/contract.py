"""What a summary must hold to be committed. Pure."""

import re

from clew.context.tokens import estimate

SHORT_SUMMARY = 400
"""Tokens up to which a summary may be longer than what it replaces (promise 17)."""

_ERROR = re.compile(
    r"\A\s*(?:"
    r"<!doctype html|<html|\{\s*\"(?:type\"\s*:\s*\"error|error)\"|"
    r"(?:api |http |internal server |unexpected |connection )?error\s*(?::|\d|\Z)|"
    r"(?:5\d\d|429)\b[ :]|"
    r"i(?:'m| am) (?:sorry|unable)|i can(?:no|')t (?:help|assist|comply|summari)|"
    r"prompt is too long|not logged in|invalid api key|you've hit your)",
    re.IGNORECASE,
)


def refusal(summary: str, replaced: str) -> str:
    """Why `summary` may not be committed in place of `replaced`, in words; empty if it may."""
    if not summary.strip():
        return "the summary is empty"
    if _ERROR.match(summary):
        return "the summary is an error text"
    tokens = estimate(summary)
    if tokens > SHORT_SUMMARY and tokens > estimate(replaced):
        return "the summary is longer than what it replaces"
    return ""
