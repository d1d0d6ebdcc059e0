"""The page that a link of /export opens, and the thread behind its button."""

import json

from aiohttp import web

from clew.service import Service
from clew.web.wire import Problem

PAGE = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
  <meta name="color-scheme" content="light dark">
  <meta name="robots" content="noindex">
  <title>Your conversation · clew</title>
  <link rel="icon" href="/static/icon.svg" type="image/svg+xml">
  <link rel="stylesheet" href="/static/style.css">
</head>
<body>
  <main class="login linked">
    <form method="post">
      <img src="/static/icon.svg" alt="" width="48" height="48">
      <h1>Your conversation</h1>
      <p>This link gives you a conversation with clew as a file, once. <code>clew session import</code> reads it back.</p>
      <button type="submit" class="primary">Fetch the file</button>
      <p class="hint">It works within an hour. Whoever has the link has the file.</p>
    </form>
  </main>
</body>
</html>
"""
GONE = "This link gives nothing (any more)."


class Exports:
    """Whoever only looks at the page (a preview of the link, say) uses nothing up: its button does. The link alone lets in."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def mount(self, app: web.Application) -> None:
        app.router.add_get("/export/{secret}", self.page)
        app.router.add_post("/export/{secret}", self.fetch)

    async def page(self, request: web.Request) -> web.Response:
        return web.Response(text=PAGE, content_type="text/html")

    async def fetch(self, request: web.Request) -> web.Response:
        store = self._service.store
        session = await store.redeem_export(request.match_info["secret"], self._service.time.wall())
        if session is None:
            raise Problem(404, GONE, "It works once and for an hour. Ask for another: /export")
        body = json.dumps(await store.export_session(session), ensure_ascii=False, indent=1) + "\n"
        name = f'attachment; filename="clew-{session}.json"'
        return web.Response(text=body, content_type="application/json", headers={"Content-Disposition": name})
