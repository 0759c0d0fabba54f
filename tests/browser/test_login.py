"""The log-in leads to the address that was asked for."""

from __future__ import annotations

from playwright.sync_api import Browser

from tests.support.cluster import Cluster


def test_the_fragment_of_an_address_survives_the_log_in(browser: Browser, cluster: Cluster) -> None:
    """Also a wrong password on the way."""
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    page.goto(f"{cluster.url}/jobs?state=all&q=%5Ba%5D#place")
    for password in ("wrong", cluster.password("alice")):
        page.get_by_label("User name").fill("alice")
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_load_state()
    page.wait_for_url(f"{cluster.url}/jobs?state=all&q=%5Ba%5D#place")
    context.close()
