"""`clew chat`: talk to clew in the terminal."""

import asyncio
import sys
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from clew.cli.client import Client, connected
from clew.cli.conversation import Conversation, converse
from clew.cli.lines import LineScreen
from clew.cli.lines import talk as talk_in_lines
from clew.cli.options import asynchronous, config_option, settings
from clew.cli.reading import reading
from clew.config import Config
from clew.errors import UsageError
from clew.messages import Message
from clew.store.cleaning import INPUTS


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a chat begins.

    address: of this terminal. `after`: the end of its timeline. last: the last exchange, empty for a new session.
    """

    address: str
    session: str
    title: str
    after: int
    last: tuple[Message, ...] = ()


@click.command()
@click.option("--continue", "latest", is_flag=True, help="Go on with the session used last in this terminal.")
@click.option("--resume", "--session", "session", metavar="ID", help="Go on with this session; the beginning of its id is enough.")
@click.option("--title", default="", help="A title for a new session.")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line (with stdin and stdout as pipes or files).")
@asynchronous
async def chat(latest: bool, session: str | None, title: str, path: Path | None, as_json: bool) -> None:
    """Talk to clew: in a new session unless told otherwise.

    On a terminal, Enter sends and Alt+Enter begins a new line; Ctrl-C stops the turn that runs, Ctrl-D ends the chat.
    Otherwise each line of stdin is a message, and replies go to stdout.
    """
    if latest and session:
        raise UsageError("--continue and --resume exclude each other.")
    if title and (latest or session):
        raise UsageError("--title is for a new session.")
    config = settings(path)
    on_a_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    async with connected(config, level="error" if on_a_terminal else "warning") as client:  # log lines would run into the prompt
        entry = await _enter(config, client, latest, session, title)
        if on_a_terminal:
            await _on_a_terminal(config, client, entry)
        else:
            await _in_lines(config, client, entry, as_json)


async def _enter(config: Config, client: Client, latest: bool, session: str | None, title: str) -> Entry:
    answer = await client.post("/api/v1/terminal/session", {"session": "latest" if latest else session, "title": title})
    now = time.time()  # what is said from here on comes through the timeline
    identifier = str(answer["session"])
    async with reading(config) as store:
        row = await store.find_session(identifier)
        messages = await store.transcript(identifier) if latest or session else ()
    last = _last_exchange([each for each in messages if each.at <= now])
    return Entry(str(answer["address"]), identifier, row.title, int(answer["after"]), last)


def _last_exchange(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The newest message of a person that has words, and the last words of the model behind it."""
    spoken = [each for each in messages if each.role != "tool" and each.text.strip()]
    asked = next((at for at in range(len(spoken) - 1, -1, -1) if spoken[at].role == "user"), None)
    if asked is None:
        return tuple(spoken[-1:])
    return (spoken[asked], *spoken[asked + 1 :][-1:])


async def _in_lines(config: Config, client: Client, entry: Entry, as_json: bool) -> None:
    screen = LineScreen(as_json)
    screen.begin(entry.session, entry.title)
    conversation = Conversation(screen, entry.after)
    await _until_either(talk_in_lines(conversation, screen, config.limits.message_bytes), converse(client, conversation, screen))
    if screen.failed:
        click.get_current_context().exit(1)


async def _on_a_terminal(config: Config, client: Client, entry: Entry) -> None:
    from clew.cli.prompt import Terminal

    terminal = Terminal(config.data_dir / INPUTS)
    conversation = Conversation(terminal, entry.after)
    terminal.begin(entry.session, entry.title, entry.last)
    await _until_either(terminal.talk(conversation), converse(client, conversation, terminal))
    async with reading(config) as store:
        session = await store.current_session(entry.address)  # another one after /new
    click.echo(f"session {session}; `clew chat --continue` goes on with it" if session else "the next `clew chat` begins a new session")


async def _until_either(*work: Coroutine[Any, Any, None]) -> None:
    """Run all until the first of them ends; its error is ours."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
