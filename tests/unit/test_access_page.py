"""docs/access.md says what each role may, as the program has it."""

from pathlib import Path

import pytest

from clew.access import parse
from clew.commands import COMMANDS
from clew.errors import UsageError
from clew.inbox import OPEN_REQUESTS
from clew.owner import TOLD, TOLD_WINDOW
from clew.store import AccessEffect, access, links

PAGE = (Path(__file__).parents[2] / "docs" / "access.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.count("|") == 5]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_whose_the_table_says(name: str) -> None:  # P46
    row = next((row for row in ROWS if f"`{name}`" in row[0]), None)
    if row is None:
        assert COMMANDS[name].roles == {"owner", "member", "guest"}, f"{name} is not everybody's, and the table has no row for it"
        return
    may = {role for role, cell in zip(("owner", "member", "guest"), row[1:], strict=True) if cell != "no"}
    assert may == COMMANDS[name].roles


def test_the_bounds_are_those_of_the_program() -> None:  # P46
    flat = " ".join(PAGE.split())
    assert (TOLD, TOLD_WINDOW, OPEN_REQUESTS, access.REQUEST_DAYS) == (5, 3600.0, 100, 7)
    assert "at most five times in an hour" in flat
    assert "At most a hundred requests are open at once" in flat
    assert "ends after seven days" in flat
    assert (links.LASTS, links.TRIES, links.TRIES_WINDOW) == (600.0, 5, 86_400.0)
    assert (links.ALL_TRIES, links.ALL_WINDOW) == (100, 3600.0)
    assert "good for ten minutes and one use" in flat
    assert "may guess five times a day; after a hundred guesses of all strangers in an hour" in flat


@pytest.mark.parametrize(
    ("words", "effect"),
    [
        ("approve CODE", AccessEffect("approve", "CODE", role="member")),
        ("approve CODE Owner", AccessEffect("approve", "CODE", role="owner")),
        ("approve CODE as Ada Lovelace", AccessEffect("approve", "CODE", name="Ada Lovelace")),
        ("approve CODE as Ada Lovelace guest", AccessEffect("approve", "CODE", role="guest", name="Ada Lovelace")),
        ("deny mqtt:eve", AccessEffect("deny", "mqtt:eve")),
        ("role Ada Lovelace guest", AccessEffect("role", "Ada Lovelace", role="guest")),
        ("rename mqtt:ada Ada Lovelace", AccessEffect("rename", "mqtt:ada", name="Ada Lovelace")),
        ("rename mqtt:ada", AccessEffect("rename", "mqtt:ada")),
        ("remove Ada Lovelace", AccessEffect("remove", "Ada Lovelace")),
        ("link Ada Lovelace mqtt:ada", AccessEffect("link", "Ada Lovelace", identity="mqtt:ada")),
        ("unlink mqtt:ada", AccessEffect("unlink", "mqtt:ada")),
    ],
)
def test_what_an_owner_writes_is_read_as_it_is_meant(words: str, effect: AccessEffect) -> None:
    assert parse(words) == effect


@pytest.mark.parametrize(
    "words", ["approve", "approve CODE as", "approve CODE Ada", "approve CODE as guest", "deny", "deny a b", "role ada", "link ada", ""]
)
def test_what_an_owner_may_have_meant_is_not_guessed(words: str) -> None:
    with pytest.raises(UsageError):
        parse(words)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("ABCD-EFGH", "ABCDEFGH"),
        (" abcdefgh\n", "ABCDEFGH"),
        ("/link ABCD EFGH", "ABCDEFGH"),
        ("/LINK abcd-efgh", "ABCDEFGH"),
        ("ABCD-EFGH please", None),
        ("ABCDEFG", None),
        ("ABCD-EFG0", None),
        ("/linkABCDEFGH", None),
        ("", None),
        ("A" * 10_000, None),
    ],
)
def test_a_code_is_all_that_its_message_says(text: str, code: str | None) -> None:  # P46
    assert links.read(text) == code
