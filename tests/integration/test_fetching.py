"""Fetching from the web: what is public comes, and nothing inside the network is reached, whoever writes the address."""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from clew.fetching import LONGEST_URL, MOST_REDIRECTS, Fetched, Fetcher, IpAddress, NotFetched, is_public, is_url

PUBLIC = ipaddress.ip_address("127.0.0.2")
"""Stands for the public Internet in these tests; every other address of this machine is inside, as ever."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Names:
    """A name server: what each host is, look-up by look-up, the last answer for ever."""

    def __init__(self, hosts: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._hosts = {host: list(answers) for host, answers in hosts.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        answers = self._hosts.get(host)
        if answers is None:
            raise OSError(f"no such host: {host}")
        return answers.pop(0) if len(answers) > 1 else answers[0]


def allowed(address: IpAddress) -> bool:
    return address == PUBLIC or is_public(address)


@asynccontextmanager
async def server(handler: Handler, host: str = "127.0.0.2", port: int = 0) -> AsyncIterator[int]:
    """A web server at an address of this machine. Yields its port."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def fetcher(hosts: Mapping[str, Sequence[Sequence[str]]] | None = None) -> tuple[Fetcher, Names]:
    names = Names(hosts or {"site.test": [["127.0.0.2"]]})
    return Fetcher(names, allowed), names


async def refused(url: str, hosts: Mapping[str, Sequence[Sequence[str]]] | None = None, most: int = 1000, patience: float = 30.0) -> str:
    with pytest.raises(NotFetched) as error:
        await fetcher(hosts)[0].fetch(url, most, patience)
    return error.value.message


async def words(request: web.Request) -> web.StreamResponse:
    return web.Response(text="Roses want water.", content_type="text/plain")


@pytest.mark.asyncio
async def test_a_page_comes_with_its_type_and_its_place() -> None:  # P41
    seen: list[web.Request] = []

    async def page(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        if request.path == "/old":
            raise web.HTTPFound("/new?x=1")
        return web.Response(body="Grüße".encode("latin-1"), headers={"Content-Type": "TEXT/HTML; charset=iso-8859-1", "Set-Cookie": "a=b"})

    async with server(page) as port:
        found = await fetcher()[0].fetch(f"http://site.test:{port}/old#part", 1000)
    assert found == Fetched(f"http://site.test:{port}/new?x=1", "text/html", "iso-8859-1", "Grüße".encode("latin-1"))
    assert [each.headers["Host"] for each in seen] == [f"site.test:{port}"] * 2
    assert not any(name in each.headers for each in seen for name in ("Cookie", "Authorization", "Referer"))


INSIDE = [
    "127.0.0.1",
    "localhost",
    "2130706433",
    "0x7f000001",
    "017700000001",
    "127.1",
    "0",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:10.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[fe80::1]",
    "[fe80::1%25lo]",
    "[fc00::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
]


@pytest.mark.asyncio
@pytest.mark.parametrize("host", INSIDE)
async def test_no_address_inside_the_network_is_reached_however_it_is_written(host: str) -> None:  # P41
    met: list[str] = []

    async def page(request: web.Request) -> web.StreamResponse:
        met.append(request.path)
        return web.Response(text="secret")

    async with server(page, "127.0.0.1") as port:
        with pytest.raises(NotFetched):
            await Fetcher().fetch(f"http://{host}:{port}/", 1000)
    assert met == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:{port}/", "//127.0.0.1:{port}/", "http://inside.test:{port}/", "http://[::ffff:7f00:1]:{port}/"]
)
async def test_a_redirect_leads_nowhere_inside(target: str) -> None:  # P41
    met: list[str] = []

    async def inside(request: web.Request) -> web.StreamResponse:
        met.append(request.path)
        return web.Response(text="secret")

    async with server(inside, "127.0.0.1") as port:

        async def leading(request: web.Request) -> web.StreamResponse:
            raise web.HTTPFound(target.format(port=port))

        async with server(leading) as front:
            said = await refused(f"http://site.test:{front}/", {"site.test": [["127.0.0.2"]], "inside.test": [["127.0.0.1"]]})
    assert "no host of the public Internet" in said
    assert met == []


