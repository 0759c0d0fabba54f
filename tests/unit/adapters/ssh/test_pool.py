"""How many connections to the login node there are; over real SSH, as accounts of this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import paramiko
import pytest

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.ssh import pool
from portal.adapters.ssh.pool import MOST_ON_HOST
from portal.adapters.ssh.transport import SshTransport
from portal.config import LoginSettings, Settings
from portal.config.web import WebSettings
from portal.wiring import ssh_connections_of_process
from tests.support.cluster import wait_for
from tests.support.ssh_server import Node, login_settings

USERS = ("daemon", "bin", "sys", "games", "man", "mail", "news", "backup")


class Login:
    """A login node, and one process's way to it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        key = paramiko.ECDSAKey.generate()
        self.node = Node("127.0.0.1", 0, key)
        stack.callback(self.node.close)
        prepare_authorities(folder, "portal")
        settings = login_settings(folder, self.node.port, [key])
        self._settings = settings.model_copy(update={"minimum_uid": 0})
        self._authority = CertificateAuthority(folder)

    def transport(self, most: int) -> SshTransport:
        return SshTransport(self._settings, self._authority, most=most)

    def logins(self, user: str) -> int:
        return self.node.tried.count(user)


@pytest.fixture
def login(tmp_path: Path) -> Iterator[Login]:
    with ExitStack() as stack:
        yield Login(tmp_path, stack)


def test_unused_connections_end_without_further_commands_but_for_the_readers(
    login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool.ConnectionPool.__init__, "__defaults__", (MOST_ON_HOST, 0.4))
    transport = login.transport(MOST_ON_HOST)
    for user in USERS[:3]:
        assert transport.run(user, ["true"]).code == 0
    wait_for("connections", lambda: login.node.connections() == 1)
    # What begins before that and takes longer is not ended.
    assert transport.run(USERS[0], ["sh", "-c", "sleep 1; echo done"]).stdout == b"done\n"
    wait_for("connections", lambda: login.node.connections() == 1)
    assert transport.run("slipway", ["true"]).code == 0
    assert [login.logins(user) for user in ("slipway", *USERS[:3])] == [1, 2, 1, 1]


def test_beyond_the_bound_the_least_recently_used_ends_and_nobody_is_refused(login: Login) -> None:
    transport = login.transport(4)  # the reader's is one of them
    for user in USERS:
        assert transport.run(user, ["true"]).code == 0
        wait_for("connections", lambda: login.node.connections() <= 4)
    for user in USERS[-3:]:
        assert transport.run(user, ["true"]).code == 0
    assert [login.logins(user) for user in USERS] == [1] * len(USERS)
    assert transport.run(USERS[0], ["true"]).code == 0
    assert login.logins(USERS[0]) == 2


def test_connections_in_use_may_be_more_and_are_not_ended(login: Login, tmp_path: Path) -> None:
    transport, go = login.transport(2), tmp_path / "go"
    wait = ["sh", "-c", f"until test -e {go}; do sleep 0.05; done; echo done"]
    with ThreadPoolExecutor(len(USERS)) as threads:
        running = [threads.submit(transport.run, user, wait) for user in USERS]
        wait_for("connections", lambda: login.node.connections() == len(USERS) + 1)
        go.touch()
        assert [each.result().stdout for each in running] == [b"done\n"] * len(USERS)
    wait_for("connections", lambda: login.node.connections() <= 2)


def test_no_command_fails_and_no_connection_is_left_while_others_are_closed(login: Login) -> None:
    transport, failures = login.transport(2), []

    def commands(number: int) -> None:
        for turn in range(6):
            if transport.run(USERS[(number + turn) % 4], ["true"], seconds=10).code != 0:
                failures.append(number)

    threads = [threading.Thread(target=commands, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    wait_for("connections", lambda: login.node.connections() <= 2)


@pytest.mark.parametrize("workers", [1, 2, 16, 64])
def test_all_processes_of_a_host_share_the_bound(workers: int) -> None:
    web = WebSettings.model_validate({"workers": workers})
    most = ssh_connections_of_process(Settings.model_construct(web=web, login=LoginSettings()))
    assert most == pool.LEAST_OF_PROCESS or most * (workers + 1) <= MOST_ON_HOST
    apart = LoginSettings(files_host="files.example.org")
    halved = ssh_connections_of_process(Settings.model_construct(web=web, login=apart))
    assert halved == max(most // 2, pool.LEAST_OF_PROCESS), "the files host has the other half"
