"""The wizard checks fields when they are left, by the server's rules, and stops at errors."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import LogIn, Picture
from tests.support.cluster import Cluster

WHO = "bob"


@pytest.fixture
def page(log_in: LogIn, cluster: Cluster) -> Page:
    """The wizard, without a draft of an earlier test."""
    found = log_in(WHO)
    found.goto(f"{cluster.url}/sessions/new")
    expect(found.get_by_role("button", name="Next")).to_be_visible()
    return found


def cpus(page: Page) -> Locator:
    """The field for cores."""
    return page.get_by_label("CPU cores", exact=True)


def memory(page: Page) -> Locator:
    """The field for memory."""
    return page.get_by_label("Memory", exact=True)


def resources(page: Page) -> None:
    """Go to the third step."""
    page.locator(".steps [data-go=resources]").click()
    expect(cpus(page)).to_be_visible()


def test_a_field_is_checked_when_it_is_left(page: Page, picture: Picture) -> None:
    resources(page)
    cpus(page).fill("9")
    memory(page).focus()
    wrong = page.locator("#error-resources-cpus")
    expect(wrong).to_contain_text("9 is too many: ")
    expect(cpus(page)).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".steps .wrong [data-go=resources]")).to_be_visible()
    # All errors at once, of whatever kind.
    memory(page).fill("plenty")
    page.get_by_label("Number of sessions", exact=True).focus()
    expect(page.locator("#error-resources-memory")).to_contain_text("with its unit")
    expect(wrong).to_be_visible()
    picture(page, "wizard-errors")
    assert violations(page) == []
    cpus(page).fill("1")
    memory(page).focus()
    expect(wrong).to_be_hidden()
    expect(cpus(page)).not_to_have_attribute("aria-invalid", "true")


@pytest.mark.parametrize(("typed", "shown"), [("2", "2 GB"), ("1.5", "1.5 GB"), ("600m", "600m")])
def test_a_bare_number_means_gb(page: Page, typed: str, shown: str) -> None:
    resources(page)
    memory(page).fill(typed)
    cpus(page).focus()
    expect(memory(page)).to_have_value(shown)
    expect(page.locator("#error-resources-memory")).to_be_hidden()


def test_next_stops_at_an_error_and_leads_to_it(page: Page) -> None:
    page.get_by_label("Session name").fill("a b")
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#error-name")).to_contain_text("Use 4 to 64 letters and digits")
    expect(page.get_by_label("Session name")).to_be_focused()
    expect(page.locator("#step-environment")).to_be_visible()
    page.get_by_label("Session name").fill("better1")
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#step-folders")).to_be_visible()


def test_errors_come_before_the_question_about_folders(page: Page) -> None:
    resources(page)
    page.get_by_label("Number of sessions", exact=True).fill("25")
    page.locator(".steps [data-go=folders]").click()
    page.get_by_role("button", name="Confirm and launch").click()
    count = page.get_by_label("Number of sessions", exact=True)
    expect(count).to_be_focused()
    expect(page.locator("#error-count")).to_contain_text("at most 20")
    expect(page.get_by_role("alertdialog")).to_have_count(0)


def test_the_review_names_field_and_limit_and_leads_there(page: Page) -> None:
    resources(page)
    cpus(page).fill("9")
    page.locator(".steps [data-go=review]").click()
    item = page.locator("[data-error='resources.cpus']")
    expect(item).to_contain_text("CPU cores: 9 is too many: ")
    item.get_by_role("link", name="Change it").click()
    expect(cpus(page)).to_be_focused()
    expect(cpus(page)).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#error-resources-cpus")).to_be_visible()


def test_without_javascript_all_errors_are_beside_their_fields(
    log_in: LogIn, cluster: Cluster
) -> None:
    log_in(WHO)
    page = log_in(WHO, java_script_enabled=False)
    page.goto(f"{cluster.url}/sessions/new")
    cpus(page).fill("9")
    memory(page).fill("plenty")
    page.get_by_label("Session name").fill("a b")
    page.get_by_role("button", name="Confirm and launch").last.click()
    for name, text in (
        ("name", "4 to 64"),
        ("resources-cpus", "9 is too many"),
        ("resources-memory", "its unit"),
    ):
        expect(page.locator(f"#error-{name}")).to_contain_text(text)
