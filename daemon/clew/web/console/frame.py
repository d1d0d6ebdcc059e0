"""What all pages of the console have in common: who may, how they are drawn, forms, paging. Complete without a script."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl, quote, urlencode
from zoneinfo import ZoneInfo

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel

from clew import booking
from clew.context.redact import redact
from clew.errors import ClewError
from clew.service import Service
from clew.web.auth import Caller, Door, from_own_page
from clew.web.wire import BODY_BYTES, Problem, checked, problem_of, read_body

TEMPLATES = Path(__file__).parents[1] / "templates"
FORM = "application/x-www-form-urlencoded"
FORM_FIELDS = 8

Model = TypeVar("Model", bound=BaseModel)
Draw = Callable[[web.Request, Caller], Awaitable[web.StreamResponse]]


class Page(Protocol):
    """One page of the console, with those that belong to it."""

    def __init__(self, frame: "Frame") -> None: ...

    def mount(self, app: web.Application) -> None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the navigation. page: None where the path is served elsewhere."""

    name: str
    path: str
    page: type[Page] | None

    def holds(self, path: str) -> bool:
        """Whether a page at `path` belongs here, were there no longer path that holds it too."""
        return path == self.path or path.startswith(self.path + "/")


@dataclass(frozen=True, slots=True)
class Paging:
    """Which page of a list is shown. number: from 1. size: entries on a page. total: of all."""

    number: int
    size: int
    total: int

    @property
    def last(self) -> int:
        return max(1, -(-self.total // self.size))

    @property
    def start(self) -> int:
        """Entries in front of this page."""
        return (self.number - 1) * self.size


class Frame:
    """What a page is made with. service: what it shows and asks."""

    def __init__(self, service: Service, door: Door, places: Sequence[Place]) -> None:
        self.service = service
        self.store = service.store
        self._door = door
        self._places = places

    @cached_property
    def _templates(self) -> Environment:
        """Read when the first page is drawn: many a daemon never draws one."""
        made = Environment(
            loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        made.globals |= {"iso": booking.iso, "moment": moment, "link": link, "told": self.told}
        made.globals["ui"] = made.get_template("ui.html").module
        return made

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self.service.time.wall()

    def told(self, text: str) -> str:
        """`text` without secrets of the config and what looks like a credential."""
        return redact(text, known=self.service.config.secrets())

    def get(self, app: web.Application, path: str, draw: Draw) -> None:
        """Serve a page that reads, for the owner alone."""
        app.router.add_get(path, self._guarded(draw))

    def post(self, app: web.Application, path: str, act: Draw) -> None:
        """Serve a form that changes something, for the owner alone and from a page of the console alone."""

        async def own(request: web.Request, caller: Caller) -> web.StreamResponse:
            from_own_page(request)
            return await act(request, caller)

        app.router.add_post(path, self._guarded(own))

    def _guarded(self, draw: Draw) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                return await draw(request, self._door.owner(request))
            except (Problem, ClewError) as error:
                problem = error if isinstance(error, Problem) else problem_of(error)
                return await self.drawn(request, "problem.html", problem.status, problem=problem)

        return handle

    async def drawn(self, request: web.Request, template: str, status: int = 200, **values: Any) -> web.Response:
        """The page `template`, or only the part of it that htmx asks for: the block with the name of the element that it is put into.

        values: of the template, which also knows `zone`, `path` and `part`, the block that is drawn alone or "".
        """
        values |= {"zone": self.service.zone, "places": self._places, "here": self._here(request.path), "path": request.path}
        target = request.headers.get("HX-Target", "") if request.headers.get("HX-Request") == "true" else ""
        text = await asyncio.to_thread(self._render, template, target, values)
        # A lone surrogate, which nothing can show, becomes a question mark.
        return web.Response(body=text.encode("utf-8", "replace"), status=status, content_type="text/html", charset="utf-8")

    def _render(self, name: str, part: str, values: dict[str, Any]) -> str:
        template = self._templates.get_template(name)
        if part in template.blocks:
            return "".join(template.blocks[part](template.new_context(values | {"part": part})))
        return template.render(values, part="")

    def _here(self, path: str) -> Place | None:
        return max((each for each in self._places if each.holds(path)), key=lambda each: len(each.path), default=None)


def redirect(to: str) -> web.Response:
    """Where a browser goes on after a form."""
    return web.Response(status=303, headers={"Location": to})


async def form(request: web.Request, model: type[Model], fields: int = FORM_FIELDS) -> Model:
    """The form that was sent, as `model`. fields: the most that it may have. Raises Problem."""
    if request.content_type != FORM:
        raise Problem(400, f"The body's type must be {FORM}.")
    body = await read_body(request, BODY_BYTES)
    try:
        given = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=fields)
    except ValueError:
        raise Problem(400, "The form has too many fields.") from None
    return checked(model, dict(given))


def link(path: str, **query: Any) -> str:
    """A path with its query, of which None and "" are left out. Names of people's things belong there: one may be `..`."""
    given = {name: str(value) for name, value in query.items() if value not in (None, "")}
    return path + ("?" + urlencode(given, errors="replace", quote_via=quote) if given else "")


def moment(at: float, zone: str) -> str:
    """A time for people, in its zone: Tue 1 Dec 2026, 08:30 +01:00; with seconds where it has some."""
    there = datetime.fromtimestamp(int(at), ZoneInfo(zone))
    clock = f"{there:%H:%M:%S}" if there.second else f"{there:%H:%M}"
    return f"{there:%a} {there.day} {there:%b} {there.year}, {clock} {there.isoformat()[-6:]}"
