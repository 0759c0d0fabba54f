"""Attacks on files: by other users' credentials, on the files host, and by files' contents."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import pytest

from tests.browser.conftest import LogIn
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for
from tests.support.cluster_file_servers import (
    PORTAL_KEY,
    end_file_servers,
    file_server_port,
    send_request,
)

SECRET = "alice's own words"


@pytest.fixture(autouse=True)
def hers(cluster: Cluster) -> Iterator[None]:
    """A private storage folder of alice's with a file, and no file servers from before."""
    script = f"mkdir -p ~/storage/private && echo {SECRET!r} > ~/storage/private/words.txt"
    cluster.shell("login", script, user="alice")
    yield
    cluster.shell("login", "rm -rf ~/storage/private", user="alice")


def test_bob_reaches_nothing_of_alices(cluster: Cluster, alice: Api, bob: Api) -> None:
    assert SECRET in send_request(alice, "GET", "/data/files/storage/private/words.txt").text
    nowhere = send_request(bob, "GET", "/data/files/shared/nobody/private/words.txt")
    for path in ("shared/alice/private/words.txt", "storage/private/words.txt"):
        answer = send_request(bob, "GET", f"/data/files/{path}")
        assert (answer.status_code, answer.json()["detail"]) == (404, nowhere.json()["detail"])
        assert send_request(bob, "PUT", f"/data/files/{path}", data=b"x").status_code == 404
    for path in ("home/../alice/storage/private", "home/%2e%2e/alice", "storage/..%2f..%2falice"):
        answer = send_request(bob, "GET", f"/data/files/{path}/words.txt")
        assert answer.status_code in (404, 422), path
        assert SECRET not in answer.text
    for action in ("list", "entry", "usage", "search"):
        answer = bob("GET", f"/files/{action}/shared/alice/private", params={"text": "w"}
                     if action == "search" else {})  # fmt: skip
        assert answer.status_code == 404, action
    assert send_request(alice, "GET", "/data/files/storage/private/words.txt").text == f"{SECRET}\n"


def test_nobody_connects_past_the_portal(cluster: Cluster, alice: Api) -> None:
    """Bob on the login node knows alice's port, and has no certificate of the portal's."""
    send_request(alice, "GET", "/data/files/home/")
    port = file_server_port(cluster, "alice")
    assert port
    script = (
        f"{PORTAL_KEY}; for own in '' '-cert c -key k'; do "
        "printf 'GET /v1/list/home HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' | timeout 5 "
        f"openssl s_client -quiet -connect 127.0.0.1:{port} $own 2>&1; done; "
        f"printf 'GET /v1/list/home HTTP/1.0\\r\\n\\r\\n' | timeout 5 "
        f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; cat >&3; cat <&3'"
    )
    seen = cluster.shell("login", f"cd $(mktemp -d) && {{ {script}; }}", user="bob", check=False)
    assert "entries" not in seen
    assert "storage" not in seen


def test_bob_in_the_place_of_her_server_learns_nothing(cluster: Cluster, alice: Api) -> None:
    """Her server is killed and bob takes its port, with a certificate of his own."""
    assert alice("GET", "/files/list/storage").status_code == 200
    port = file_server_port(cluster, "alice")
    end_file_servers(cluster, "alice")
    trap = (
        "import socket, ssl, sys\n"
        "context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain('c', 'k')\n"
        "listener = socket.create_server(('', PORT))\n"
        "print('ready', flush=True)\n"
        "listener.settimeout(15)\n"
        "while True:\n"
        "    try:\n"
        "        stream = context.wrap_socket(listener.accept()[0], server_side=True)\n"
        "        print('GOT', stream.recv(999), flush=True)\n"
        "    except (TimeoutError, StopIteration):\n"
        "        break\n"
        "    except OSError as error:\n"
        "        print(type(error).__name__, flush=True)\n"
    ).replace("PORT", str(port))
    cluster.shell("login", f"cd ~ && {PORTAL_KEY}; cat > trap.py <<'E'\n{trap}\nE", user="bob")
    cluster.shell("login", "cd ~; setsid python3 trap.py > seen.txt 2>&1 < /dev/null &", user="bob")
    wait_for("the trap", lambda: "ready" in cluster.shell("login", "cat ~/seen.txt", user="bob"))
    try:
        assert alice("GET", "/files/list/storage").status_code == 200
        answer = send_request(alice, "GET", "/data/files/storage/private/words.txt")
        assert answer.text == f"{SECRET}\n"
        seen = cluster.shell("login", "cat ~/seen.txt", user="bob")
        assert "Error" in seen, "somebody met the trap"
        assert "GOT" not in seen
    finally:
        clean = "pkill -u bob -f trap.py; rm -f ~/trap.py ~/seen.txt ~/k ~/c"
        cluster.shell("login", clean, user="bob", check=False)


