"""The one aiohttp app: chat page, console, WebSocket, API, webhooks, monitoring."""

from pathlib import Path
from typing import TypeVar

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from pydantic import BaseModel, ConfigDict, Field

from clew.assembly import owner_of
from clew.errors import ClewError
from clew.service import Service
from clew.web import console
from clew.web.api import Api
from clew.web.auth import Door
from clew.web.chat import ChatSockets
from clew.web.exports import Exports
from clew.web.files import Files
from clew.web.logins import LASTS, is_secure
from clew.web.wire import Problem, answer, problem_of, read_model

STATIC = Path(__file__).parent / "static"
WEBHOOK_BYTES = 4 * 2**20
"""The longest body of a webhook."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
        " base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "clew",
}

OPEN = ("/healthz", "/readyz", "/webhooks/")
"""Paths that are asked by monitors and platforms, under any name."""

log = structlog.get_logger()

Asked = TypeVar("Asked", bound=BaseModel)


class LoginBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    token: str = Field(max_length=4096)


class LinkBody(BaseModel):
    """link: what stands behind `#` in it."""

    model_config = ConfigDict(extra="forbid")

    link: str = Field(max_length=100)


def build(service: Service) -> web.Application:
    """The app of `service`."""
    door = Door(service.config, service.store, service.time)
    app = web.Application(middlewares=[_guard(door)], client_max_size=WEBHOOK_BYTES)
    app.on_response_prepare.append(_add_headers)
    Monitoring(service, door).mount(app)
    Api(service, door).mount(app)
    app.router.add_route("*", "/webhooks/{name}{tail:(/.*)?}", Webhooks(service).handle)
    sockets = ChatSockets(service, door)
    app.router.add_get("/chat/ws", sockets.handle)
    app.on_shutdown.append(lambda _: sockets.close())
    if "web" in service.transports:
        Page(service, door).mount(app)
        Files(service, door).mount(app)
        Exports(service).mount(app)
        console.mount(service, door, app)
    return app


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"


def _guard(door: Door) -> Middleware:
    """Turns away what is not meant for us, and makes every error JSON."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            reason = "" if request.path.startswith(OPEN) else door.refusal(request)
            if reason:
                raise Problem(403, reason)
            await door.meet(request)
            return await handler(request)
        except Problem as problem:
            return problem.response()
        except ClewError as error:
            return problem_of(error).response()
        except web.HTTPException as error:
            if error.status < 400:
                raise
            allowed = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
            return Problem(error.status, error.reason, headers=allowed).response()
        except Exception as error:
            log.exception("web.failed", path=request.path, err=repr(error))
            return Problem(500, "Something went wrong inside clew.", "The daemon's log says more.").response()

    return guard


