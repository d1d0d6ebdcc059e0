"""Whom the web room lets in: names it answers to, logins, wrong tokens."""

import pytest

from clew.config import Config
from clew.web.auth import ALL_TRIES, PEERS, TRIES, TRIES_SECONDS, Tries, allowed_hosts, is_local, network


class Steady:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def config(**http: object) -> Config:
    return Config.model_validate({"http": http})


def test_loopback_names_and_the_address_reached_are_ours_and_no_others() -> None:
    assert allowed_hosts(config(), "127.0.0.1", 8130) == {"localhost:8130", "127.0.0.1:8130", "[::1]:8130"}


def test_a_wildcard_host_is_no_name_but_the_address_reached_is() -> None:
    hosts = allowed_hosts(config(host="0.0.0.0", token="t"), "192.168.1.5", 8130)
    assert "192.168.1.5:8130" in hosts
    assert "0.0.0.0:8130" not in hosts
    assert "rebound.example:8130" not in hosts


def test_the_public_url_is_a_name_of_ours() -> None:
    hosts = allowed_hosts(config(public_url="https://Chat.example.org/clew"), "127.0.0.1", 8130)
    assert "chat.example.org" in hosts


def test_browsers_leave_port_80_out() -> None:
    assert "localhost" in allowed_hosts(config(), "127.0.0.1", 80)


def test_a_peer_may_be_wrong_a_number_of_times_then_has_to_wait() -> None:
    steady = Steady()
    tries = Tries(steady)
    for _ in range(TRIES):
        assert tries.wait("peer") == 0
        tries.failed("peer")
    assert tries.wait("peer") == TRIES_SECONDS
    assert tries.wait("another") == 0
    steady.now = TRIES_SECONDS
    assert tries.wait("peer") == 0
    tries.failed("peer")
    assert tries.wait("peer") == 0


def test_the_table_of_wrong_tokens_is_bounded() -> None:
    tries = Tries(Steady())
    for peer in range(PEERS + 10):
        tries.failed(str(peer))
    assert list(tries._seen) == [str(peer) for peer in range(10, PEERS + 10)]


def test_wrong_tokens_of_many_peers_are_counted_together() -> None:
    steady = Steady()
    tries = Tries(steady)
    for number in range(ALL_TRIES):
        assert tries.wait("another") == 0
        tries.failed(f"192.0.2.{number}")
    assert tries.wait("another") == TRIES_SECONDS
    steady.now = TRIES_SECONDS
    assert tries.wait("another") == 0


@pytest.mark.parametrize(
    ("peer", "counted"),
    [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1%eth0", "2001:db8:1:2::/64"),
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "::ffff:c000:207"),
        ("", ""),
        ("no address", "no address"),
    ],
)
def test_whoever_has_a_network_is_one_peer(peer: str, counted: str) -> None:
    assert network(peer) == counted


@pytest.mark.parametrize(("peer", "local"), [("127.0.0.1", True), ("::1", True), ("127.8.0.1", True), ("10.0.0.1", False), ("", False)])
def test_loopback_peers(peer: str, local: bool) -> None:
    assert is_local(peer) is local
