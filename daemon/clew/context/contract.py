"""What a summary must hold to be committed. Pure."""

import json
import re

from clew.context.tokens import estimate

SHORT_SUMMARY = 400
"""Tokens up to which a summary may be longer than what it replaces (promise 17)."""

_ERROR = re.compile(
    r"\A\s*(?:"
    r"<!doctype html|<html|"
    r"(?:api |http |internal server |unexpected |connection |upstream connect )?error\s*(?::|\d|or disconnect|\Z)|"
    r"(?:http(?:/[\d.]+)? )?(?:5\d\d|429)\b[ :-]*(?:internal|bad gateway|service|gateway|too many|overloaded|server error|\Z)|"
    r"(?:(?:i'm |i am )?sorry\b.{0,40})?"
    r"\bi(?:'m| am)? (?:sorry|unable to|can(?:no|')t (?:help|assist|comply|summari[sz]e|do that|provide))|"
    r"prompt is too long|not logged in|invalid api key|you've hit your)",
    re.IGNORECASE | re.DOTALL,
)


def _is_json_object(text: str) -> bool:
    """An API's error, most often: a summary is lines of text."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def refusal(summary: str, replaced: str) -> str:
    """Why `summary` may not be committed in place of `replaced`, in words; empty if it may."""
    if not summary.strip():
        return "the summary is empty"
    if _ERROR.match(summary) or _is_json_object(summary):
        return "the summary is an error text"
    tokens = estimate(summary)
    if tokens > SHORT_SUMMARY and tokens > estimate(replaced):
        return "the summary is longer than what it replaces"
    return ""
