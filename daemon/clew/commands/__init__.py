"""The commands people write in a chat: one table, one function each."""

from clew import jobs_command
from clew.commands import access, compacting, noting, recalling, remembering, standing, thread
from clew.commands.command import MEMBERS, OWNERS, Answer, Command, Rooms
from clew.context.text import first_word
from clew.errors import ClewError, StoreError
from clew.store import Claim


async def answer(rooms: Rooms, claim: Claim) -> Answer:
    """Run the command of a claim. Raises Stopped."""
    word, rest = first_word(claim.items[0].text)
    command = COMMANDS.get(word)
    if command is None or command.run is None:
        return Answer(f"I do not know {word}. /help lists what I do know.")
    if claim.person is None or claim.person.role not in command.roles:
        return Answer(f"{word} is not for you here.")
    try:
        return await command.run(rooms, claim, rest)
    except StoreError:
        raise
    except ClewError as error:
        return Answer(" ".join(filter(None, (error.message, error.hint))))


async def _help(rooms: Rooms, claim: Claim, rest: str) -> Answer:
    role = claim.person.role if claim.person else "guest"
    lines = [f"{command.usage} — {command.help}" for command in COMMANDS.values() if role in command.roles]
    return Answer("\n".join(lines))


COMMANDS = {
    "/help": Command("/help", "this list", _help),
    "/new": Command("/new", "begin a new conversation; the old one stays searchable", thread.new),
    "/sessions": Command("/sessions", "the conversations that you can go on with here", thread.sessions),
    "/resume": Command(thread.RESUME, "go on with one of them here; it stays where it was too", thread.resume),
    "/branch": Command(thread.BRANCH, "begin a new conversation that knows this one, up to message N; both go on", thread.branch),
    "/private": Command(thread.PRIVATE, "whether what is said in this conversation is remembered elsewhere", thread.private),
    "/export": Command("/export", "this conversation as a file: a link for you, once", thread.export),
    "/status": Command("/status", "the session, its model, its window and its tokens", thread.status),
    "/context": Command("/context", "what is in my window, by part, and when it is compacted next", compacting.context),
    "/compact": Command("/compact [what to keep] [--preview]", "put older messages into the summary now", compacting.compact),
    "/dropped": Command("/dropped", "what the newest compaction dropped and changed", compacting.dropped),
    "/undo": Command("/undo [compaction]", "take back the last exchange, or the newest compaction", compacting.undo),
    "/pin": Command("/pin [id]", "keep a message word for word: the one replied to, else the newest", compacting.pin),
    "/unpin": Command("/unpin [id]", "let go of it again: the one replied to, else the one pinned last", compacting.unpin),
    "/recall": Command(recalling.RECALL, "find what was said earlier, here and in your other conversations", recalling.recall),
    "/why": Command("/why [id]", "what was recalled for a message, and why: the one replied to, else the newest", recalling.why),
    "/forget": Command(
        remembering.FORGET, "forget this conversation, or one exchange: the one named or replied to; no /undo", remembering.forget
    ),
    "/memory": Command(noting.MEMORY, "what is known here beyond this conversation, to read and to correct", noting.memory),
    "/jobs": Command(jobs_command.USAGE, "your jobs, and those that speak here: when each is due, and what became of it", standing.jobs),
    "/cost": Command(
        "/cost", "what this conversation and you cost, what the prompt cache did, and what is left of your budgets", standing.cost
    ),
    "/allowed": Command(standing.ALLOWED, "the tools that may run here because somebody said always", standing.allowed),
    "/access": Command(access.ACCESS, "who asks to talk to me, who may, and as what", access.access, OWNERS),
    "/link": Command("/link", "be the same person in another account: a code to send from there", access.link, MEMBERS),
    "/unlink": Command("/unlink [IDENTITY]", "your accounts; one that was linked is yours no more", access.unlink, MEMBERS),
    "/login": Command("/login", "a link that logs a browser in to the page as you, once", access.login, MEMBERS),
    "/logout": Command("/logout", "log out every browser that is logged in as you", access.logout, MEMBERS),
    "/stop": Command("/stop", "stop the reply that is being written", None),
}

CONTROL = frozenset(name for name, command in COMMANDS.items() if command.run is None)
"""Commands that never wait in the session's lane: they are carried out when they are stored."""
