"""The console's page of the config: what counts, what its file says now, and taking that over."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict

from clew.config import Config as Settings
from clew.config import Difference, Source, Value, differences, notes, values
from clew.errors import ConfigError, Finding
from clew.service import FIXED
from clew.web.auth import Caller
from clew.web.console.frame import Frame, form, redirect

PATH = "/console/config"


class Press(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    do: Literal["reload"]


@dataclass(frozen=True, slots=True)
class Section:
    """A key at the top of the config with all that stands below it. given: how many of its values the file has."""

    name: str
    values: Sequence[Value]
    given: int


@dataclass(frozen=True, slots=True)
class OnDisk:
    """What the file says now.

    file: None where there is none. findings, error: what is wrong with it. notes: what is doubtful or has no effect. changed: what it has
    otherwise than the config that counts; restart: those of it that need a restart.
    """

    file: Path | None = None
    findings: Sequence[Finding] = ()
    error: str = ""
    notes: Sequence[str] = ()
    changed: Sequence[Difference] = ()
    restart: Sequence[Difference] = ()
    sections: Sequence[Section] = field(default=())


class Config:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._service = frame.service

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, PATH, self.config)
        self._frame.post(app, PATH, self.press)

    async def config(self, request: web.Request, caller: Caller) -> web.Response:
        service = self._service
        now = self._frame.now
        found = await asyncio.to_thread(on_disk, service.source, service.config, now, service.zone)
        return await self._frame.drawn(request, "config.html", disk=found, reloads=service.source is not None, now=now)

    async def press(self, request: web.Request, caller: Caller) -> web.Response:
        await form(request, Press)
        with suppress(ConfigError):  # the page shows what is wrong
            await self._service.reread()
        return redirect(PATH)


def on_disk(source: Source | None, config: Settings, now: float, zone: str) -> OnDisk:
    """The file as it is now, beside the config that counts."""
    if source is None:
        return OnDisk(sections=_sections(values(config)))
    file = None
    try:
        file = source.file()
        there, origins = source.read(), source.origins()
    except ConfigError as error:
        text = "" if error.findings else error.told
        return OnDisk(file, error.findings, text, sections=_sections(values(config)))
    unlike = differences(config, there)
    return OnDisk(
        file,
        notes=[*(str(each) for each in there.warnings), *notes(there, now, zone)],
        changed=[each for each in unlike if each.section not in FIXED],
        restart=[each for each in unlike if each.section in FIXED],
        sections=_sections(values(config, origins)),
    )


def _sections(found: Sequence[Value]) -> list[Section]:
    grouped = ((name, list(each)) for name, each in groupby(found, lambda value: value.section))
    return [Section(name, each, sum(value.origin is not None for value in each)) for name, each in grouped]
