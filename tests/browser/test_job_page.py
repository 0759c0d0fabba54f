"""The page of one job: its facts, its use, its end, and what can be done to it."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.batch_jobs import WHO, api, page
from tests.browser.conftest import LogIn, Picture
from tests.support.batch_jobs import sbatch, wait_for_job
from tests.support.client import Api
from tests.support.cluster import Cluster

__all__ = ["api", "page"]

BUSY = "python3 -c 'x = bytearray(60 << 20); any(iter(int, 1))'"


def test_a_running_job_its_use_and_its_end(
    cluster: Cluster, api: Api, page: Page, picture: Picture
) -> None:
    number = sbatch(cluster, WHO, f"echo begun; {BUSY}", "--job-name=busy", "--output=busy-%j.out")
    wait_for_job(api, number, "RUNNING")
    page.goto(f"{cluster.url}/jobs/{number}")
    head, facts, use = (
        page.locator(f"#{name}") for name in ("detail-head", "job-facts", "job-use")
    )
    expect(head).to_contain_text("busy")
    expect(head).to_contain_text("Running")
    for shown in (f"busy-{number}.out", "100 MB", "10 min"):
        expect(facts).to_contain_text(shown)
    expect(page.locator(".log-end")).to_contain_text("begun")
    expect(use).to_contain_text("busy now", timeout=60_000)
    expect(use).to_contain_text("Memory")
    clean_in_both_themes(page)
    fits(page, 1440, 1024, 720, 390, 320)
    picture(page, "job-page")
    head.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"Cancel busy ({number})?")
    clean_in_both_themes(page, "#job-dialog")
    dialog.get_by_role("button", name="Cancel job").click()
    page.goto(f"{cluster.url}/jobs/{number}")
    expect(head).to_contain_text("Cancelled")
    expect(head.get_by_role("button")).to_have_count(0)
    expect(use).to_contain_text("What it used")
    expect(use).to_contain_text("CPU efficiency", timeout=90_000)
    clean_in_both_themes(page)
    picture(page, "job-page-over")


def test_a_job_that_waits_for_another_one(cluster: Cluster, api: Api, page: Page) -> None:
    first = sbatch(cluster, WHO, "sleep 300", "--job-name=first")
    second = sbatch(cluster, WHO, "true", "--job-name=second", f"--dependency=afterok:{first}")
    wait_for_job(api, second, "PENDING")
    page.goto(f"{cluster.url}/jobs/{second}")
    expect(page.locator("#job-facts")).to_contain_text("has ended successfully")
    page.locator("#detail-head").get_by_role("button", name="Hold").click()
    page.get_by_role("dialog").get_by_role("button", name="Hold job").click()
    page.goto(f"{cluster.url}/jobs/{second}")
    expect(page.locator("#detail-head")).to_contain_text("Held")
    clean_in_both_themes(page)
    page.get_by_role("link", name=f"job {first}").click()
    page.wait_for_url(f"**/jobs/{first}")
    expect(page.locator("#detail-head")).to_contain_text("first")


def test_a_job_by_keyboard_and_without_a_script(
    cluster: Cluster, api: Api, page: Page, log_in: LogIn
) -> None:
    number = sbatch(cluster, WHO, "sleep 300", "--job-name=plain")
    wait_for_job(api, number, "RUNNING")
    page.goto(f"{cluster.url}/jobs/{number}")
    button = page.locator("#detail-head").get_by_role("button", name="Requeue")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    plain = log_in(WHO, java_script_enabled=False)
    plain.goto(f"{cluster.url}/jobs/{number}")
    plain.get_by_role("link", name="Ask Slurm again").click()
    expect(plain.locator("#job-use")).to_contain_text("of 1 core busy on average")
    plain.get_by_role("button", name="Cancel").click()
    plain.get_by_role("button", name="Cancel job").click()
    wait_for_job(api, number, "CANCELLED")


def test_others_find_nothing(cluster: Cluster, api: Api, log_in: LogIn) -> None:
    number = sbatch(cluster, WHO, "sleep 300")
    wait_for_job(api, number, "RUNNING")
    bob = log_in("bob")
    for path in ("", "/output", "/output/text", "/usage"):
        answer = bob.goto(f"{cluster.url}/jobs/{number}{path}")
        assert answer is not None
        assert answer.status == 404
