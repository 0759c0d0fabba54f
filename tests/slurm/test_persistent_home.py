"""Sessions in their owner's own home directory (sessions.home = "persistent")."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.apps import Kernel, Terminal
from tests.support.client import OVER, Api, Browser, Json
from tests.support.cluster import Cluster, restart_portal, wait_for

HOME = "/home/alice"
ELSEWHERE = "/home/elsewhere"
SETTINGS = "/etc/slipway/slipway.toml"
IMAGE = "/srv/slipway/images/python/3.13/image.sif"


@contextmanager
def settings(cluster: Cluster, **values: str) -> Iterator[None]:
    """The running portal with these settings in its section [sessions], and then as it was."""
    before = cluster.run("portal", "cat", SETTINGS)
    kept = [line for line in before.splitlines() if line.partition(" = ")[0] not in values]
    section = kept.index("[sessions]") + 1
    kept[section:section] = [f'{name} = "{value}"' for name, value in values.items()]
    try:
        configure(cluster, "\n".join(kept) + "\n")
        yield
    finally:
        configure(cluster, before)


def configure(cluster: Cluster, text: str) -> None:
    """Give the running portal these settings."""
    cluster.run("portal", "sh", "-c", f"cat > {SETTINGS}", stdin=text)
    restart_portal(cluster, "web", "worker")


@pytest.fixture(scope="module", autouse=True)
def _own_homes(cluster: Cluster) -> Iterator[None]:
    with settings(cluster, home="persistent"):
        yield


@pytest.fixture(autouse=True)
def _tidy(cluster: Cluster) -> Iterator[None]:
    """Alice's home without what a test wrote."""
    tidy = f"cd {HOME} && rm -rf trial .ipython .jupyter .local .cache storage/own storage/shared"
    cluster.shell("login", tidy, user="alice")
    yield
    cluster.shell("login", tidy, user="alice")


def listing(cluster: Cluster) -> set[str]:
    """Everything in alice's home on the cluster, except for Slipway's and Apptainer's folders."""
    ours = f"-path '{HOME}/.slipway*' -o -path '{HOME}/.apptainer*'"
    script = f"find {HOME} -mindepth 1 -not '(' {ours} ')' -printf '%P %s\\n'"
    return set(cluster.shell("login", script, user="alice").splitlines())


def terminal(api: Api, session: Json) -> Terminal:
    """The session's terminal."""
    return Terminal(api.open(session["id"], "terminal"))


def end(api: Api, cluster: Cluster, session: Json) -> None:
    """End it, and wait until its folder is deleted."""
    api.stop(session["id"])
    api.wait_state(session["id"], *OVER)
    folder = f"ls -d {HOME}/.slipway/sessions/{session['id']}"
    wait_for("no folder", lambda: not cluster.shell("login", folder, check=False), 20)


def test_two_sessions_share_the_owners_home_which_stays_as_they_left_it(
    alice: Api, cluster: Cluster
) -> None:
    before = listing(cluster)
    first, second = alice.running(), alice.running()
    assert (first["home"]["kind"], first["home"]["deletes_files"]) == ("persistent", None)
    assert first["home"]["keeps"] == ["your home directory"]
    one, other = terminal(alice, first), terminal(alice, second)
    assert f"at {HOME} in {HOME}" in one.run('echo "at $HOME in $PWD"')
    one.run("echo hello > ~/trial")
    assert "hello" in other.run("cat ~/trial")
    # Its secrets are hidden, and nothing can be written there.
    assert "found 0" in one.run("echo found $(find ~/.slipway -mindepth 1 | wc -l)")
    assert "cannot touch" in one.run("touch ~/.slipway/new")
    for window in (one, other):
        window.close()
    page = Browser(cluster, "alice").get(f"/sessions/{first['id']}").text
    assert "Your home directory stays." in page
    assert "is deleted" not in page
    end(alice, cluster, first)
    end(alice, cluster, second)
    assert listing(cluster) == before | {"trial 6"}


