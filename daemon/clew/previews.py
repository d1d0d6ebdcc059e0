"""What a model is saying, shown by a message that is edited while it speaks, and becomes the reply.

The row of the reply is committed before the first message is posted and keeps its reference, so that after a crash the reply takes the
place of what was shown.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import structlog

from clew.clock import Time
from clew.pace import Pace
from clew.store.sql import SqlStore
from clew.supervise import unless_lasting
from clew.transport import Address, Delivery, Preview, Refused, Retry, Transport

log = structlog.get_logger()

FIRST_AFTER = 1.0
"""Seconds of talk before a first message is posted, less where the platform's edits are closer to one another: a short reply needs none."""
ANSWER = 30.0
"""Seconds that a platform has to take a preview. The reply waits for it, or it would be overtaken by what it replaces."""
LONGEST_PREVIEW = 16_000
"""Characters beyond which a platform is shown no further previews of a reply."""
MOST = 256
"""Replies that are shown at once; of others only the reply itself is seen."""


@dataclass(slots=True)
class _Shown:
    """A reply that is being written. waiting: the newest words that are not shown yet. ref: the message that shows it; empty: there may be
    one; None: there is none."""

    address: Address
    waiting: Preview | None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    draft: Delivery | None = None
    ref: str | None = None
    task: asyncio.Task[None] | None = None


class Previews:
    """For the transports that edit, by name."""

    def __init__(self, store: SqlStore, transports: Mapping[str, Transport], paces: Mapping[str, Pace], time: Time) -> None:
        self._store = store
        self._transports = transports
        self._paces = paces
        self._time = time
        self._shown: dict[str, _Shown] = {}

    def show(self, address: Address, event: Preview) -> None:
        """Never waits. Of words that wait only the newest are shown."""
        shown = self._shown.get(event.turn)
        if shown is None:
            if len(self._shown) < MOST:
                shown = self._shown[event.turn] = _Shown(address, event)
                shown.task = asyncio.create_task(self._run(event.turn, shown), name=f"preview.{event.turn}")
        elif not shown.over.is_set():
            shown.waiting = event

    def end(self, address: Address) -> None:
        """Show nothing more of what is being said at an address."""
        for shown in self._shown.values():
            if shown.address == address:
                shown.over.set()

    async def settled(self, delivery: Delivery) -> Delivery:
        """A delivery with the message that it is to take the place of, once nothing of it is on its way any more."""
        shown = next((each for turn, each in self._shown.items() if turn == delivery.turn or _shows(each, delivery)), None)
        if shown is None or shown.task is None:
            return delivery
        shown.over.set()
        await asyncio.wait((shown.task,))
        return replace(delivery, preview_ref=shown.ref) if _shows(shown, delivery) else delivery

    async def close(self) -> None:
        """Let what is on its way arrive, and show nothing more."""
        tasks = [shown.task for shown in self._shown.values() if shown.task]
        for shown in self._shown.values():
            shown.over.set()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, turn: str, shown: _Shown) -> None:
        try:
            every = self._transports[shown.address.transport].capabilities.edit_every_s
            await _passed(shown.over, min(FIRST_AFTER, every))
            while not shown.over.is_set():
                with unless_lasting():
                    await self._look(turn, shown)
                await _passed(shown.over, every)
        finally:
            del self._shown[turn]

    async def _look(self, turn: str, shown: _Shown) -> None:
        """Show the newest words, where the platform takes them now."""
        event, name = shown.waiting, shown.address.transport
        if event is None or not event.text.strip() or name not in self._transports or not self._paces[name].is_free(shown.address):
            return
        shown.waiting = None
        if len(event.text) > LONGEST_PREVIEW:
            return
        if shown.draft is None and not await self._drafted(turn, shown):
            return
        if shown.draft is not None:
            known = shown.ref
            shown.ref = await self._hinted(event, shown, shown.draft, self._transports[name], self._paces[name])
            if shown.ref and shown.ref != known:
                await self._store.previewed(shown.draft.id, shown.ref)

    async def _drafted(self, turn: str, shown: _Shown) -> bool:
        """Whether the reply has its row, and may still be shown."""
        draft = shown.draft = await self._store.draft(turn, self._time.wall())
        if draft is None:
            shown.over.set()
            return False
        shown.ref = draft.preview_ref if draft.repeat else None  # else it was made just now, and nothing was posted yet
        if shown.over.is_set() and shown.ref is None:
            await self._store.previewed(draft.id, None)
        return not shown.over.is_set()

    async def _hinted(self, event: Preview, shown: _Shown, draft: Delivery, transport: Transport, pace: Pace) -> str | None:
        """The message that shows these words now, as `_Shown.ref`."""
        parts = transport.parts(event.text)
        event = replace(event, text=parts[-1].text, ref=shown.ref or None, id=draft.id, context=draft.context)
        await pace.turn()
        try:
            async with asyncio.timeout(ANSWER):
                return await transport.hint(shown.address, event) or shown.ref
        except Retry as asked:
            pace.rest(shown.address, asked)
            return shown.ref
        except Refused as why:
            shown.over.set()
            log.debug("hint.lost", transport=shown.address.transport, err=str(why))
            return shown.ref
        except Exception as error:
            log.debug("hint.lost", transport=shown.address.transport, err=f"{type(error).__name__}: {error}")
            if not (shown.ref or transport.capabilities.idempotent_send):
                shown.over.set()  # it may stand there: another one would stand beside it
            return shown.ref or ""


def _shows(shown: _Shown, delivery: Delivery) -> bool:
    return shown.draft is not None and shown.draft.id == delivery.id


async def _passed(over: asyncio.Event, seconds: float) -> None:
    """Wait until so much time has passed or it is over."""
    try:
        async with asyncio.timeout(seconds):
            await over.wait()
    except TimeoutError:
        pass
