"""SSH and SFTP into a session with stock clients, in an image that has not even a C library."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.slurm.conftest import MakeApi
from tests.support.apps import Terminal
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for

BARE: Json = {"environment": "busybox", "resources": {"cpus": 1, "memory": "300m"}}
Done = subprocess.CompletedProcess[bytes]
BIG = 100 * 1024 * 1024
ECHO = """\
import socket
stream = socket.create_server(("127.0.0.1", 18765)).accept()[0]
while data := stream.recv(1000):
    stream.sendall(data)
"""


@dataclass
class Client:
    """A user's computer: stock OpenSSH, a key, and the host key from the portal."""

    folder: Path
    endpoint: Json

    def options(self, **more: object) -> list[str]:
        """Options common to all of OpenSSH's programs."""
        settings = {
            "IdentityFile": self.folder / "id_container",
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": self.folder / "known_hosts",
            "StrictHostKeyChecking": "yes",
            "HostKeyAlias": self.endpoint["host_key_alias"],
            "BatchMode": "yes",
            "Port": self.endpoint["port"],
            "User": self.endpoint["user"],
            "LogLevel": "ERROR",
        } | more
        return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]

    def argv(self, *command: str, **more: object) -> list[str]:
        """The argv of an ssh command."""
        return ["ssh", "-F", "none", *self.options(**more), str(self.endpoint["host"]), *command]

    def ssh(self, *command: str, stdin: bytes = b"", **more: object) -> Done:
        """Run a command in the session."""
        return run(self.argv(*command, **more), stdin)

    def copy(self, *words: str) -> None:
        """Run scp."""
        done = run(["scp", "-F", "none", *self.options(), *words])
        assert done.returncode == 0, done.stderr

    @property
    def there(self) -> str:
        """The session's home, as scp and rsync write it."""
        return f"{self.endpoint['host']}:"


def run(argv: list[str], stdin: bytes = b"") -> Done:
    """Run a program on this computer."""
    return subprocess.run(argv, input=stdin, capture_output=True, timeout=120, check=False)


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def opened(api: Api, session: str) -> Json:
    """Open SSH access and wait until the server is ready."""
    api.ask("POST", f"/sessions/{session}/apps/ssh")

    def ready() -> Json | None:
        endpoint = api.ask("GET", f"/sessions/{session}/ssh")
        assert endpoint["state"] not in ("failed", "stopped"), endpoint
        return endpoint if endpoint["state"] == "ready" and endpoint["host_key"] else None

    return wait_for("the SSH server", ready, 30)


def client_of(api: Api, endpoint: Json, folder: Path) -> Client:
    """A computer with the user's own key, which knows the host key."""
    folder.mkdir(exist_ok=True)
    key = api.ask("POST", "/me/id_container")["private_key"]
    (folder / "id_container").touch(0o600)
    (folder / "id_container").write_text(key)
    (folder / "known_hosts").write_text(f"{endpoint['host_key_alias']} {endpoint['host_key']}\n")
    return Client(folder, endpoint)


@pytest.fixture(scope="module")
def bare(researcher: Api) -> Json:
    """A running session without a C library, shared by the tests here."""
    return researcher.running(**BARE)


@pytest.fixture(scope="module")
def client(researcher: Api, bare: Json, tmp_path_factory: pytest.TempPathFactory) -> Client:
    """Alice's computer."""
    endpoint = opened(researcher, bare["id"])
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


def test_a_command_its_environment_and_its_exit_code(client: Client) -> None:
    done = client.ssh("id -un; echo $HOME $SHELL; echo $PATH; cat; exit 7", stdin=b"from here")
    user, places, path, stdin = done.stdout.decode().splitlines()
    assert (user, places, stdin) == ("alice", "/home/alice /bin/sh", "from here")
    assert path.endswith(":/opt/slipway/user/bin")
    assert done.returncode == 7
    # As an editor does to set itself up: a script on standard input of a shell.
    done = client.ssh("sh", stdin=b"uname; [ -t 0 ] || echo no terminal\n")
    assert done.stdout == b"Linux\nno terminal\n"


