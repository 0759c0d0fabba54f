"""Nothing entered in the wizard is lost: expired logins, reloads, leaving and coming back."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import LogIn, Picture, Researcher
from tests.support.client import Api
from tests.support.cluster import Cluster

WHO, OTHER = "bob", "alice"


@pytest.fixture
def api(researcher: Researcher) -> Api:
    """The same user's API client, to clean up."""
    return researcher(WHO)


def send_password(page: Page, cluster: Cluster, who: str = WHO) -> None:
    """Log in at the login page."""
    page.get_by_label("User name").fill(who)
    page.get_by_label("Password").fill(cluster.password(who))
    page.get_by_role("button", name="Log in").click()


@pytest.fixture
def page(log_in: LogIn, cluster: Cluster, api: Api) -> Page:
    """The wizard, with a name entered; not by another login, since they are limited."""
    found = log_in(WHO)
    found.goto(f"{cluster.url}/sessions/new")
    expect(found.get_by_role("button", name="Next")).to_be_visible()
    found.get_by_label("Session name").fill("keepsake1")
    return found


@pytest.fixture
def context(page: Page) -> BrowserContext:
    """The browser's cookies and pages."""
    return page.context


def expire(context: BrowserContext) -> None:
    """As when the login has expired: the browser has no valid cookie any more."""
    context.clear_cookies()


def password(page: Page, cluster: Cluster) -> None:
    """Log in in the dialog."""
    dialog = page.get_by_role("dialog", name="You are logged out")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Password").fill(cluster.password(WHO))
    dialog.get_by_role("button", name="Log in").click()
    expect(dialog).to_be_hidden()


def test_an_expired_login_at_the_launch_asks_for_the_password_and_goes_on(
    page: Page, context: BrowserContext, cluster: Cluster, picture: Picture
) -> None:
    expire(context)
    page.get_by_role("button", name="Confirm and launch").click()
    dialog = page.get_by_role("dialog", name="You are logged out")
    expect(dialog.get_by_label("Password")).to_be_focused()
    picture(page, "wizard-logged-out")
    assert violations(page) == []
    dialog.get_by_label("Password").fill("wrong")
    dialog.get_by_role("button", name="Log in").click()
    expect(dialog).to_contain_text("The name or the password is wrong.")
    password(page, cluster)
    page.get_by_role("button", name="Launch without a folder").click()
    page.wait_for_url(re.compile("/sessions(\\?|$)"))
    expect(page.locator("#rows")).to_contain_text("keepsake1")
    page.goto(f"{cluster.url}/sessions/new")  # the draft is gone
    expect(page.get_by_role("button", name="Next")).to_be_visible()
    expect(page.get_by_label("Session name")).to_have_value("")


def test_an_expired_login_at_the_review_and_the_folders(
    page: Page, context: BrowserContext, cluster: Cluster
) -> None:
    expire(context)
    page.locator(".steps [data-go=review]").click()
    password(page, cluster)
    expect(page.locator(".review-list")).to_contain_text("keepsake1")
    page.locator(".steps [data-go=folders]").click()
    expire(context)
    page.get_by_label("New storage folder").fill("later")
    page.get_by_role("button", name="Create").click()
    password(page, cluster)
    expect(page.get_by_role("checkbox", name="later", exact=False).first).to_be_checked()
    cluster.shell("login", f"rm -rf /home/{WHO}/storage/later", user=WHO)


def test_a_login_in_another_tab_counts(
    page: Page, context: BrowserContext, cluster: Cluster
) -> None:
    expire(context)
    page.get_by_role("button", name="Next").click()
    dialog = page.get_by_role("dialog", name="You are logged out")
    with context.expect_page() as opened:
        dialog.get_by_role("link", name="log in in a new tab").click()
    other = opened.value
    send_password(other, cluster)
    other.wait_for_url("**/sessions")
    page.bring_to_front()
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(dialog).to_be_hidden()
    expect(page.locator("#step-folders")).to_be_visible()
    expect(page.locator("#title-folders")).to_be_focused()


