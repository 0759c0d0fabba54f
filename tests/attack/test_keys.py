"""The private SSH key: nowhere in a session, and an old exposed key is void."""

from __future__ import annotations

import html.parser
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from tests.support.apps import Kernel, Terminal
from tests.support.client import TIMEOUT, Api, Browser, Json, Visitor, http_session
from tests.support.cluster import Cluster, wait_for
from tests.support.ssh_access import SshClient, client_of, open_ssh

BARE: Json = {"environment": "busybox", "resources": {"cpus": 1, "memory": "300m"}}
STORAGE = "/home/alice/storage"
# Must not occur in anything that a session shows: keys of any kind, and Jupyter's own secrets.
SECRETS = (
    "id_container",
    "PRIVATE KEY",
    "notebook_secret",
    "cookie_secret",
    "spec.json",
    '"token"',
)


@pytest.fixture
def link(cluster: Cluster) -> Iterator[str]:
    """A storage folder that is a link to the home directory."""
    cluster.shell(
        "login", f"mkdir -p {STORAGE}; ln -sfn /home/alice {STORAGE}/around", user="alice"
    )
    yield "around"
    cluster.run("login", "rm", "-f", f"{STORAGE}/around", user="alice")


def middle_of(key: str) -> str:
    """A line that occurs only in this private key."""
    return key.splitlines()[2]


@pytest.mark.parametrize(
    "mounts",
    [
        [],
        ["home"],
        [{"folder": "home", "read_only": True}],
        ["around"],
        [{"folder": "around", "read_only": True}],
    ],
)
def test_no_file_readable_in_a_session_has_the_private_key(
    cluster: Cluster, alice: Api, link: str, mounts: list[object]
) -> None:
    """H2: it was in the home of every session."""
    key = alice.ask("POST", "/me/id_container")["private_key"]
    session = alice.running(**BARE, mounts=mounts)
    # A second one, running or pending: its folder is in the home, too.
    alice.launch(**BARE)
    open_ssh(alice, session["id"])
    window = Terminal(alice.open(session["id"], "terminal"))
    # The words are split so that neither shell history nor tmux contains the search terms.
    word = middle_of(key)
    files = "find / '(' -path /proc -o -path /sys -o -path /dev ')' -prune -o -type f -print0"
    look = f"a={word[:30]}; b={word[30:]}; "
    look += f"{files} 2>/dev/null | xargs -0 grep -lsF \"$a$b\" | sed 's/^/found:/'; echo looked; "
    look += "find / -name id_container 2>/dev/null | sed 's/^/named:/'; "
    look += "cat /opt/slipway-ssh/* | head -c 11"
    output = window.run(look, 60)
    if mounts:
        name = "home" if "home" in str(mounts) else "around"
        # The number has words around it: tmux may draw its status line before or after it.
        hidden = window.run(
            f"echo its$(ls -A ~/{name}/.slipway | wc -l)files; ls -d ~/{name}/storage; "
            f"rmdir ~/{name}/.slipway"
        )
        assert "its0files" in hidden
        assert f"/{name}/storage" in hidden
    window.close()
    assert "looked" in output
    assert "found:" not in output
    assert "named:" not in output
    assert "ssh-ed25519" in output, "the public key must be there"
    # It is still in its place, and complete.
    assert alice.ask("POST", "/me/id_container")["private_key"] == key


class Links(html.parser.HTMLParser):
    """Collects the links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect a link."""
        self.found += [value for name, value in attributes if name == "href" and value]


def crawl(visitor: Visitor) -> dict[str, str]:
    """Everything that an app shows, by path."""
    pages: dict[str, str] = {}
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        if path in pages or len(pages) > 500:
            continue
        answer = visitor.get(path)
        pages[path] = answer.text if answer.status_code == 200 else ""
        if path.endswith("/"):
            links = (urljoin(visitor.origin + path, link) for link in Links(answer.text).found)
            waiting += [urlsplit(link).path for link in links if link.startswith(visitor.origin)]
    return pages