def test_a_terminal(client: Client) -> None:
    argv = client.argv("tty; exit 3")
    argv.insert(1, "-tt")
    done = run(argv)
    assert b"/dev/pts/" in done.stdout
    assert done.returncode == 3


def test_the_host_key_is_the_one_shown(client: Client, tmp_path: Path) -> None:
    # ssh-keyscan waits for the server to begin, and the portal for the client.
    seen = tmp_path / "seen"
    client.ssh("true", UserKnownHostsFile=seen, StrictHostKeyChecking="accept-new")
    shown = run(["ssh-keygen", "-l", "-f", str(seen)]).stdout.decode()
    assert client.endpoint["fingerprint"] in shown.split()
    # A client that expects another key is warned.
    other = tmp_path / "other"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)])
    known = tmp_path / "known_hosts"
    known.write_text(f"{client.endpoint['host_key_alias']} {other.with_suffix('.pub').read_text()}")
    assert client.ssh("true", UserKnownHostsFile=known).returncode == 255


def test_files_of_100_mb_both_ways(client: Client, big: Path, tmp_path: Path) -> None:
    client.copy(str(big), f"{client.there}by-sftp")  # current scp uses SFTP
    client.copy("-O", f"{client.there}by-sftp", str(tmp_path / "old-way"))
    assert digest(tmp_path / "old-way") == digest(big)
    assert client.ssh("rm by-sftp").returncode == 0


def test_sftp_and_rsync(client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(20):
        (folder / f"größe {number}").write_bytes(os.urandom(50_000))
    shell = " ".join(client.argv()[:-1])
    back = tmp_path / "back"
    for source, target in ((f"{folder}/", f"{client.there}kept/"), (f"{client.there}kept/", back)):
        done = run(["rsync", "-a", "-e", shell, str(source), str(target)])
        assert done.returncode == 0, done.stderr
    assert [digest(back / file.name) for file in folder.iterdir()] == [
        digest(file) for file in folder.iterdir()
    ]
    batch = b"mkdir made\nrename kept made/kept\nls -1 made\n"
    done = run(["sftp", "-F", "none", "-b", "-", *client.options(), client.endpoint["host"]], batch)
    assert done.stdout.decode().splitlines()[-1] == "made/kept", done
    assert client.ssh("ls made/kept | wc -l").stdout.strip() == b"20"


def test_ports_are_forwarded_to_the_node_and_not_opened_to_others(client: Client) -> None:
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
    assert b"0.0.0.0:18766" not in run(argv).stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_ten_at_once(client: Client) -> None:
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
    client: Client, make_api: MakeApi, tmp_path: Path, cluster: Cluster
) -> None:
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "wrong")])
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
    cluster: Cluster, researcher: Api, bare: Json, client: Client
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
def held(client: Client) -> Iterator[subprocess.Popen[bytes]]:
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
    researcher: Api, client: Client, bare: Json, tmp_path: Path
) -> None:
    old = (client.folder / "id_container").read_text()
    assert client.ssh("true").returncode == 0
    key = researcher.ask("POST", "/me/id_container", json={"new": True})["private_key"]
    assert key != old
    assert client.ssh("true").returncode == 255
    (client.folder / "id_container").write_text(key)
    assert client.ssh("true").returncode == 0


def test_closing_cuts_and_reopening_keeps_the_host_key(
    researcher: Api, client: Client, bare: Json
) -> None:
    with held(client) as process:
        assert researcher("DELETE", f"/sessions/{bare['id']}/apps/ssh").status_code == 204
        assert process.wait(10) == 255
    assert client.ssh("true").returncode == 255
    again = opened(researcher, bare["id"])
    assert again == client.endpoint
    assert client.ssh("true").returncode == 0


def test_ending_the_session_cuts(researcher: Api, client: Client, bare: Json) -> None:
    with held(client) as process:
        researcher.stop(bare["id"])
        assert process.wait(15) == 255
    assert client.ssh("true").returncode == 255
