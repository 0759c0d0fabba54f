"""The page of one session: everything about it in one place, live, and after its end."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for

WHO = "alice"


@pytest.fixture
def api(make_api: MakeApi) -> Iterator[Api]:
    """The researcher's API client: launches, and cleans up."""
    found = make_api(WHO)
    yield found
    found.clean()


def test_the_name_leads_to_all_about_a_session_live_and_after_its_end(
    cluster: Cluster, api: Api, log_in: LogIn, picture: Picture
) -> None:
    folders = [folder["name"] for folder in api.ask("GET", "/folders")["folders"]]
    if "pagedata" not in folders:
        api.ask("POST", "/folders", 201, json={"name": "pagedata"})
    session = api.running(
        name="detailed1",
        resources={"cpus": 1, "memory": "600m"},
        mounts=[{"folder": "pagedata", "read_only": True}],
        env={"PAGE_TOKEN": "not-to-be-shown"},
        time_limit=50,
    )["id"]
    page = log_in(WHO)
    page.get_by_role("link", name="detailed1", exact=True).click()
    page.wait_for_url(f"**/sessions/{session}")
    facts = page.locator("#session-facts")
    for shown in ("~/pagedata", "read-only", "PAGE_TOKEN", "600 MB", "50 min", session):
        expect(facts).to_contain_text(shown)
    assert "not-to-be-shown" not in page.content()
    expect(page.locator("#log-end")).to_contain_text("Ready on")
    clean_in_both_themes(page)
    with page.expect_popup() as opened:
        page.locator(".detail-do").get_by_role("button", name="Terminal").click()
    expect(opened.value).to_have_url(re.compile(r"/$"), timeout=60_000)
    opened.value.close()
    # One sample a minute: the second one draws the curves, without a reload.
    page.evaluate("window.stillTheSame = true")
    wait_for("two samples", lambda: len(_points(api, session)) > 1, 90)
    charts = page.locator("#session-use svg")
    expect(charts).to_have_count(2, timeout=10_000)
    page.get_by_text("As a table").click()
    page.wait_for_timeout(3000)
    expect(page.locator("#use-table tbody tr").first).to_be_visible()  # stays open while polled
    clean_in_both_themes(page)
    fits(page, 1440, 1024, 390, 320)
    picture(page, "session-page")
    page.set_viewport_size({"width": 390, "height": 844})
    picture(page, "session-page-narrow")
    page.set_viewport_size({"width": 1280, "height": 860})
    api.ask("DELETE", f"/sessions/{session}", 202)
    head = page.locator(".detail-head")
    expect(head).to_contain_text("Finished", timeout=30_000)
    expect(page.locator("#announce")).to_have_text("detailed1 has ended.")
    expect(head.get_by_role("button", name="Launch again")).to_be_visible()
    expect(head.get_by_role("button", name="Terminal")).to_have_count(0)
    expect(page.locator(".timeline")).to_contain_text("End requested")
    assert page.evaluate("window.stillTheSame")
    page.reload()
    expect(page.locator(".app-card")).to_have_count(0)
    expect(charts).to_have_count(2)
    clean_in_both_themes(page)
    picture(page, "session-page-over")


def _points(api: Api, session: str) -> list[object]:
    found: list[object] = api.ask("GET", f"/sessions/{session}/usage")["points"]
    return found


def test_without_javascript_it_is_ended_and_saved_as_a_preset(
    cluster: Cluster, api: Api, log_in: LogIn
) -> None:
    session = api.running(name="detailed2", resources={"cpus": 1, "memory": "300m"})["id"]
    log_in(WHO)
    page = log_in(WHO, java_script_enabled=False)
    page.goto(f"{cluster.url}/sessions/{session}")
    page.get_by_label("Starts one like it with one click.").fill("from the page")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved as the preset from the page.")).to_be_visible()
    assert api("DELETE", "/presets/from%20the%20page").status_code == 204
    page.get_by_role("button", name="End", exact=True).click()
    page.get_by_role("button", name="End session").click()
    page.wait_for_url(f"**/sessions/{session}")
    expect(page.locator(".detail-head .chip").first).to_have_text(re.compile("Ending|Finished"))


def test_administrators_see_the_page_of_anothers_session_without_its_apps(
    cluster: Cluster, api: Api, log_in: LogIn
) -> None:
    session = api.running(name="detailed3", resources={"cpus": 1, "memory": "300m"})["id"]
    admin = log_in("admin")
    admin.goto(f"{cluster.url}/sessions/{session}")
    expect(admin.locator(".detail-head")).to_contain_text("of alice")
    expect(admin.locator(".app-card")).to_have_count(0)
    expect(admin.get_by_role("button", name="Launch again")).to_have_count(0)
    admin.wait_for_timeout(3000)
    expect(admin.locator("#log-end")).to_have_count(0)
    assert api.get(session)["log_read"] is None, "its log is not read unless asked for"
    clean_in_both_themes(admin)
    bob = log_in("bob")
    refused = bob.goto(f"{cluster.url}/sessions/{session}")
    assert refused is not None
    assert refused.status == 404