class Page:
    """The chat page and its login."""

    def __init__(self, service: Service, door: Door) -> None:
        self._service = service
        self._door = door
        self._files = {path.name: path for path in STATIC.iterdir() if path.is_file()}
        self._secure = is_secure(service.config)

    def mount(self, app: web.Application) -> None:
        app.router.add_get("/", self.index)
        app.router.add_get("/static/{name}", self.static)
        app.router.add_get("/login", self.greeting)
        app.router.add_post("/login", self.login)
        app.router.add_get("/login/link", self.linked)
        app.router.add_post("/login/link", self.login_by_link)
        app.router.add_post("/logout", self.logout)

    async def index(self, request: web.Request) -> web.FileResponse:
        return self._file("index.html")

    async def static(self, request: web.Request) -> web.FileResponse:
        name = request.match_info["name"]
        if name not in self._files:
            raise Problem(404, "There is no such file.")
        return self._file(name)

    def _file(self, name: str) -> web.FileResponse:
        return web.FileResponse(self._files[name], headers={"Cache-Control": "no-cache"})

    async def greeting(self, request: web.Request) -> web.Response:
        """What the page has to know before it connects."""
        caller = self._door.caller(request)
        return await answer(
            {
                "login": caller is None,
                "logged_in": self._door.token_needed,
                "name": caller.visitor.called if caller and caller.visitor else "",
                "console": caller is not None and caller.owner,
                "message_bytes": self._service.config.limits.message_bytes,
                "attachment_bytes": self._service.config.limits.attachment_bytes,
            }
        )

    async def linked(self, request: web.Request) -> web.FileResponse:
        """The page that a login link opens. Whoever only looks at it uses nothing up: its button does."""
        return self._file("link.html")

    async def login(self, request: web.Request) -> web.Response:
        body = await self._asked(request, LoginBody)
        if not self._door.knows(body.token.strip(), request.remote or ""):
            raise Problem(401, "That is not the token.", "It is the value of http.token in the config.")
        secret = await self._door.logins.by_token(owner_of(self._service.config), request.headers.get("User-Agent", ""))
        return await self._let_in(request, secret, {"login": False})

    async def login_by_link(self, request: web.Request) -> web.Response:
        if not self._door.token_needed:
            raise Problem(403, "Nobody logs in here: http.token is not set, and the page is this machine's alone.")
        body = await self._asked(request, LinkBody)
        begun = await self._door.logins.by_link(body.link, request.headers.get("User-Agent", ""))
        if begun is None:
            self._door.tries.failed(request.remote or "")
            raise Problem(401, "This link logs nobody in (any more).", "It works once and for ten minutes. Ask for another: /login")
        return await self._let_in(request, begun[0], {"login": False, "name": begun[1]})

    async def _asked(self, request: web.Request, model: type[Asked]) -> Asked:
        """What is sent to log in. Raises Problem, too where a peer was wrong too often."""
        wait = self._door.tries.wait(request.remote or "")
        if wait:
            retry = {"Retry-After": str(int(wait) + 1)}
            raise Problem(429, "Too many wrong tokens came from here.", f"Try again in {int(wait / 60) + 1} minutes.", retry)
        if request.content_type != "application/json":
            raise Problem(400, "The body's type must be application/json.")
        return await read_model(request, model)

    async def _let_in(self, request: web.Request, secret: str, told: dict[str, object]) -> web.Response:
        """A browser that is logged in; what it was logged in as before is over."""
        await self._end(request)
        log.info("web.login", peer=request.remote or "")
        response = await answer(told)
        response.set_cookie(self._door.cookie, secret, max_age=LASTS, httponly=True, samesite="Strict", secure=self._secure)
        return response

    async def logout(self, request: web.Request) -> web.Response:
        await self._end(request)
        response = await answer({"login": True})
        response.del_cookie(self._door.cookie, httponly=True, samesite="Strict", secure=self._secure)
        return response

    async def _end(self, request: web.Request) -> None:
        caller = self._door.caller(request) if request.cookies.get(self._door.cookie) else None
        if caller is not None and caller.visitor is not None:
            await self._service.store.end_logins(login=caller.visitor.login)


class Monitoring:
    """What supervisors and Prometheus ask."""

    def __init__(self, service: Service, door: Door) -> None:
        self._service = service
        self._door = door

    def mount(self, app: web.Application) -> None:
        app.router.add_get("/healthz", self.health)
        app.router.add_get("/readyz", self.ready)
        app.router.add_get("/metrics", self.metrics)

    async def health(self, request: web.Request) -> web.Response:
        return await answer({"ok": True})

    async def ready(self, request: web.Request) -> web.Response:
        reasons = await self._service.readiness()
        return await answer({"ready": not reasons, "reasons": reasons}, status=503 if reasons else 200)

    async def metrics(self, request: web.Request) -> web.Response:
        self._door.owner(request)
        metrics = self._service.metrics
        return web.Response(body=metrics.render(), headers={"Content-Type": metrics.content_type})


class Webhooks:
    """Calls of platforms, handed to the transport they name. Transports come and go, so it is looked up at each call."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def handle(self, request: web.Request) -> web.StreamResponse:
        running = self._service.transports.get(request.match_info["name"])
        routes = running.transport.routes() if running else ()
        here = [route for route in routes if route.path in (request.match_info["tail"], request.match_info["tail"] or "/")]
        if not here:
            raise Problem(404, "No transport listens here.")
        for route in here:
            if route.method in (request.method, "*"):
                return await route.handler(request)
        raise Problem(405, "This transport does not take that method.", headers={"Allow": ", ".join(route.method for route in here)})
