"""What tests of the console's pages have in common: a page as a browser gets it, a form as one sends it."""

from collections.abc import Mapping
from typing import Any

from tests.integration.web_harness import Clew

OWN = {"Sec-Fetch-Site": "same-origin"}
"""What a browser says of a form of clew's own page."""
HOSTILE = '<img src=x onerror="hacked()">\'&'


async def seen(clew: Clew, path: str, status: int = 200, **options: Any) -> str:
    """The page at `path`, which is answered with `status`."""
    async with clew.http.get(clew.url + path, **options) as response:
        assert (response.status, response.content_type) == (status, "text/html")
        return await response.text()


async def sent(clew: Clew, path: str, headers: Mapping[str, str] = OWN, **fields: object) -> tuple[int, str]:
    """What the form at `path` is answered with: its status, and where it leads or, where it leads nowhere, the page."""
    data = {name: str(value) for name, value in fields.items()}
    async with clew.http.post(clew.url + path, data=data, headers=headers, allow_redirects=False) as response:
        return response.status, response.headers.get("Location", "") or await response.text()
