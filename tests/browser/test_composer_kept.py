"""Nothing entered in the composer is lost: expired logins, reloads, closed tabs, lost answers."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, StorageState, expect

from tests.browser.axe import violations
from tests.browser.conftest import LogIn
from tests.support.browser_composer import composed_script, write_script
from tests.support.cluster import Cluster

WHO = "bob"
SCRIPT = "#!/bin/bash\necho 'two words' é\n"
BACK = "What you entered here before is back."


@pytest.fixture
def page(log_in: LogIn, cluster: Cluster) -> Page:
    """The composer with a script and more fields."""
    found = log_in(WHO)
    found.goto(f"{cluster.url}/jobs/new")
    write_script(found, SCRIPT)
    found.get_by_label("Arguments").fill("a 'b c'")
    found.get_by_label("Memory on each node").fill("100 MB")
    return found


def expect_everything(page: Page) -> None:
    """What the fixture has entered is there, in the editor too."""
    expect(page.get_by_text(BACK)).to_be_visible()
    expect(page.get_by_role("textbox", name="Script", exact=True)).to_contain_text("two words")
    assert composed_script(page) == SCRIPT
    expect(page.get_by_label("Arguments")).to_have_value("a 'b c'")
    expect(page.get_by_label("Memory on each node")).to_have_value("100 MB")


def test_a_reload_and_leaving_lose_nothing(page: Page, cluster: Cluster) -> None:
    page.reload()
    expect_everything(page)
    page.goto(f"{cluster.url}/jobs")
    page.goto(f"{cluster.url}/jobs/new")
    expect_everything(page)
    assert violations(page) == []
    page.get_by_role("button", name="Start afresh").click()
    expect(page.get_by_text(BACK)).to_be_hidden()
    expect(page.get_by_label("Arguments")).to_have_value("")
    page.reload()
    expect(page.get_by_text(BACK)).to_be_hidden()


def test_a_closed_tab_loses_nothing_until_the_user_logs_out(
    page: Page, cluster: Cluster, cookies: dict[str, StorageState]
) -> None:
    del cookies[WHO]  # other tests log in again
    context = page.context
    page.get_by_label("Job name").fill("kept")
    page.close(run_before_unload=False)
    other = context.new_page()
    other.goto(f"{cluster.url}/jobs/new")
    expect_everything(other)
    other.locator("#account-menu summary").click()
    other.get_by_role("button", name="Log out").click()
    other.wait_for_url("**/login")
    drafts = "Object.keys(localStorage).filter((name) => name.startsWith('slipway-draft '))"
    assert other.evaluate(drafts) == []


def test_an_expired_login_asks_for_the_password_and_goes_on(page: Page, cluster: Cluster) -> None:
    page.context.clear_cookies()
    page.get_by_role("button", name="Show the command").click()
    dialog = page.get_by_role("dialog", name="You are logged out")
    dialog.get_by_label("Password").fill(cluster.password(WHO))
    dialog.get_by_role("button", name="Log in").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_label("The command", exact=True)).to_contain_text("/dev/stdin a 'b c'")
    assert composed_script(page) == SCRIPT


def test_after_a_lost_answer_a_reload_does_not_submit_twice(page: Page) -> None:
    def lose(route: Route) -> None:
        route.fetch(max_redirects=0)
        route.abort()

    page.route("**/jobs/new", lose)
    page.get_by_role("button", name="Submit the job").click()
    expect(page.get_by_text("The portal did not answer.")).to_be_visible()
    page.unroute("**/jobs/new")
    key = page.locator("[name=key]").input_value()
    page.reload()
    expect_everything(page)
    assert page.locator("[name=key]").input_value() == key
    page.get_by_role("button", name="Submit the job").click()
    page.wait_for_url(re.compile(r"/jobs/(submitted/)?\d+$"))
    page.goto(re.sub(r"/jobs/.*", "/jobs/new", page.url))
    expect(page.get_by_label("Arguments")).to_have_value("")  # the draft is gone
    expect(page.get_by_text(BACK)).to_be_hidden()
