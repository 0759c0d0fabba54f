"""The Jobs page on a real cluster: tabs, arrays, filters, actions, keyboard, widths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture
from tests.support.cluster import Cluster

WHO = "alice"
SOON = 60_000
WIDTHS = (320, 360, 480, 600, 719, 720, 759, 760, 900, 1024, 1280)

Submit = Callable[..., str]


@pytest.fixture
def submit(cluster: Cluster) -> Iterator[Submit]:
    """Submits a job by sbatch on the login node, as its users do; cancels it afterwards."""
    made: list[tuple[str, str]] = []

    def send(name: str, *options: str, command: str = "sleep 600", user: str = WHO) -> str:
        line = " ".join(options)
        number = cluster.shell(
            "login",
            f"cd && sbatch --parsable --job-name={name} --mem=50 {line} --wrap='{command}'",
            user=user,
        ).strip()
        made.append((user, number))
        return number

    yield send
    for user, number in made:
        cluster.shell("login", f"scancel {number}", user=user)


@pytest.fixture
def page(log_in: LogIn, cluster: Cluster) -> Page:
    """The Jobs page of the researcher."""
    found = log_in(WHO)
    found.goto(f"{cluster.url}/jobs")
    return found


def row_of(page: Page, number: str) -> Locator:
    """The row of a job, an array or a task."""
    return page.locator(f'tr[data-id="{number}"]')


def tab(page: Page, word: str) -> None:
    """Go to a tab."""
    page.locator("#tabs").get_by_role("link", name=re.compile(f"^{word}")).click()
    expect(page.locator("#tabs [aria-current]")).to_contain_text(word)


def test_a_job_moves_through_the_tabs(page: Page, submit: Submit, picture: Picture) -> None:
    held = submit("tabs-held", "--hold")
    failed = submit("tabs-failed", command="exit 7")
    running = submit("tabs-running")
    expect(row_of(page, running)).to_contain_text("Running", timeout=SOON)
    picture(page, "jobs-running")
    clean_in_both_themes(page)
    tab(page, "Pending")
    expect(row_of(page, held)).to_contain_text("Its owner holds it.", timeout=SOON)
    picture(page, "jobs-pending")
    clean_in_both_themes(page)
    tab(page, "Ended")
    expect(row_of(page, failed)).to_contain_text("exit code 7", timeout=SOON)
    picture(page, "jobs-ended")
    clean_in_both_themes(page)
    page.go_back()
    expect(row_of(page, held)).to_be_visible()


def test_an_array_of_20_opens_and_stays_open(page: Page, submit: Submit, picture: Picture) -> None:
    number = submit("sweep", "--array=0-19", "--hold")
    tab(page, "Pending")
    row = row_of(page, number)
    expect(row).to_contain_text("20 tasks", timeout=SOON)
    opener = row.locator(".open-array")
    expect(opener).to_have_attribute("aria-expanded", "false")
    opener.focus()
    page.keyboard.press("Enter")
    expect(opener).to_have_attribute("aria-expanded", "true")
    expect(page.locator("tr.task[data-name]").first).to_be_visible()
    with page.expect_response(lambda answer: "/jobs/rows" in answer.url):
        pass
    expect(opener).to_be_focused()
    expect(page.locator("tr.task[data-name]").first).to_be_visible()
    picture(page, "jobs-array")
    clean_in_both_themes(page)
    fits(page, *WIDTHS)
    page.reload()
    expect(opener).to_have_attribute("aria-expanded", "true")
    page.get_by_role("link", name="Only the tasks of").click()
    expect(page.get_by_role("heading", name=f"Tasks of array {number}")).to_be_visible()


def test_cancelling_asks_and_tells(page: Page, submit: Submit, picture: Picture) -> None:
    number = submit("cancelled")
    row = row_of(page, number)
    row.get_by_role("button", name=f"Cancel cancelled ({number})").click(timeout=SOON)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"Cancel cancelled ({number})?")
    expect(dialog).to_contain_text("It stops at once, or never starts.")
    expect(dialog.get_by_role("button", name="Back")).to_be_focused()
    picture(page, "jobs-dialog")
    clean_in_both_themes(page)
    page.keyboard.press("Escape")
    expect(row).to_be_visible()
    row.get_by_role("button", name=f"Cancel cancelled ({number})").click()
    dialog.get_by_role("button", name="Cancel job").click()
    expect(page.locator("#outcomes")).to_have_text(re.compile(r"1 job was cancelled\."))
    expect(row).to_have_count(0, timeout=SOON)
    tab(page, "Ended")
    expect(row).to_contain_text("cancelled", timeout=SOON)


def test_several_are_held_and_released_at_once(
    page: Page, submit: Submit, picture: Picture
) -> None:
    numbers = [submit(f"bulk{n}", "--begin=now+1hour") for n in range(3)]
    tab(page, "Pending")
    for n, number in enumerate(numbers):
        page.get_by_label(f"Select bulk{n} ({number})", exact=True).check(timeout=SOON)
    bar = page.get_by_role("region", name="Selected jobs")
    expect(bar).to_contain_text("3 selected")
    picture(page, "jobs-picked")
    clean_in_both_themes(page)
    bar.get_by_role("button", name="Hold 3 jobs").click()
    page.get_by_role("dialog").get_by_role("button", name="Hold 3 jobs").click()
    expect(page.locator("#outcomes")).to_contain_text("3 jobs were held.")
    for number in numbers:
        expect(row_of(page, number)).to_contain_text("Held", timeout=SOON)
    row_of(page, numbers[0]).get_by_role("button", name=re.compile("^Release")).click()
    page.get_by_role("dialog").get_by_role("button", name="Release job").click()
    expect(page.locator("#outcomes")).to_contain_text("1 job was released.")


def test_filters_and_search(page: Page, submit: Submit) -> None:
    number = submit("needle", "--hold")
    tab(page, "Pending")
    expect(row_of(page, number)).to_be_visible(timeout=SOON)
    page.get_by_role("searchbox").fill("needle")
    expect(page.locator("tr[data-name]")).to_have_count(1)
    expect(page).to_have_url(re.compile("[?&]q=needle"))
    page.get_by_role("searchbox").fill("nothing-like-it")
    expect(page.get_by_text("Nothing here matches")).to_be_visible()
    page.get_by_role("link", name="Show all").click()
    expect(row_of(page, number)).to_be_visible()
    page.get_by_label("Status", exact=True).select_option("FAILED")
    expect(page.locator("#tabs [aria-current]")).to_contain_text("Ended")
    page.get_by_label("Status", exact=True).select_option("PENDING")
    expect(row_of(page, number)).to_be_visible()


def test_headers_sort_by_keyboard_in_both_directions(page: Page, submit: Submit) -> None:
    long, short = submit("sort-b", "--hold", "--time=20"), submit("sort-a", "--hold", "--time=5")
    tab(page, "Pending")
    page.get_by_role("searchbox").fill("sort-")
    expect(page.locator("tr[data-name]")).to_have_count(2, timeout=SOON)
    for word, by in [("Time limit", "time_limit"), ("Job", "name")]:
        header = page.get_by_role("columnheader", name=word, exact=True)
        link = header.get_by_role("link")
        expect(link).to_have_attribute("href", re.compile("q=sort-"))  # these rows are filtered
        link.focus()
        for order, key, first in [("ascending", by, short), ("descending", f"-{by}", long)]:
            page.keyboard.press("Enter")
            expect(header).to_have_attribute("aria-sort", order)
            expect(page.locator("tr[data-name]").first).to_have_attribute("data-id", first)
            expect(link).to_be_focused()
            expect(page.get_by_label("Sort by")).to_have_value(key)
    page.reload()
    expect(page.get_by_label("Sort by")).to_have_value("-name")
    expect(page.locator("tr[data-name]").first).to_have_attribute("data-id", long)


def test_everything_works_without_a_script(
    browser: Chromium, log_in: LogIn, cookies: dict[str, Any], cluster: Cluster, submit: Submit
) -> None:
    log_in(WHO)
    number = submit("plain", "--array=0-3", "--hold")
    context = browser.new_context(java_script_enabled=False, storage_state=cookies[WHO])
    try:
        page = context.new_page()
        for _ in range(30):
            page.goto(f"{cluster.url}/jobs?state=pending&q=plain")
            if row_of(page, number).count():
                break
            page.wait_for_timeout(1000)
        row_of(page, number).locator(".open-array").click()
        expect(page.locator("tr.task[data-name]").first).to_be_visible()
        page.get_by_label(f"Select plain ({number})", exact=True).check()
        page.get_by_role("button", name="Cancel the selected jobs").click()
        expect(
            page.get_by_role("heading", name=f"Cancel plain ({number}), all of its tasks?")
        ).to_be_visible()
        page.get_by_role("button", name="Cancel job").click()
        expect(page.get_by_role("heading", name="1 job was cancelled.")).to_be_visible()
        page.get_by_role("link", name="Back").click()
        assert "q=plain" in page.url
    finally:
        context.close()


@pytest.mark.parametrize("who", [WHO, "admin"])
def test_the_page_fits_all_widths(
    log_in: LogIn, cluster: Cluster, submit: Submit, picture: Picture, who: str
) -> None:
    number = submit("a-long-name-of-a-job-" * 4)
    page = log_in(who)
    page.goto(f"{cluster.url}/jobs")
    expect(row_of(page, number)).to_be_visible(timeout=SOON)
    for state in ("pending", "running", "ended"):
        page.goto(f"{cluster.url}/jobs?state={state}")
        fits(page, *WIDTHS)
        page.set_viewport_size({"width": 320, "height": 844})
        picture(page, f"jobs-{who}-{state}-320")
        clean_in_both_themes(page)
        page.set_viewport_size({"width": 1280, "height": 800})


def test_others_jobs_are_not_found(page: Page, submit: Submit, cluster: Cluster) -> None:
    number = submit("bobs", user="bob")
    answer = page.goto(f"{cluster.url}/jobs/act/cancel?ids={number}")
    assert answer is not None
    assert answer.status == 404
    page.goto(f"{cluster.url}/jobs?owner=bob&q=bobs")
    expect(page.locator("tr[data-name]")).to_have_count(0)
