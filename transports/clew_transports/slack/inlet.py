"""One door for all that Slack tells: by socket, by request, by history. Stored before anybody is told that it arrived."""

import asyncio
import contextlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from clew.transport import Host, Inbound
from clew_transports.buttons import Presses
from clew_transports.calls import Unanswered, Unreached
from clew_transports.reading import Malformed
from clew_transports.slack.api import Api, Refusal
from clew_transports.slack.events import Reader, of_payload, people_in
from clew_transports.slack.history import missed
from clew_transports.slack.people import Names
from clew_transports.slack.place import Place, order

FIRST_S = 1.0
"""Seconds, from the end of a gap, for which what comes then waits for what was missed, so that a conversation keeps its order. It is to be
acknowledged within three."""
LAG_S = 600
"""Seconds by which the place that is stored may lie behind, where nothing of what came was for clew."""
LONGEST_PAUSE_S = 60.0

log = structlog.get_logger()


class Inlet:
    """Reads for `reader.bot`. place: where an earlier process was, a new one for another bot. now: Slack's time, as a `ts`. presses:
    of buttons, to be answered. shared: other daemons take events too. leads: it is this one that reads what was missed at a start, and
    notes how far everything is read."""

    def __init__(
        self,
        host: Host,
        api: Api,
        reader: Reader,
        place: Place,
        now: str,
        first_pause: float,
        presses: Presses,
        *,
        shared: bool = False,
        leads: bool = True,
    ) -> None:
        self._host = host
        self._api = api
        self._reader = reader
        self._is_new = place.bot != str(reader.bot)
        self._place = Place(str(reader.bot), now, now) if self._is_new else place
        self._first_pause = first_pause
        self._presses = presses
        self._shared = shared
        self._leads = leads
        self._names = Names(api)
        self._alone = asyncio.Lock()
        self._gap = asyncio.Event()
        self._whole = asyncio.Event()
        self._whole.set()
        self._waits_until = 0.0

    def missed_some(self) -> None:
        """Something may have been said that was not told."""
        if self._is_new:
            self._is_new = False
            return
        if self._whole.is_set():
            self._waits_until = asyncio.get_running_loop().time() + FIRST_S
        self._whole.clear()
        self._gap.set()

    async def begin(self) -> None:
        """Store where clew begins, if it is new here. Raises what `Host.accept` raises."""
        if self._is_new:
            await self._host.accept([], self._place.onto)

    async def payload(self, payload: Any) -> None:
        """Store what is in a payload of the Events API, or of a button that was pressed. Raises what `Host.accept` raises."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._waits_until):
                await self._whole.wait()
        try:
            if (event := of_payload(payload, self._reader.bot.team)) is not None:
                await self._store([event])
        except Malformed as reason:
            log.warning("inbox.rejected", transport=self._reader.name, reason=str(reason))

    async def run(self) -> None:
        """Read what was missed, whenever something may have been, until cancelled."""
        pause = self._first_pause
        while True:
            await self._gap.wait()
            self._gap.clear()
            try:
                async for events in missed(self._api, self._place):
                    await self._store(events)
            except (Refusal, Unreached, Unanswered) as why:
                log.warning("inbox.rejected", transport=self._reader.name, reason=f"what was missed cannot be read yet: {why}")
                self._gap.set()
                await asyncio.sleep(pause * random.uniform(0.75, 1.0))  # noqa: S311 - it keeps clients apart, no secret
                pause = min(2 * pause, LONGEST_PAUSE_S)
                continue
            pause = self._first_pause
            if not self._gap.is_set():
                self._whole.set()

    async def _store(self, events: Sequence[Mapping[str, Any]]) -> None:
        async with self._alone:
            self._place = await self._stored()
            place, meant = self._place, []
            for event in events:
                inbound, place = self._read(event, place, {})
                if inbound:
                    meant.append(event)
            # Only now: of what is not for clew nobody's name is asked.
            people = dict.fromkeys(user for event in meant for user in people_in(event) if user != self._reader.bot.user)
            names = await self._names.of(list(people))
            batch = [inbound for event in meant if (inbound := self._read(event, place, names)[0])]
            # As long as something is missing the place stays where it is missing from.
            reached = place.read(_newest(events, place)) if self._leads and self._whole.is_set() else place
            stored = self._place
            worth = batch or place.threads != stored.threads or place.channels != stored.channels
            if worth or order(reached.since)[0] - order(stored.since)[0] > LAG_S:
                self._presses.answer(batch, await self._host.accept(batch, reached.onto if self._shared else str(reached)))
                self._place = reached

    async def _stored(self) -> Place:
        """Where to go on from."""
        stored = Place.load(await self._host.cursor()) if self._shared else self._place
        return replace(stored if stored.bot == self._place.bot else self._place, spoken=())

    def _read(self, event: Mapping[str, Any], place: Place, names: Mapping[str, str]) -> tuple[Inbound | None, Place]:
        try:
            return self._reader.read(event, place, names)
        except Malformed as reason:
            log.warning("inbox.rejected", transport=self._reader.name, reason=str(reason))
            return None, place


def _newest(events: Sequence[Mapping[str, Any]], place: Place) -> str:
    """The ts of the newest of `events`, or where `place` is."""
    newest = place.since
    for event in events:
        with contextlib.suppress(ValueError):
            ts = str(event.get("event_ts") or event.get("ts"))
            newest = ts if order(ts) > order(newest) else newest
    return newest