def test_a_folder_in_her_place_does_not_stop_her_server(cluster: Cluster, alice: Api) -> None:
    uid = cluster.shell("login", "id -u alice").strip()
    end_file_servers(cluster, "alice")
    cluster.shell("login", f"rm -rf /tmp/slipway-{uid}")
    cluster.shell("login", f"mkdir /tmp/slipway-{uid}", user="bob")
    try:
        assert alice("GET", "/files/list/storage").status_code == 200
    finally:
        cluster.shell("login", f"rmdir /tmp/slipway-{uid}", user="bob")


def test_the_process_shows_no_secret(cluster: Cluster, alice: Api) -> None:
    assert alice("GET", "/files/list/storage").status_code == 200
    script = "for p in $(pgrep -f '[f]ile-server'); do tr '\\0' ' ' < /proc/$p/cmdline; done"
    words = cluster.shell("login", script, user="bob")
    assert "file-server" in words
    assert "BEGIN" not in words
    script = "for p in $(pgrep -u alice -f '[f]ile-server'); do cat /proc/$p/environ; done"
    assert "PRIVATE" not in cluster.shell("login", script, check=False)
    # Apart from the user's own key for sessions.
    left = "grep -rls 'PRIVATE KEY' /tmp /run/user ~/.slipway 2>/dev/null | grep -v /key/ || true"
    assert cluster.shell("login", left, user="alice") == ""


PAGE = """<!doctype html><title>still</title><p>text</p><script>document.title = "ran";
fetch("/api/v1/sessions"); localStorage.planted = 1;</script>"""
IMAGE = """<svg xmlns="http://www.w3.org/2000/svg"><script>document.documentElement.id = "ran";
</script><rect width="9" height="9" onload="document.documentElement.id = 'ran'"/></svg>"""


def test_pages_of_users_run_no_scripts(cluster: Cluster, alice: Api, log_in: LogIn) -> None:
    """They come from the portal's origin, which a script could use as its user."""
    assert send_request(alice, "PUT", "/data/files/storage/private/a.html", data=PAGE.encode()).ok
    assert send_request(alice, "PUT", "/data/files/storage/private/a.svg", data=IMAGE.encode()).ok
    page = log_in("alice")
    page.goto(f"{cluster.url}/files/storage/private")
    page.goto(f"{cluster.url}/data/files/storage/private/a.html")
    assert page.locator("p").inner_text() == "text"
    assert page.title() == "still"
    page.goto(f"{cluster.url}/data/files/storage/private/a.svg")
    assert page.evaluate("document.documentElement.id") == ""
    page.goto(f"{cluster.url}/sessions")
    assert page.evaluate("localStorage.planted") is None


def test_the_port_answers_with_tls_only(cluster: Cluster, alice: Api) -> None:
    """From the portal's network, too, a client without its certificate gets nothing."""
    assert alice("GET", "/files/list/storage").status_code == 200
    address, port = cluster.ctl("address", "login").strip(), file_server_port(cluster, "alice")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((address, port), 5) as plain,
        context.wrap_socket(plain, server_hostname="files.x.slipway") as stream,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        _exchange(stream)


def _exchange(stream: ssl.SSLSocket) -> bytes:
    stream.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: x\r\n\r\n")
    return stream.recv(100) or b""
