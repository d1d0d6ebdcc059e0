"""Chats that happened before: put into a store of their own, and asked about through the recall of production."""

import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, Field, NaiveDatetime

from clew.config import Recall as Settings
from clew.errors import UsageError
from clew.meaning import Meaning
from clew.metrics import Metrics
from clew.recall import IndexRecall, SessionView
from clew.store import Person, PromptState
from clew.store.sql import SqlStore
from clew.store.sqlite import SqliteStore
from clew.transport import Address, Inbound

YOU = Person("you", "owner", None, ("eval:you",))
"""Whose chats they are."""
CHAT = Address("eval", "you")


MeaningOf = Callable[[SqlStore], AbstractAsyncContextManager[Meaning | None]]


def nothing(store: SqlStore) -> AbstractAsyncContextManager[None]:
    """No embedding model."""
    return nullcontext()


class Remark(BaseModel):
    """One message. seq: its place in its session. ts: ISO 8601, UTC where it names no zone. conv: the conversation that it is of."""

    message_id: Annotated[str, Field(min_length=1, max_length=1000)]
    session_id: Annotated[str, Field(min_length=1, max_length=1000)]
    seq: int
    role: str = "user"
    speaker: str = ""
    ts: AwareDatetime | NaiveDatetime
    text: str
    conv: str = ""

    @property
    def at(self) -> float:
        """Seconds since the epoch."""
        return (self.ts if self.ts.tzinfo else self.ts.replace(tzinfo=UTC)).timestamp()

    @property
    def words(self) -> str:
        """The text without the speaker's name, which some bridges put in front of it."""
        return self.text.removeprefix(f"{self.speaker}: ") if self.speaker else self.text


class Asked(BaseModel):
    """A line of the protocol: a message to remember, `prepare`, or a question with its budget."""

    op: Literal["message", "prepare", "recall"]
    session_id: str = ""
    text: str = ""
    budget_chars: Annotated[int, Field(ge=0, le=100_000)] = 2000
    top_n: Annotated[int, Field(ge=0, le=100)] = 5


@dataclass(frozen=True, slots=True)
class Hit:
    """An excerpt of what was said. message_id: its best message."""

    message_id: str
    excerpt: str


class Remembered:
    """A person's sessions in a store, and what recall finds of them."""

    def __init__(self, store: SqlStore, meaning: Meaning | None = None) -> None:
        self._store = store
        self._meaning = meaning
        self._names: dict[str, str] = {}  # ours to theirs
        self._sessions: dict[str, str] = {}  # theirs to ours
        self._fresh = ""

    @classmethod
    @asynccontextmanager
    async def opened(cls, meaning_of: MeaningOf = nothing) -> AsyncIterator["Remembered"]:
        """In a temporary folder, removed at the end. meaning_of: gives what is known of a store's texts by their meaning."""
        now = datetime.now(UTC).timestamp()
        with tempfile.TemporaryDirectory(prefix="clew-recall-") as folder:
            store = await SqliteStore.open(Path(folder) / "clew.db", now)
            try:
                await store.sync({YOU.id: YOU}, None, (), now)
                async with meaning_of(store) as meaning:
                    one = cls(store, meaning)
                    one._fresh = await store.open_chat(Inbound("", CHAT, YOU.id, ""), YOU.id, now)
                    yield one
            finally:
                await store.close()

    async def add(self, remarks: Iterable[Remark]) -> None:
        """Store whole sessions, the oldest first. Raises UsageError for a session or a message that is here already."""
        by_session: dict[str, list[Remark]] = defaultdict(list)
        for remark in remarks:
            by_session[remark.session_id].append(remark)
        for session, said in sorted(by_session.items(), key=lambda item: min(remark.at for remark in item[1])):
            if session in self._sessions:
                raise UsageError(f"The session {session} was stored already.", hint="All messages come in front of `prepare`.")
            self._sessions[session] = ours = f"s{len(self._sessions) + 1}"
            await self._store.import_session(self._export(ours, sorted(said, key=lambda remark: remark.seq)), said[0].at)
        while by_session and await self._store.make_lanes():  # as it is done in the background of a daemon
            pass
        if self._meaning is not None:
            await self._meaning.catch_up()

    def _export(self, session: str, said: list[Remark]) -> dict[str, object]:
        messages = []
        for seq, remark in enumerate(said, 1):
            self._names[identifier := f"m{len(self._names) + 1}"] = remark.message_id
            messages.append(
                {
                    "id": identifier,
                    "seq": seq,
                    "role": "assistant" if remark.role == "assistant" else "user",
                    "blocks": [{"kind": "text", "text": remark.words}],
                    "sender": "" if remark.role == "assistant" else YOU.id,
                    "sender_name": remark.speaker,
                    "turn": "",
                    "metadata": {},
                    "at": remark.at,
                    "address": str(CHAT),
                }
            )
        about = {"id": session, "address": str(CHAT), "direct": True, "title": "", "created": said[0].at}
        nothing: dict[str, object] = {"compactions": [], "pins": [], "retractions": [], "model_calls": []}
        return {"clew": 1, "session": about, "messages": messages, **nothing}

    async def recall(self, session: str, text: str, limits: Settings) -> list[Hit]:
        """What a turn of `session` (a new one where it is unknown) would be given for `text`, best first."""
        recall = IndexRecall(self._store, limits, Metrics(), self._meaning)
        ours = self._sessions.get(session, self._fresh)
        now = datetime.now(UTC).timestamp()
        block = await recall.system_appendix(SessionView(ours, str(CHAT), 0, text, (), (), UTC, PromptState(), keep=False, at=now))
        return [Hit(self._names[each.id], f"{each.heading}\n{each.text}") for each in block.shown]
