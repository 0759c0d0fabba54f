"""Every text about an end names what stays and what is deleted, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.apps import Terminal
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for

WHO = "alice"
FOLDER = "climate-2026"
STORAGE = f"/home/{WHO}/storage/{FOLDER}"
FACTS = f"{FOLDER} stays. Everything else in this session is deleted: 3 files, 2 MB."
ADVICE = "No folder is mounted: download what you need from JupyterLab or by SSH."


@pytest.fixture(scope="module")
def api(make_api: MakeApi, cluster: Cluster) -> Iterator[Api]:
    """The researcher, who has a storage folder."""
    found: Api = make_api(WHO)
    cluster.shell("login", f"mkdir -p {STORAGE}", user=WHO)
    yield found
    found.clean()
    cluster.shell("login", f"rm -rf {STORAGE}", user=WHO)


@pytest.fixture(scope="module")
def sessions(api: Api) -> list[Json]:
    """One session with a folder and three files beside it, and one without a folder."""
    small = {"cpus": 1, "memory": "600m"}
    with_folder = api.running(name="keeper1", mounts=[FOLDER], resources=small)
    without = api.running(name="loser1", resources=small)
    window = Terminal(api.open(with_folder["id"], "terminal"))
    window.run("cd; mkdir -p results; head -c 2097152 /dev/zero > results/a; touch b c")
    window.run(f"touch .hidden {FOLDER}/kept; ln -s /etc link")
    window.close()

    def counted() -> bool:
        home = api.get(with_folder["id"])["home"]
        return bool(home["deletes_files"] == 3)

    wait_for("the files to be counted", counted, 90, pause=1)
    return [with_folder, without]


def test_the_api_names_them(api: Api, sessions: list[Json]) -> None:
    home = api.get(sessions[0]["id"])["home"]
    assert home["kind"] == "session"
    assert home["keeps"] == [FOLDER]
    assert (home["deletes_files"], home["deletes_bytes"]) == (3, 2097152)
    assert api.get(sessions[1]["id"])["home"]["keeps"] == []
    usage = api.get(sessions[0]["id"])["usage"]
    assert usage["memory_peak"] >= usage["memory"] > 0


def test_the_dialog_before_an_end(log_in: LogIn, sessions: list[Json], picture: Picture) -> None:
    page = log_in(WHO)
    page.get_by_role("button", name="End keeper1").click()
    dialog = page.get_by_role("dialog", name="End keeper1?")
    expect(dialog).to_contain_text(FACTS)
    expect(dialog).not_to_contain_text(ADVICE)
    clean_in_both_themes(page)
    picture(page, "end-keeps")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="End loser1").click()
    dialog = page.get_by_role("dialog", name="End loser1?")
    expect(dialog).to_contain_text("Everything in this session is deleted")
    expect(dialog).to_contain_text(ADVICE)
    picture(page, "end-keeps-nothing")
    page.keyboard.press("Escape")


def test_the_dialog_for_several(log_in: LogIn, sessions: list[Json], picture: Picture) -> None:
    page = log_in(WHO)
    for name in ("keeper1", "loser1"):
        page.get_by_label(f"Select {name}").check()
    page.get_by_role("button", name="End 2 sessions").click()
    dialog = page.get_by_role("dialog", name="End 2 sessions?")
    items = dialog.get_by_role("listitem")
    expect(items.filter(has_text="keeper1")).to_contain_text(
        f"{FOLDER} stays, the rest is deleted: 3 files, 2 MB"
    )
    expect(items.filter(has_text="loser1")).to_contain_text("everything is deleted")
    expect(dialog).not_to_contain_text(ADVICE)
    picture(page, "end-several")
    clean_in_both_themes(page)


def test_the_page_that_asks_without_scripts(
    cluster: Cluster, log_in: LogIn, sessions: list[Json], picture: Picture
) -> None:
    page = log_in(WHO, java_script_enabled=False)
    page.goto(f"{cluster.url}/sessions/{sessions[0]['id']}/end")
    expect(page.get_by_role("main")).to_contain_text(FACTS)
    picture(page, "end-page")
    ids = "&".join(f"ids={session['id']}" for session in sessions)
    page.goto(f"{cluster.url}/sessions/end?{ids}")
    expect(page.get_by_role("listitem").filter(has_text="loser1")).to_contain_text(
        "everything is deleted"
    )
    fits(page, 390, 320)


def test_the_warning_before_the_time_limit(
    cluster: Cluster, log_in: LogIn, sessions: list[Json], picture: Picture
) -> None:
    for session in sessions:
        job = f"JobId={session['job_id']}"
        cluster.run("login", "scontrol", "update", job, "TimeLimit=9", user=WHO)
    page = log_in(WHO)
    warning = page.locator(f"#ending-{sessions[0]['id']}")
    expect(warning).to_contain_text(FACTS, timeout=30_000)
    expect(page.locator(f"#ending-{sessions[1]['id']}")).to_contain_text(ADVICE)
    expect(page.get_by_text(re.compile("Save what you need into a mounted"))).to_have_count(0)
    picture(page, "ending-facts")