def test_a_public_app_of_the_home_exposes_no_secret(alice: Api) -> None:
    """H2: everybody who knew its address read id_container there, and logged in by SSH."""
    session = alice.running(mounts=["home"], resources={"cpus": 1, "memory": "900m"})
    open_ssh(alice, session["id"])
    kernel = Kernel(alice.open(session["id"], "jupyterlab"))
    assert kernel.run("print(6 * 7)").text == "42\n"
    kernel.visitor.send("PUT", "/api/contents/a.ipynb", json=NOTEBOOK)
    body = {"asked": "cd && exec python -m http.server $PORT", "public": True}
    link = alice.ask("POST", f"/sessions/{session['id']}/apps/webapp", json=body)
    stranger = Visitor(link["url"].partition("?")[0])
    wait_for("the app", lambda: "Directory listing" in stranger.get("/").text, 60)
    pages = crawl(stranger)
    kernel.close()
    assert "/a.ipynb" in pages
    assert "/home/" in pages
    assert pages.get("/home/.slipway/", "").count("<li>") == 0
    for path, text in pages.items():
        for secret in SECRETS:
            assert secret not in path
            # The key's file name alone is no secret: it may occur in text, as in a listing of .ssh.
            assert secret == "id_container" or secret not in text, (path, secret)


NOTEBOOK: Json = {
    "type": "notebook",
    "content": {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5},
}


def test_the_proposed_command_serves_a_folder_and_not_the_home(alice: Api) -> None:
    """H2: the wizard's own example served the home."""
    session = alice.running()
    page = Browser(alice.cluster, "alice").get(f"/sessions/{session['id']}/apps").text
    assert "http.server $PORT" not in page
    assert "http.server --directory results $PORT" in page


def test_the_key_on_the_cluster_is_readable_by_its_owner_only(cluster: Cluster, alice: Api) -> None:
    """H2: in the real home, with no access for others."""
    alice.ask("POST", "/me/id_container")
    place = "/home/alice/.slipway"
    modes = cluster.shell(
        "login", f"cd {place}; stat -c %a . key ssh key/id_container ssh/authorized_keys"
    )
    assert modes.split() == ["700", "700", "700", "600", "600"]
    assert not cluster.shell("login", f"cat {place}/*/*", user="bob", check=False)


def test_a_key_exposed_to_sessions_is_void_after_renewal(
    cluster: Cluster, alice: Api, tmp_path: Path
) -> None:
    """H2: left by an earlier version, with a session that is running meanwhile."""
    session = alice.running(**BARE)
    client = client_of(alice, open_ssh(alice, session["id"]), tmp_path / "alice")
    assert client.ssh("true").returncode == 0
    old = plant_old_key(cluster, session["id"])
    new = alice.ask("POST", "/me/id_container")["private_key"]
    assert new != old, "the key exposed to sessions is still handed out"
    left = "find /home/alice/.slipway -name id_container"
    assert cluster.shell("login", left).split() == ["/home/alice/.slipway/key/id_container"]
    for key, code in ((old, 255), (new, 0)):
        (client.folder / "id_container").write_text(key)
        assert client.ssh("true").returncode == code
    # Once only.
    assert alice.ask("POST", "/me/id_container")["private_key"] == new


def plant_old_key(cluster: Cluster, session: str) -> str:
    """Create a key as earlier versions did, in the portal's folder and in the session's home."""
    old = "/home/alice/.slipway/id_container"
    make = f"rm -f {old} {old}.pub; ssh-keygen -q -t ed25519 -N '' -C id_container -f {old}; "
    make += f"rm {old}.pub; cp {old} /home/alice/.slipway/sessions/{session}/home/; cat {old}"
    return cluster.shell("login", make, user="alice")


