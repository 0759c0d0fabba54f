"""Several login nodes: real SSH servers on loopback addresses, which run commands and fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import paramiko
import pytest

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.ssh.accounts import LoginNodeAccounts
from portal.adapters.ssh.hosts import HostOrder
from portal.adapters.ssh.login.passwords import PasswordCheck
from portal.adapters.ssh.transport import SshTransport
from portal.config import LoginSettings
from portal.core.auth.accounts import Account
from portal.errors import OutcomeUnknown, Unavailable
from tests.support.ssh_server import PASSWORD, Node

HOSTS = ("127.0.0.1", "127.0.0.2")


class Site:
    """Two login nodes, and the portal's ways to them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._stack = stack
        self.key = paramiko.ECDSAKey.generate()
        self.first = self.start(HOSTS[0], 0)
        self.port = self.first.port
        self.second = self.start(HOSTS[1], self.port)
        known = folder / "known_hosts"
        line = f"{self.key.get_name()} {self.key.get_base64()}\n"
        known.write_text("".join(f"[{host}]:{self.port} {line}" for host in HOSTS))
        prepare_authorities(folder, "portal")
        self.settings = LoginSettings.model_validate(
            {"hosts": list(HOSTS), "port": self.port, "known_hosts": str(known), "minimum_uid": 0}
        )
        self.answering: set[str] = set()
        self.go = threading.Event()
        self.hosts = HostOrder(HOSTS, self.port, self._look, self._pause)
        stack.callback(self.go.set)
        authority = CertificateAuthority(folder)
        self.transport = SshTransport(self.settings, authority, hosts=self.hosts)
        self.accounts = LoginNodeAccounts(self.settings, authority, self.transport, self.hosts)
        self.password = PasswordCheck(self.settings, lambda u: Account(u, 2000), self.hosts)

    def start(self, host: str, port: int) -> Node:
        """A login node at this address."""
        node = Node(host, port, self.key)
        self._stack.callback(node.close)
        return node

    def _look(self, host: str, port: int) -> bool:
        assert port == self.port
        return host in self.answering

    def _pause(self, seconds: float) -> None:
        assert seconds > 1
        self.go.wait(10)
        time.sleep(0.01)

    def run(self, *argv: str) -> str:
        """The output of a command of the reader's."""
        return self.transport.run("slipway", list(argv)).stdout.decode().strip()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(tmp_path, stack)


def until(true: Callable[[], bool]) -> None:
    """Wait until it is true."""
    deadline = time.monotonic() + 5
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_first_that_answers_is_used_until_it_goes_and_again_when_it_is_back(site: Site) -> None:
    assert site.run("echo", "one") == "one"
    assert (site.first.count("one"), site.second.ran) == (1, [])
    site.first.close()
    until(lambda: not site.transport._pool._connections["slipway"].transport.is_active())
    assert site.run("echo", "two") == "two"
    assert site.second.count("two") == 1
    again = site.start(HOSTS[0], site.port)
    assert site.run("echo", "three") == "three"
    assert again.tried == []  # nobody waits to find out whether it is back
    site.answering.add(HOSTS[0])
    site.go.set()
    until(lambda: site.hosts.candidates() == list(HOSTS))
    assert site.run("echo", "four") == "four"
    assert (again.count("four"), site.second.count("four")) == (1, 0)


def test_a_command_is_never_sent_twice(site: Site) -> None:
    """sbatch would submit a second job."""
    site.first.breaks_off = True
    with pytest.raises((OutcomeUnknown, Unavailable)) as caught:
        site.run("sbatch", "--parsable")
    assert isinstance(caught.value, OutcomeUnknown)
    assert (site.first.count("sbatch"), site.second.count("sbatch")) == (1, 0)


def test_a_connection_that_fails_before_anything_is_sent_goes_to_the_next(site: Site) -> None:
    site.first.close()
    assert site.run("echo", "sbatch") == "sbatch"
    assert site.second.count("sbatch") == 1


def test_another_host_key_at_the_first_is_not_trusted(site: Site) -> None:
    site.first.close()
    stranger = Node(HOSTS[0], site.port, paramiko.ECDSAKey.generate())
    try:
        assert site.run("echo", "x") == "x"
        assert site.password("alice", PASSWORD) == "alice"
        assert stranger.tried == stranger.ran == []
    finally:
        stranger.close()


def test_if_none_answers_that_is_said(site: Site) -> None:
    site.first.close()
    site.second.close()
    with pytest.raises(Unavailable, match="does not answer"):
        site.run("true")
    with pytest.raises(Unavailable, match="nobody can log in"):
        site.password("alice", PASSWORD)
    site.start(HOSTS[0], site.port)
    assert site.run("echo", "back") == "back"


def test_a_node_that_refuses_the_portals_account_is_left_out(site: Site) -> None:
    site.first.refused.add("slipway")
    assert site.run("echo", "x") == "x"
    assert site.hosts.candidates() == list(reversed(HOSTS))
    assert (site.first.ran, site.second.count("x")) == ([], 1)


def test_a_wrong_password_is_tried_once(site: Site) -> None:
    assert site.password("alice", "wrong") == ""
    assert (site.first.tried, site.second.tried) == (["password"], [])


def test_an_account_is_judged_by_one_login_node(site: Site) -> None:
    assert site.accounts.standing("alice").may_log_in
    site.first.refused.add("alice")
    assert not site.accounts.standing("alice").may_log_in
    site.first.refused.add("slipway")  # everybody is refused, as in maintenance
    with pytest.raises(Unavailable, match="certificates"):
        site.accounts.standing("alice")
    assert site.accounts.standing("alice").may_log_in  # at the second


def test_one_login_node_is_always_tried() -> None:
    alone = HostOrder(["login"], 22)
    alone.failed("login")
    assert alone.candidates() == ["login"]


@pytest.mark.parametrize("data", [{"hosts": ["a", "b"]}, {"hosts": ["a", "b"], "host": "a"}])
def test_settings_of_several(data: dict[str, object]) -> None:
    settings = LoginSettings.model_validate(data)
    assert (settings.host, settings.all_hosts) == ("a", ("a", "b"))
    assert settings.at("b").all_hosts == ("b",)
    with pytest.raises(ValueError, match="exclude each other"):
        LoginSettings.model_validate(data | {"host": "c"})
