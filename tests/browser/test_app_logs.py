"""The log's page: a tab for the output of each app, and times of the reader."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for

WHO = "alice"
COMMAND = "for n in 1 2 3; do echo app-says-$n; done; exec python -u -m http.server $PORT"
LOCAL = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")


@pytest.fixture
def api(make_api: MakeApi) -> Iterator[Api]:
    """The researcher's API client: launches, and cleans up."""
    found = make_api(WHO)
    yield found
    found.clean()


@pytest.fixture
def session(api: Api) -> Json:
    """A session whose web app has written something."""
    found = api.running(name="talkative1")
    api.ask("POST", f"/sessions/{found['id']}/apps/webapp", json={"asked": COMMAND})
    wait_for("its lines", lambda: "app-says-3" in lines_of(api, found, "webapp"), 60)
    return found


def lines_of(api: Api, session: Json, app: str) -> str:
    """An app's lines, over the API."""
    return str(api.ask("GET", f"/sessions/{session['id']}/log?app={app}")["log"])


def at_home(page: Page, zone: str) -> str:
    """What a reader in this time zone sees at a stamp of the first line."""
    return str(
        page.evaluate(
            "([stamp, timeZone]) => new Date(stamp).toLocaleString('sv-SE', {timeZone})",
            [page.evaluate("window.firstStamp"), zone],
        )
    )


def test_each_app_has_a_tab_and_times_are_the_readers(
    cluster: Cluster, api: Api, session: Json, log_in: LogIn, picture: Picture
) -> None:
    assert "starting" not in lines_of(api, session, "webapp")
    page = log_in(WHO, timezone_id="Europe/Berlin")
    page.goto(f"{cluster.url}/sessions/{session['id']}/log")
    log = page.get_by_role("log")
    expect(log).to_contain_text("webapp: starting")
    expect(page.get_by_text("Times: Europe/Berlin")).to_be_visible()
    raw = str(api.ask("GET", f"/sessions/{session['id']}/log")["log"])
    stamp = re.search(r"^(\S+Z) webapp: starting", raw, re.MULTILINE)
    assert stamp is not None
    page.evaluate("(stamp) => { window.firstStamp = stamp }", stamp[1])
    expect(log).to_contain_text(f"{at_home(page, 'Europe/Berlin')} webapp: starting")
    picture(page, "log-session")

    tabs = page.get_by_role("navigation", name="Parts of the log")
    tabs.get_by_role("link", name="Your web app").click()
    expect(log).to_contain_text("app-says-3")
    expect(log).not_to_contain_text("webapp: starting")
    expect(log).not_to_contain_text("[webapp]")
    lines = str(log.locator("pre").first.text_content()).splitlines()
    assert all(LOCAL.match(line) for line in lines), lines
    picture(page, "log-of-an-app")
    clean_in_both_themes(page)
    fits(page, 1280, 390)
    file = f"$HOME/.slipway/logs/{session['id']}.log"
    line = "2026-01-31T10:00:00Z [webapp] followed"
    cluster.shell("login", f"echo '{line}' >> {file}", user=WHO)
    expect(log).to_contain_text("2026-01-31 11:00:00 followed")
    page.get_by_role("searchbox").fill("app-says-2")
    expect(page.get_by_text("1 found")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    text = download.value.path().read_text()
    assert "2026-01-31T10:00:00Z followed" in text
    assert "webapp: starting" not in text


def test_others_cannot_read_an_apps_output(
    session: Json, make_api: MakeApi, log_in: LogIn, cluster: Cluster
) -> None:
    assert make_api("bob")("GET", f"/sessions/{session['id']}/log?app=webapp").status_code == 404
    refused = make_api(WHO)("GET", f"/sessions/{session['id']}/log?app=unknown")
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["app"]
    page = log_in(WHO, java_script_enabled=False)
    page.goto(f"{cluster.url}/sessions/{session['id']}/log?app=webapp")
    expect(page.get_by_text("Times are UTC.")).to_be_visible()
