"""MCP servers that keep to no rule cost a line in the log and a call, never the daemon."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from clew.config import McpServer
from clew.tools import Tool, ToolError
from clew.tools.limited_http import LONGEST_ANSWER, Limited
from clew.tools.runner import STORED_CHARS
from clew.tools.servers import Servers
from tests.integration.engine import DEADLINE_S, context_of
from tests.integration.test_engine_mcp import until

PROGRAM = Path(__file__).with_name("hostile_mcp_server.py")


@asynccontextmanager
async def serving(mode: str, **more: Any) -> AsyncIterator[Servers]:
    servers = Servers(lambda: None)
    try:
        await servers.use({"evil": McpServer(command=(sys.executable, str(PROGRAM), mode), **more)})
        yield servers
    finally:
        await servers.close()


async def go(servers: Servers) -> str:
    """What its tool answers, or why it does not."""
    await until(lambda: bool(servers.tools()))
    tool: Tool = servers.tools()[0]
    try:
        return await tool.run(context_of(), tool.Arguments())
    except ToolError as error:
        return str(error)


@pytest.mark.asyncio
async def test_a_call_without_an_answer_in_time_has_an_unknown_outcome() -> None:
    async with serving("hang", timeout=1.0) as servers:
        assert (await go(servers)).startswith("The MCP server evil gave no answer within 1 seconds. Whether it took effect is unknown")


@pytest.mark.asyncio
async def test_a_line_without_end_ends_the_connection_and_the_server_is_tried_again() -> None:
    with capture_logs() as logs:
        async with serving("long line") as servers:
            assert "Whether it took effect is unknown" in await go(servers)
            await until(lambda: any("a line of more than 16 MiB" in str(line.get("err")) for line in logs))
            connected = sum(line["event"] == "mcp.connected" for line in logs)
            await until(lambda: sum(line["event"] == "mcp.connected" for line in logs) > connected)


@pytest.mark.asyncio
async def test_of_a_long_answer_both_ends_are_quoted() -> None:
    async with serving("much") as servers:
        said = await go(servers)
        assert "> head" in said
        assert said.endswith("tail")
        assert "more characters were not stored" in said
        assert len(said) < STORED_CHARS


@pytest.mark.asyncio
async def test_lines_that_are_no_message_are_passed_over() -> None:
    with capture_logs() as logs:
        async with serving("not well") as servers:
            assert (await go(servers)).endswith("> well")
        assert not [line for line in logs if "a line of the log" in str(line)]


@pytest.mark.asyncio
async def test_what_a_server_started_ends_with_it() -> None:
    async with serving("children") as servers:
        child = int((await go(servers)).rpartition("> ")[2])
        assert Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"sleep")
    await until(lambda: ended(child))


def ended(process: int) -> bool:
    """Whether a process is gone, or only not seen to."""
    try:
        return ") Z " in Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return True


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("mode", "told"), [("flood", [("more than 100 tools", 2900)]), ("names", [("named twice", 1), ("no name that providers take", 1)])]
)
async def test_tools_that_are_left_out_cost_a_line_for_each_reason(mode: str, told: list[tuple[str, int]]) -> None:
    with capture_logs() as logs:
        async with serving(mode) as servers:
            await until(lambda: bool(servers.tools()))
            assert len(servers.tools()) <= 100
            assert "⟦" not in servers.tools()[0].foreign
            assert "\\u202e" not in servers.tools()[0].foreign
            assert "\u202e" not in servers.tools()[0].foreign
    left_out = [line for line in logs if line["event"] == "mcp.tool_left_out"]
    assert sorted((line["err"], line["count"]) for line in left_out) == sorted(told)


@pytest.mark.asyncio
async def test_a_server_that_is_never_of_use_is_tried_more_and_more_rarely() -> None:
    with capture_logs() as logs:
        async with serving("no list"):
            await until(lambda: sum(line["event"] == "mcp.disconnected" for line in logs) >= 3)
    waits = [line["wait"] for line in logs if line["event"] == "mcp.disconnected"]
    assert waits[2] > 1.5 * waits[0]
    assert all(len(line["err"]) <= 300 and "\n" not in line["err"] for line in logs if line["event"] == "mcp.disconnected")


@asynccontextmanager
async def answering(response: Any) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/", response)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


@pytest.mark.asyncio
async def test_an_answer_over_http_is_bounded_and_comes_unpacked() -> None:
    asked: list[str] = []

    async def respond(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers["Accept-Encoding"])
        if "packed" in request.query:
            return web.Response(body=b"x", headers={"Content-Encoding": "gzip"})
        return web.Response(body=b"x" * int(request.query["size"]), content_type=request.query["type"])

    async with asyncio.timeout(DEADLINE_S), answering(respond) as url, httpx2.AsyncClient(transport=Limited()) as client:
        assert len((await client.get(f"{url}?type=application/json&size=1000")).content) == 1000
        with pytest.raises(httpx2.ReadError, match="more than 16 MiB"):
            await client.get(f"{url}?type=application/json&size={LONGEST_ANSWER + 1}")
        with pytest.raises(httpx2.ReadError, match="not asked for"):
            await client.get(f"{url}?packed=1")
        assert len((await client.get(f"{url}?type=text/event-stream&size={LONGEST_ANSWER + 1}")).content) == LONGEST_ANSWER + 1
    assert set(asked) == {"identity"}