@pytest.mark.asyncio
async def test_a_name_that_becomes_another_address_after_it_was_judged_changes_nothing() -> None:  # P41
    met: list[str] = []

    async def inside(request: web.Request) -> web.StreamResponse:
        met.append(request.path)
        return web.Response(text="secret")

    async with server(words) as port, server(inside, "127.0.0.1", port):
        reaching, names = fetcher({"site.test": [["127.0.0.2"], ["127.0.0.1"]]})
        assert (await reaching.fetch(f"http://site.test:{port}/", 1000)).body == b"Roses want water."
        assert names.asked == ["site.test"]
        # Asked again it is judged again.
        with pytest.raises(NotFetched, match="no host of the public"):
            await reaching.fetch(f"http://site.test:{port}/", 1000)
    assert met == []
    # One address inside among others is enough.
    assert "no host of the public" in await refused("http://site.test/", {"site.test": [["93.184.215.14", "127.0.0.1"]]})
    assert "no host of the public" in await refused("http://site.test/", {"site.test": [["::ffff:10.0.0.1"]]})
    assert "there is no host" in await refused("http://site.test/", {"site.test": [[]]})
    assert "could not be fetched" in await refused("http://other.test/")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://site.test/", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("javascript:alert(1)", "only http and https"),
        ("//site.test/", "only http and https"),
        ("http:///path", "no address of the web"),
        ("http://site.test:99999/", "no address of the web"),
        ("http://ada:secret@site.test/", "a user or a password"),
        ("http://site.test/" + "x" * LONGEST_URL, "more than 2,000 characters"),
        ("", "only http and https"),
    ],
)
async def test_what_is_no_address_of_the_web_is_refused(url: str, said: str) -> None:
    message = await refused(url)
    assert said in message
    assert "secret" not in message


@pytest.mark.asyncio
async def test_redirects_to_other_schemes_and_without_end_are_refused() -> None:  # P41
    async def leading(request: web.Request) -> web.StreamResponse:
        place = {"/file": "file:///etc/passwd", "/user": "http://ada:secret@site.test/", "/odd": "http://[oops/"}
        return web.Response(status=302, headers={"Location": place.get(request.path, request.path + "x")})

    async with server(leading) as port:
        base = f"http://site.test:{port}"
        assert f"more than {MOST_REDIRECTS} times" in await refused(f"{base}/loop")
        assert "only http and https" in await refused(f"{base}/file")
        assert "a user or a password" in await refused(f"{base}/user")
        assert "could not be fetched" in await refused(f"{base}/odd")


@pytest.mark.asyncio
async def test_size_and_time_are_bounded() -> None:  # P41
    released = asyncio.Event()

    async def page(request: web.Request) -> web.StreamResponse:
        match request.path:
            case "/declared":
                return web.Response(body=bytes(1001))
            case "/packed":
                return web.Response(body=b"x", headers={"Content-Encoding": "gzip"})
            case "/missing":
                return web.Response(status=404, text="secret")
        response = web.StreamResponse()
        await response.prepare(request)
        while not released.is_set():
            await response.write(b"x" * 100)
            if request.path == "/slow":
                await released.wait()
        return response

    async with server(page) as port:
        base = f"http://site.test:{port}"
        for path in ("/declared", "/endless"):
            assert "is larger than" in await refused(base + path)
        assert "an encoding that was not asked for" in await refused(f"{base}/packed")
        assert "answered with status 404" in await refused(f"{base}/missing?key=secret")
        assert "secret" not in await refused(f"{base}/missing?key=secret")
        assert "did not answer within 0 seconds" in await refused(f"{base}/slow", patience=0.3)
        released.set()


@given(st.ip_addresses(v=4))
def test_an_address_in_ipv6_clothes_is_judged_as_what_it_is(address: ipaddress.IPv4Address) -> None:  # P41
    assert is_public(ipaddress.ip_address(f"::ffff:{address}")) == is_public(address)
    assert is_public(ipaddress.IPv6Address(int(ipaddress.ip_address("64:ff9b::")) + int(address))) == is_public(address)
    assert not is_public(ipaddress.ip_address(f"::{address}"))
    assert not (is_public(address) and (address.is_private or address.is_loopback or address.is_link_local or address.is_multicast))


def test_public_hosts_are_public() -> None:
    for each in ("93.184.215.14", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"):
        assert is_public(ipaddress.ip_address(each))
    assert is_url("HTTPS://site.test")
    assert is_url("file:///etc/passwd"), "which is then refused as an address"
    assert not is_url("/home/ada/http.md")
