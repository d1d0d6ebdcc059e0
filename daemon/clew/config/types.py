"""Types of single values that settings have, with what is wrong with others in words for people."""

import re
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, WithJsonSchema
from pydantic_core import PydanticCustomError

_CRON_NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise PydanticCustomError("zone", "is not a time zone of the IANA list, such as Europe/Berlin") from None
    return name


def _parses(expression: str) -> bool:
    if len(expression.split()) != 5:  # the parser takes a sixth field, for seconds
        return False
    try:
        CronSim(expression, datetime(2026, 1, 1))
    except CronSimError:
        return False
    return True


def _occurs(expression: str) -> bool:
    return _parses(expression) and next(CronSim(expression, datetime(2026, 1, 1)), None) is not None


def _cron(expression: str) -> str:
    plain = _CRON_NAMES.get(expression.strip().lower(), expression)
    if _occurs(plain):
        return plain
    fields = plain.split()
    # A day that the month lacks (30 February) is refused by the parser like a typing error; alone, each field is good.
    if len(fields) == 5 and all(_parses(" ".join([*fields[:2], *pair, fields[4]])) for pair in _apart(fields)):
        raise PydanticCustomError("cron_never", "never occurs")
    raise PydanticCustomError("cron", "is not a cron expression (five fields, such as 30 8 * * 1-5)")


def _apart(fields: list[str]) -> tuple[tuple[str, str], tuple[str, str]]:
    return (fields[2], "*"), ("1", fields[3])


def _instant(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise PydanticCustomError("instant", "must be a date and time such as 2027-03-01T08:30") from None


def _nameable(at: datetime) -> datetime:
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise PydanticCustomError("instant", "must lie between {first} and {last}", {"first": FIRST_YEAR, "last": LAST_YEAR})
    return at


def _address(value: str) -> str:
    transport, _, chat = value.partition(":")
    if not transport or not chat:
        raise PydanticCustomError("address", "must be transport:name, such as mqtt:ada")
    return value


_PLACES = ("date", "due", "job", "last_reply", "output", "time")
"""What a job's prompt may name in double braces."""


def _template(text: str) -> str:
    for name in re.findall(r"\{\{\s*([A-Za-z_]+)\s*\}\}", text):
        if name not in _PLACES:
            known = ", ".join(_PLACES)
            raise PydanticCustomError("template", "names {name} in double braces, and it may name: {known}", {"name": name, "known": known})
    return text


def _none_if_empty(value: object) -> object:
    return None if value == "" else value


Zone = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_zone)]
Cron = Annotated[str, Field(max_length=200), AfterValidator(_cron)]
FIRST_YEAR, LAST_YEAR = 1971, 9998
"""Of times that a job may be given: in each zone they are a year of the calendar."""
Instant = Annotated[
    datetime, BeforeValidator(_instant), AfterValidator(_nameable), WithJsonSchema({"type": "string", "format": "date-time"})
]
Address = Annotated[str, Field(max_length=512), AfterValidator(_address)]
Name = Annotated[str, Field(min_length=1, max_length=64)]
Text = Annotated[str, Field(max_length=100_000)]
ServerName = Annotated[str, Field(pattern="^[A-Za-z0-9-]{1,32}$")]
OptionalSecret = Annotated[SecretStr | None, BeforeValidator(_none_if_empty)]
Prompt = Annotated[Text, AfterValidator(_template)]
Command = Annotated[str, Field(min_length=1, max_length=10_000)] | Annotated[tuple[str, ...], Field(min_length=1, max_length=1000)]
Rule = Annotated[str, Field(min_length=1, max_length=1000)]
Rules = Annotated[tuple[Rule, ...], Field(max_length=1000)]
Names = Annotated[tuple[Name, ...], Field(max_length=1000)]
