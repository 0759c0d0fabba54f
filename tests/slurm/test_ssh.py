"""SSH and SFTP into a session with stock clients, in an image that has not even a C library."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.slurm.conftest import MakeApi
from tests.support.apps import Terminal
from tests.support.client import Api, Json
from tests.support.cluster import Cluster
from tests.support.ssh_access import SshClient, client_of, open_ssh, run_program

BARE: Json = {"environment": "busybox", "resources": {"cpus": 1, "memory": "300m"}}
BIG = 100 * 1024 * 1024
ECHO = """\
import socket
stream = socket.create_server(("127.0.0.1", 18765)).accept()[0]
while data := stream.recv(1000):
    stream.sendall(data)
"""


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def bare(researcher: Api) -> Json:
    """A running session without a C library, shared by the tests here."""
    return researcher.running(**BARE)


@pytest.fixture(scope="module")
def client(researcher: Api, bare: Json, tmp_path_factory: pytest.TempPathFactory) -> SshClient:
    """Alice's computer."""
    endpoint = open_ssh(researcher, bare["id"])
    return client_of(researcher, endpoint, tmp_path_factory.mktemp("alice"))


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random file of 100 MB, which cannot be compressed."""
    file = tmp_path_factory.mktemp("files") / "big"
    file.write_bytes(os.urandom(BIG))
    return file


def test_the_image_has_no_c_library(researcher: Api, bare: Json) -> None:
    window = Terminal(researcher.open(bare["id"], "terminal"))
    found = window.run("ls -d /lib /lib64 /usr/lib /usr/bin/python3; ls -l /proc/self/exe; tmux ls")
    window.close()
    assert "/bin/busybox" in found
    assert found.count("No such file or directory") == 4
    assert "main" in found


def test_a_command_its_environment_and_its_exit_code(client: SshClient) -> None:
    done = client.ssh("id -un; echo $HOME $SHELL; echo $PATH; cat; exit 7", stdin=b"from here")
    user, places, path, stdin = done.stdout.decode().splitlines()
    assert (user, places, stdin) == ("alice", "/home/alice /bin/sh", "from here")
    assert path.endswith(":/opt/slipway/user/bin")
    assert done.returncode == 7
    # As an editor does to set itself up: a script on standard input of a shell.
    done = client.ssh("sh", stdin=b"uname; [ -t 0 ] || echo no terminal\n")
    assert done.stdout == b"Linux\nno terminal\n"


def test_a_terminal(client: SshClient) -> None:
    argv = client.argv("tty; exit 3")
    argv.insert(1, "-tt")
    done = run_program(argv)
    assert b"/dev/pts/" in done.stdout
    assert done.returncode == 3


def test_the_host_key_is_the_one_shown(client: SshClient, tmp_path: Path) -> None:
    # ssh-keyscan waits for the server to begin, and the portal for the client.
    seen = tmp_path / "seen"
    client.ssh("true", UserKnownHostsFile=seen, StrictHostKeyChecking="accept-new")
    shown = run_program(["ssh-keygen", "-l", "-f", str(seen)]).stdout.decode()
    assert client.endpoint["fingerprint"] in shown.split()
    # A client that expects another key is warned.
    other = tmp_path / "other"
    run_program(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)])
    known = tmp_path / "known_hosts"
    known.write_text(f"{client.endpoint['host_key_alias']} {other.with_suffix('.pub').read_text()}")
    assert client.ssh("true", UserKnownHostsFile=known).returncode == 255


def test_files_of_100_mb_both_ways(client: SshClient, big: Path, tmp_path: Path) -> None:
    client.copy(str(big), f"{client.there}by-sftp")  # current scp uses SFTP
    client.copy("-O", f"{client.there}by-sftp", str(tmp_path / "old-way"))
    assert digest(tmp_path / "old-way") == digest(big)
    assert client.ssh("rm by-sftp").returncode == 0


def test_sftp_and_rsync(client: SshClient, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(20):
        (folder / f"größe {number}").write_bytes(os.urandom(50_000))
    shell = " ".join(client.argv()[:-1])
    back = tmp_path / "back"
    for source, target in ((f"{folder}/", f"{client.there}kept/"), (f"{client.there}kept/", back)):
        done = run_program(["rsync", "-a", "-e", shell, str(source), str(target)])
        assert done.returncode == 0, done.stderr
    assert [digest(back / file.name) for file in folder.iterdir()] == [
        digest(file) for file in folder.iterdir()
    ]
    batch = b"mkdir made\nrename kept made/kept\nls -1 made\n"
    done = run_program(
        ["sftp", "-F", "none", "-b", "-", *client.options(), client.endpoint["host"]], batch
    )
    assert done.stdout.decode().splitlines()[-1] == "made/kept", done
    assert client.ssh("ls made/kept | wc -l").stdout.strip() == b"20"


def test_ports_are_forwarded_to_the_node_and_not_opened_to_others(client: SshClient) -> None:
    # As VS Code Remote needs: a server on loopback in the session, and -L or -D to it.
    server = f"/opt/slipway/bin/python -IS -c '{ECHO}'"
    listens = "netstat -ltn | grep -q 127.0.0.1:18765"
    argv = client.argv(f"{server} & until {listens}; do sleep 0.1; done; echo up; sleep 30")
    port = free_port()
    argv[1:1] = ["-L", f"127.0.0.1:{port}:127.0.0.1:18765"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            with socket.create_connection(("127.0.0.1", port), 10) as stream:
                stream.sendall(b"through and back\n")
                assert stream.recv(100) == b"through and back\n"
        finally:
            process.kill()
    # In the other direction, a listening port on the node's network is refused.
    argv = client.argv("netstat -ltn", ExitOnForwardFailure="yes")
    argv[1:1] = ["-R", f"0.0.0.0:18766:127.0.0.1:{port}"]
    assert b"0.0.0.0:18766" not in run_program(argv).stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_ten_at_once(client: SshClient) -> None:
    output: list[bytes] = []
    threads = [
        threading.Thread(target=lambda n=n: output.append(client.ssh(f"sleep 1; echo {n}").stdout))
        for n in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(output) == sorted(f"{n}\n".encode() for n in range(10))


def test_only_the_owners_key_is_accepted(
    client: SshClient, make_api: MakeApi, tmp_path: Path, cluster: Cluster
) -> None:
    run_program(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "wrong")])
    bobs = make_api("bob").ask("POST", "/me/id_container")["private_key"]
    (tmp_path / "bobs").touch(0o600)
    (tmp_path / "bobs").write_text(bobs)
    for key in ("wrong", "bobs"):
        for user in ("alice", "bob", "root"):
            done = client.ssh("id", IdentityFile=tmp_path / key, User=user)
            assert (done.returncode, done.stdout) == (255, b""), (key, user)
            assert b"Permission denied (publickey)" in done.stderr
    done = client.ssh("id", PubkeyAuthentication="no", PreferredAuthentications="password")
    assert done.returncode == 255
    for user in ("bob", "root"):
        assert client.ssh("id", User=user).returncode == 255


def test_the_server_is_not_reachable_on_the_node(
    cluster: Cluster, researcher: Api, bare: Json, client: SshClient
) -> None:
    node = researcher.get(bare["id"])["node"]
    sockets = cluster.shell(node, "grep -o '[/@][^ ]*$' /proc/net/unix | grep ssh.sock | sort -u")
    assert sockets
    ports = set(cluster.shell(node, "ss -Htln | awk '{print $4}' | sed 's/.*://'").split())
    assert ports
    for address in [f"-U {path}" for path in sockets.split()] + [f"127.0.0.1 {p}" for p in ports]:
        output = cluster.shell(
            node, f"timeout 2 nc -w1 {address} 2>&1 </dev/null", "bob", check=False
        )
        assert "SSH-" not in output, address
    files = "/home/alice/.slipway/*/id_container /home/alice/.slipway/ssh/*"
    assert not cluster.shell("login", f"cat {files}", user="bob", check=False)


@contextmanager
def held(client: SshClient) -> Iterator[subprocess.Popen[bytes]]:
    """An established connection."""
    argv = client.argv("echo inside; sleep 600")
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"inside\n"
            yield process
        finally:
            process.kill()


def test_a_new_key_replaces_the_old_one(
    researcher: Api, client: SshClient, bare: Json, tmp_path: Path
) -> None:
    old = (client.folder / "id_container").read_text()
    assert client.ssh("true").returncode == 0
    key = researcher.ask("POST", "/me/id_container", json={"new": True})["private_key"]
    assert key != old
    assert client.ssh("true").returncode == 255
    (client.folder / "id_container").write_text(key)
    assert client.ssh("true").returncode == 0


def test_closing_cuts_and_reopening_keeps_the_host_key(
    researcher: Api, client: SshClient, bare: Json
) -> None:
    with held(client) as process:
        assert researcher("DELETE", f"/sessions/{bare['id']}/apps/ssh").status_code == 204
        assert process.wait(10) == 255
    assert client.ssh("true").returncode == 255
    again = open_ssh(researcher, bare["id"])
    assert again == client.endpoint
    assert client.ssh("true").returncode == 0


def test_ending_the_session_cuts(researcher: Api, client: SshClient, bare: Json) -> None:
    with held(client) as process:
        researcher.stop(bare["id"])
        assert process.wait(15) == 255
    assert client.ssh("true").returncode == 255
