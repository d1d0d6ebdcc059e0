import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.sdnotify import notify, watchdog_interval


@pytest.fixture
def manager() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        yield sock


def test_assignments_arrive_as_one_datagram(manager: socket.socket, tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    manager.bind(path)
    assert notify("READY=1", "STATUS=8 chats, grüezi", environ={"NOTIFY_SOCKET": path})
    assert manager.recv(4096) == "READY=1\nSTATUS=8 chats, grüezi".encode()


def test_abstract_socket(manager: socket.socket) -> None:
    name = f"clew-test-{os.getpid()}"
    manager.bind("\0" + name)
    assert notify("WATCHDOG=1", environ={"NOTIFY_SOCKET": "@" + name})
    assert manager.recv(4096) == b"WATCHDOG=1"


def test_a_text_cannot_add_an_assignment(manager: socket.socket, tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    manager.bind(path)
    notify("STATUS=one\nSTOPPING=1\r\nMAINPID=1", environ={"NOTIFY_SOCKET": path})
    assert manager.recv(4096) == b"STATUS=one STOPPING=1 MAINPID=1"


def test_a_lone_surrogate_does_not_raise(manager: socket.socket, tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    manager.bind(path)
    assert notify("STATUS=\ud800", environ={"NOTIFY_SOCKET": path})
    assert manager.recv(4096) == b"STATUS=?"


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1234"}])
def test_without_a_socket_nothing_happens(environ: dict[str, str]) -> None:
    assert not notify("READY=1", environ=environ)


def test_a_manager_that_is_gone_is_no_error(tmp_path: Path) -> None:
    assert not notify("READY=1", environ={"NOTIFY_SOCKET": str(tmp_path / "nobody")})


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"WATCHDOG_USEC": "60000000"}, 30.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_watchdog_interval(environ: dict[str, str], expected: float | None) -> None:
    assert watchdog_interval(environ) == expected
