"""The folders of the last session are proposed, and presets without one ask, as the wizard does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.axe import clean_in_both_themes
from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.client import SMALL, Api
from tests.support.cluster import Cluster

WHO = "alice"
FOLDER = "climate-2026"
STORAGE = f"/home/{WHO}/storage/{FOLDER}"
PRESET = "small python"


@pytest.fixture
def api(make_api: MakeApi, cluster: Cluster) -> Iterator[Api]:
    """The researcher, who has a storage folder and a preset without one."""
    found = make_api(WHO)
    cluster.shell("login", f"mkdir -p {STORAGE}", user=WHO)
    saved = found("PUT", f"/presets/{PRESET}", json=SMALL)
    assert saved.status_code in (200, 201), saved.text
    yield found
    found.clean_all()
    found("DELETE", f"/presets/{PRESET}")
    cluster.shell("login", f"rm -rf {STORAGE}", user=WHO)


def test_the_last_sessions_folders_are_proposed(
    cluster: Cluster, api: Api, log_in: LogIn, picture: Picture
) -> None:
    api.launch(mounts=[FOLDER])
    page = log_in(WHO)
    page.goto(f"{cluster.url}/sessions/new")
    expect(page.locator("[data-so-far]")).to_contain_text(FOLDER)
    page.get_by_role("link", name="Folders").click()
    expect(page.get_by_text("Selected as in your last session")).to_be_visible()
    expect(page.get_by_label(FOLDER).first).to_be_checked()
    page.get_by_role("group").get_by_label("About folders in a session").click()
    expect(page.get_by_text("absolute paths differ")).to_be_visible()
    picture(page, "folders-proposed")
    clean_in_both_themes(page)
    # Also by a launch on the first page.
    page.goto(f"{cluster.url}/sessions/new")
    page.get_by_role("button", name="Confirm and launch").click()
    page.wait_for_url("**/sessions*")
    newest = api.list()[0]
    assert [mount["folder"] for mount in newest["mounts"]] == [FOLDER]


def test_a_preset_without_a_folder_asks(
    cluster: Cluster, api: Api, log_in: LogIn, picture: Picture
) -> None:
    page = log_in(WHO)
    page.get_by_role("button", name="Presets").click()
    page.get_by_role("button", name=PRESET).click()
    dialog = page.get_by_role("alertdialog", name="No folder is mounted")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("button", name="Choose folders")).to_be_focused()
    picture(page, "preset-asks")
    clean_in_both_themes(page)
    page.keyboard.press("Escape")
    assert api.list(state="running") == []
    page.goto(f"{cluster.url}/presets")
    page.get_by_role("button", name=f"Launch {PRESET}").click()
    expect(dialog).to_be_visible()
    dialog.get_by_label("Do not ask again in this browser").check()
    dialog.get_by_role("button", name="Launch without a folder").click()
    expect(page.locator("#rows tr[data-session]")).to_have_count(1)
    assert len(api.list(state="running")) == 1
    page.get_by_role("button", name="Presets").click()
    page.get_by_role("button", name=PRESET).click()
    expect(page.locator("#rows tr[data-session]")).to_have_count(2)


def test_choosing_folders_leads_to_the_wizard(cluster: Cluster, api: Api, log_in: LogIn) -> None:
    page = log_in(WHO)
    page.goto(f"{cluster.url}/presets")
    page.get_by_role("button", name=f"Launch {PRESET}").click()
    page.get_by_role("button", name="Choose folders").click()
    page.wait_for_url("**/sessions/new?preset=*")
    expect(page.get_by_role("heading", name="Folders")).to_be_visible()
    assert api.list(state="running") == []


def test_it_asks_without_scripts(cluster: Cluster, api: Api, log_in: LogIn) -> None:
    page = log_in(WHO, java_script_enabled=False)
    page.goto(f"{cluster.url}/presets")
    page.get_by_role("button", name=f"Launch {PRESET}").click()
    expect(page.get_by_role("heading", name="No folder is mounted")).to_be_visible()
    assert api.list(state="running") == []
    page.get_by_role("button", name="Launch without a folder").click()
    page.wait_for_url("**/sessions*")
    assert len(api.list(state="running")) == 1
