"""Administrators: the cluster instead of one's own share, and ends that say whose and why."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture, Researcher
from tests.support.browser_sessions import row_of
from tests.support.client import Api

STARTS = 60_000
SMALL: dict[str, Any] = {"resources": {"cpus": 1, "memory": "300m"}}


@pytest.fixture
def api(researcher: Researcher) -> Api:
    """A researcher."""
    return researcher("alice")


def test_the_cluster_and_its_users_instead_of_a_share(
    log_in: LogIn, api: Api, picture: Picture
) -> None:
    session = api.running(name="holder1", **SMALL)
    page = log_in("admin")
    cluster = page.get_by_role("region", name="The cluster")
    expect(cluster).to_contain_text("alice 1 core, 0.29 GB", timeout=STARTS)
    expect(page.get_by_label("Your share of")).to_have_count(0)
    picture(page, "admin-cluster")
    clean_in_both_themes(page)
    fits(page, 1024, 760, 390, 320)
    cluster.get_by_role("link", name="nodes up").click()
    node = page.locator(f"[data-node={session['node']}]")
    expect(node).to_contain_text("alice: 1 core, 0.29 GB")
    picture(page, "admin-nodes")
    clean_in_both_themes(page)
    fits(page, 800, 390, 320)
    with page.expect_download() as download:
        page.goto(page.url.replace("/nodes", "/journal"))
        page.get_by_role("link", name="Export as CSV").click()
    assert download.value.suggested_filename == "journal.csv"
    assert download.value.path().read_text().startswith("time,who,action,")


def test_ending_anothers_session_says_whose_and_why(
    log_in: LogIn, api: Api, picture: Picture
) -> None:
    session = api.running(name="foreign1", **SMALL)
    page = log_in("admin")
    row_of(page, "foreign1").get_by_role("button", name="End foreign1").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("End alice's foreign1?")
    dialog.get_by_label("Reason").fill("maintenance at ten")
    picture(page, "list-end-foreign")
    clean_in_both_themes(page)
    dialog.get_by_role("button", name="End session").click()
    ended = api.wait_state(session["id"], "FINISHED")
    assert ended["end"]["text"] == "Ended by admin (an administrator): maintenance at ten."
    hers = log_in("alice")
    hers.goto(hers.url.partition("?")[0] + "?state=finished")
    expect(row_of(hers, "foreign1").first).to_contain_text("maintenance at ten")
