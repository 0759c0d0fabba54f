"""Apps, terminals and SSH start in the folder that is kept, in a real browser on a real cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.apps import Kernel, Terminal
from tests.support.client import Api, Json
from tests.support.cluster import Cluster
from tests.support.ssh_access import client_of, open_ssh

WHO = "alice"
FOLDER = "climate-2026"
STARTS = 60_000
STORAGE = f"/home/{WHO}/storage"


@pytest.fixture(scope="module")
def api(make_api: MakeApi, cluster: Cluster) -> Iterator[Api]:
    """The researcher, who has two storage folders."""
    found: Api = make_api(WHO)
    cluster.shell("login", f"mkdir -p {STORAGE}/{FOLDER}/runs {STORAGE}/maps", user=WHO)
    yield found
    found.clean()
    cluster.shell("login", f"rm -rf {STORAGE}/{FOLDER} {STORAGE}/maps", user=WHO)


@pytest.fixture(scope="module")
def session(api: Api) -> Json:
    """A running session with one folder to write to, and one to read."""
    return api.running(name="climate1", mounts=[FOLDER, {"folder": "maps", "read_only": True}])


def test_a_new_notebook_is_in_the_kept_folder(
    cluster: Cluster, log_in: LogIn, api: Api, session: Json, picture: Picture
) -> None:
    page = log_in(WHO)
    page.goto(api.ask("POST", f"/sessions/{session['id']}/apps/jupyterlab")["url"])
    expect(page.locator(".jp-BreadCrumbs")).to_contain_text(FOLDER, timeout=STARTS)
    picture(page, "start-directory-lab")
    page.locator(".jp-LauncherCard[data-category=Notebook]").first.click()
    expect(page.locator(".jp-NotebookPanel")).to_be_visible(timeout=STARTS)
    page.keyboard.press("Control+S")
    where = f"{STORAGE}/{FOLDER}/Untitled.ipynb"
    page.wait_for_timeout(1000)
    assert json.loads(cluster.shell("login", f"cat {where}", user=WHO))["cells"] is not None


def test_notebook_shows_the_kept_folder(log_in: LogIn, api: Api, session: Json) -> None:
    page = log_in(WHO)
    page.goto(api.ask("POST", f"/sessions/{session['id']}/apps/notebook")["url"])
    expect(page.locator(".jp-DirListing-content")).to_contain_text("runs", timeout=STARTS)


def test_terminals_and_ssh_start_in_it(api: Api, session: Json, tmp_path: Path) -> None:
    there = f"/home/{WHO}/{FOLDER}"
    window = Terminal(api.open(session["id"], "terminal"))
    assert there in window.run("pwd; echo ~")
    window.close()
    client = client_of(api, open_ssh(api, session["id"]), tmp_path / "computer")
    assert client.ssh(stdin=b"pwd; echo $HOME\n").stdout.decode().split() == [there, f"/home/{WHO}"]
    # Relative paths of commands and of all programs that copy files begin in the home.
    source = tmp_path / "results.txt"
    source.write_text("kept")
    client.copy(str(source), f"{client.there}{FOLDER}")
    client.copy("-O", str(source), f"{client.there}~/{FOLDER}/old-way.txt")
    assert client.ssh(f"cd {FOLDER}; cat results.txt old-way.txt").stdout == b"keptkept"


def test_the_file_browser_can_leave_it(api: Api, session: Json) -> None:
    lab = api.open(session["id"], "jupyterlab")
    found = {entry["name"] for entry in lab.get("/api/contents/").json()["content"]}
    assert {FOLDER, "maps"} <= found
    assert Kernel(lab).value("import json, os; print(json.dumps(os.path.exists('/tmp')))")


def test_a_web_app_serves_the_folder(api: Api, session: Json) -> None:
    body = {"asked": "exec python -m http.server $PORT"}
    link = api.ask("POST", f"/sessions/{session['id']}/apps/webapp", json=body)
    assert link["url"]
    assert "runs/" in api.open(session["id"], "webapp").get("/").text


def test_without_one_writable_folder_the_home_is_the_start(api: Api) -> None:
    several = api.running(name="several1", mounts=[FOLDER, "maps"])
    window = Terminal(api.open(several["id"], "terminal"))
    assert f"/home/{WHO}\n" in window.run("pwd").replace("\r", "")
    window.close()
    api.stop(several["id"])