def test_the_page_announces_a_new_key(cluster: Cluster, alice: Api) -> None:
    """H2: the user is notified until the new key has been downloaded."""
    words = "Copies of the previous key were in your sessions"
    session = alice.running(**BARE)
    plant_old_key(cluster, session["id"])
    # The next launch renews it.
    alice.launch(**BARE)
    open_ssh(alice, session["id"])
    browser = Browser(alice.cluster, "alice")
    page = f"/sessions/{session['id']}/ssh"
    assert words in browser.get(page).text
    browser.post(f"{page}/key")
    assert cluster.shell("login", "ls /home/alice/.slipway/ssh").split() == ["authorized_keys"]


def test_a_key_of_ones_own_opens_ones_own_sessions_only(
    cluster: Cluster, alice: Api, bob: Api, tmp_path: Path
) -> None:
    """A session accepts its owner's keys only, and a key brings no options with it."""
    mine = tmp_path / "mine"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", mine], check=True)
    public = mine.with_suffix(".pub").read_text().strip()
    for hidden in (f'command="id" {public}', f"{public}\n{public}", f"@cert-authority * {public}"):
        answer = bob("POST", "/me/ssh-keys", json={"public_key": hidden})
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["field"] == "public_key"
    added = bob.ask("POST", "/me/ssh-keys", 201, json={"public_key": public})
    clients = {}
    for api in (alice, bob):
        endpoint = open_ssh(api, api.running(**BARE)["id"])
        clients[api] = client_of(api, endpoint, tmp_path / api.user)
        (clients[api].folder / "id_container").write_text(mine.read_text())
    assert clients[bob].ssh("true").returncode == 0
    assert clients[alice].ssh("true").returncode == 255
    assert clients[alice].ssh("true", User="bob").returncode == 255
    assert alice("DELETE", f"/me/ssh-keys/{added['id']}").status_code == 404
    assert bob("DELETE", f"/me/ssh-keys/{added['id']}").status_code == 204
    wait_for("the key to be void", lambda: clients[bob].ssh("true").returncode == 255, 30)


def test_addresses_of_sessions_are_told_to_their_owner_only(alice: Api, bob: Api) -> None:
    """The block for ~/.ssh/config has an address with a signature, which nobody can guess."""
    session = alice.running(name="secret1", **BARE)
    open_ssh(alice, session["id"])
    pages = {api: Browser(api.cluster, api.user).get("/account/ssh").text for api in (alice, bob)}
    lookups = {api: re.findall(r"/ssh/([\w.-]+)/", text)[0] for api, text in pages.items()}
    url = alice.cluster.url
    hers, his = (f"{url}/ssh/{lookups[api]}/slipway-secret1/port" for api in (alice, bob))
    stranger = http_session()
    assert stranger.get(hers, timeout=TIMEOUT).text.strip().isdigit()
    answer = stranger.get(his, timeout=TIMEOUT)
    assert (answer.status_code, "no running session of this name" in answer.text) == (404, True)
    name, signature = lookups[alice].split(".")
    other = lookups[bob].split(".")[1]
    for forged in (f"{name}.{other}", f"{name}.", name, f"{name}x.{signature}"):
        answer = stranger.get(f"{url}/ssh/{forged}/slipway-secret1/port", timeout=TIMEOUT)
        assert answer.status_code == 404
        assert "secret1" not in answer.text.replace("slipway-secret1", "")


def test_only_public_keys_are_readable_by_ssh(alice: Api, tmp_path: Path) -> None:
    """H2: an SSH login can read no more than a terminal."""
    session = alice.running(**BARE, mounts=["home"])
    client: SshClient = client_of(alice, open_ssh(alice, session["id"]), tmp_path / "alice")
    done: subprocess.CompletedProcess[bytes] = client.ssh(
        "ls -A ~ ~/home/.slipway; cat ~/id_container"
    )
    assert b"PRIVATE" not in done.stdout
    assert b"id_container" not in done.stdout