def test_jupyterlab_and_kernels_leave_nothing_of_slipway_in_the_home(
    alice: Api, cluster: Cluster
) -> None:
    before = listing(cluster)
    session = alice.running()
    kernel = Kernel(alice.open(session["id"], "jupyterlab"))
    assert kernel.run("import os; print(os.getcwd())").text == f"{HOME}\n"
    guarded = "import ipykernel.kernelapp as app; print(app._slipway)"
    assert kernel.run(guarded).text == "True\n"
    # Whatever starts a kernel, such as a conda environment, it reads the same settings.
    other = (
        "import subprocess, sys\n"
        "code = 'from ipykernel.kernelapp import IPKernelApp as A; a = A.instance(); '\n"
        "code += 'a.init_profile_dir(); a.init_config_files(); a.load_config_file(); '\n"
        "code += 'import ipykernel.kernelapp as k; print(k._slipway)'\n"
        "done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
        "print(done.stdout + done.stderr)"
    )
    assert kernel.run(other).text.strip() == "True"
    kernel.run("open('trial', 'w').write('1')")
    kernel.close()
    end(alice, cluster, session)
    new = {line.rpartition(" ")[0].partition("/")[0] for line in listing(cluster) - before}
    assert new <= {"trial", ".ipython", ".jupyter", ".local", ".cache"}
    # The history has this test's own cells.
    traces = "grep -rli --exclude=history.sqlite slipway"
    traces += f" {HOME}/.ipython {HOME}/.jupyter {HOME}/.local {HOME}/.cache"
    assert not cluster.shell("login", f"{traces} 2>/dev/null", user="alice", check=False)
    # The same home without Slipway: IPython starts as ever.
    plain = f"apptainer --silent exec --containall --home {HOME} {IMAGE}"
    plain += " python -m IPython -c 'print(6*7)'"
    told = cluster.shell("n1", f"cd {HOME} && HOME={HOME} {plain} 2>&1", user="alice")
    assert told.split() == ["42"]


def test_chosen_folders_are_at_their_own_path(alice: Api, cluster: Cluster) -> None:
    for name in ("own", "shared"):
        alice.ask("POST", "/folders", 201, json={"name": name})
    chosen = ["own", {"folder": "shared", "read_only": True}, "home"]
    refused = alice("POST", "/sessions", json=body([{"folder": "home", "read_only": True}]))
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["mounts.0"]
    session = alice.running(mounts=chosen[:2])
    assert [mount["path"] for mount in session["mounts"]] == ["~/storage/own", "~/storage/shared"]
    window = terminal(alice, session)
    assert f"in {HOME}/storage/own" in window.run('echo "in $PWD"')
    assert "Read-only file system" in window.run("touch ~/storage/shared/new")
    window.run("echo 1 > ~/storage/own/new")
    window.close()
    end(alice, cluster, session)
    assert cluster.shell("login", f"ls {HOME}/storage/own", user="alice").split() == ["new"]


def test_storage_outside_of_the_home_is_there_too(alice: Api, cluster: Cluster) -> None:
    cluster.shell("login", f"mkdir -p {ELSEWHERE}/alice/maps && chown -R alice {ELSEWHERE}/alice")
    try:
        with settings(cluster, storage=f"{ELSEWHERE}/{{user}}"):
            session = alice.running()
            window = terminal(alice, session)
            window.run(f"echo 1 > {ELSEWHERE}/alice/maps/new")
            window.close()
            lab = alice.open(session["id"], "jupyterlab")
            assert lab.get(f"/api/contents{ELSEWHERE}/alice/maps/new").status_code == 200
            end(alice, cluster, session)
            session = alice.running(mounts=["maps"])
            assert session["mounts"][0]["path"] == f"{ELSEWHERE}/alice/maps"
            kernel = Kernel(alice.open(session["id"], "jupyterlab"))
            assert kernel.run("print(open('new').read())").text == "1\n\n"
            kernel.close()
            end(alice, cluster, session)
        assert cluster.shell("login", f"cat {ELSEWHERE}/alice/maps/new").strip() == "1"
    finally:
        cluster.shell("login", f"rm -rf {ELSEWHERE}")


def test_a_changed_setting_leaves_running_sessions_as_they_are(
    alice: Api, cluster: Cluster
) -> None:
    session = alice.running()
    with settings(cluster, home="session"):
        page = Browser(cluster, "alice").get(f"/sessions/{session['id']}").text
        assert "Your home directory stays." in page
        again = alice.ask("POST", f"/sessions/{session['id']}/relaunch", 201)["sessions"][0]
        alice.launched.append(again["id"])
        assert again["home"]["kind"] == "session"


def body(mounts: list[Json]) -> Json:
    """A launch request with these mounts."""
    resources = {"cpus": 1, "memory": "600m"}
    return {"environment": "python", "resources": resources, "mounts": mounts}


def test_a_shared_folder_is_where_its_owner_has_it(alice: Api, bob: Api, cluster: Cluster) -> None:
    """What is mounted there is compared with what the job's script has looked at."""
    share = "/folders/lent/shares/user/alice"
    bob.ask("POST", "/folders", 201, json={"name": "lent"})
    try:
        cluster.shell("login", "echo theirs > ~/storage/lent/hello", user="bob")
        bob.ask("PUT", share, 200, json={"access": "read"})
        session = alice.running(mounts=["bob/lent"])
        window = terminal(alice, session)
        assert "theirs" in window.run("cat /home/bob/storage/lent/hello")
        window.close()
        end(alice, cluster, session)
    finally:
        bob("DELETE", share)
        cluster.shell("login", "rm -rf ~/storage/lent", user="bob")