def test_somebody_elses_login_is_not_used(
    page: Page, context: BrowserContext, cluster: Cluster
) -> None:
    expire(context)
    other = context.new_page()
    other.goto(f"{cluster.url}/login")
    send_password(other, cluster, OTHER)
    other.wait_for_url("**/sessions")
    page.get_by_role("button", name="Next").click()
    dialog = page.get_by_role("dialog", name="You are logged out")
    expect(dialog).to_be_visible()
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(dialog).to_contain_text(f"now logged in as {OTHER}")
    password(page, cluster)
    expect(page.locator("#step-folders")).to_be_visible()


def test_a_reload_and_leaving_lose_nothing(page: Page, cluster: Cluster) -> None:
    page.locator("#field-env").click()
    dialog = page.get_by_role("dialog", name="Environment variables")
    dialog.get_by_label("Name 1", exact=True).fill("PLACE")
    dialog.get_by_label("Value 1", exact=True).fill("here")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    page.locator(".steps [data-go=resources]").click()
    page.get_by_label("Memory", exact=True).fill("700 MB")
    page.locator(".steps [data-go=folders]").click()
    page.get_by_label("Home directory").check()
    page.reload()
    expect(page.get_by_text("What you entered here before is back.")).to_be_visible()
    page.goto(f"{cluster.url}/sessions")
    page.get_by_role("link", name="Start a session").first.click()
    page.locator(".steps [data-go=review]").click()
    shown = page.locator(".review-list")
    for words in ("keepsake1", "700 MB", "PLACE", "~/home"):
        expect(shown).to_contain_text(words)
    page.get_by_role("button", name="Start afresh").click()
    expect(page.get_by_text("What you entered here before is back.")).to_be_hidden()
    page.locator(".steps [data-go=environment]").click()
    expect(page.get_by_label("Session name")).to_have_value("")


def test_secrets_are_not_kept_and_leaving_asks(page: Page, cluster: Cluster) -> None:
    page.locator("#field-env").click()
    dialog = page.get_by_role("dialog", name="Environment variables")
    dialog.get_by_label("Name 1", exact=True).fill("API_TOKEN")
    dialog.get_by_label("Value 1", exact=True).fill("hush-hush")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    assert "hush" not in page.evaluate("JSON.stringify(sessionStorage)")
    asked: list[str] = []

    def leave(found: Dialog) -> None:
        asked.append(found.type)
        found.accept()

    page.on("dialog", leave)
    page.reload()
    assert asked == ["beforeunload"]
    expect(page.locator("#error-env")).to_contain_text("Set API_TOKEN again")
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#step-environment")).to_be_visible()


def test_without_javascript_the_login_page_keeps_what_was_sent(
    browser: Browser, cluster: Cluster, api: Api
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page, other = context.new_page(), context.new_page()
    page.goto(f"{cluster.url}/login?next=/sessions/new")
    send_password(page, cluster)
    page.get_by_label("Session name").fill("plainly1")
    page.get_by_label("Memory", exact=True).fill("0.7")
    page.get_by_label("Home directory").check()
    other.goto(f"{cluster.url}/account")
    mine = other.locator("tr", has_text="This browser")
    mine.get_by_role("button", name="Log out").click()
    page.get_by_role("button", name="Confirm and launch").last.click()
    expect(page.get_by_text("what you entered is kept")).to_be_visible()
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("The name or the password is wrong.")).to_be_visible()
    page.get_by_label("Password").fill(cluster.password(WHO))
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_label("Session name")).to_have_value("plainly1")
    expect(page.get_by_label("Memory", exact=True)).to_have_value("0.7 GB")
    expect(page.get_by_label("Home directory")).to_be_checked()
    page.get_by_role("button", name="Confirm and launch").last.click()
    expect(page.locator("#rows")).to_contain_text("plainly1")
    context.close()
