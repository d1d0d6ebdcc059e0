"""docs/chat-commands.md says what the program says, and every command has what the table needs."""

from clew.commands import COMMANDS, CONTROL
from tests import chat_commands


def test_the_page_lists_every_command_with_who_may_use_it() -> None:
    page = chat_commands.PAGE.read_text("utf-8")
    assert chat_commands.HEAD in page
    assert chat_commands.updated(page) == page, "run `python -m tests.chat_commands --write`"


def test_every_command_is_written_by_its_name_and_is_for_somebody() -> None:
    for name, command in COMMANDS.items():
        assert command.usage.split()[0] == name
        assert command.help
        assert command.roles
    assert {"/stop"} == CONTROL
