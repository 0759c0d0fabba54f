"""A job's output: followed while it grows, searched, downloaded; and files that are none."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.batch_jobs import WHO, api, page
from tests.browser.conftest import LogIn, Picture
from tests.browser.logs import find_a_hundred
from tests.support.batch_jobs import sbatch, wait_for_job
from tests.support.client import Api
from tests.support.cluster import Cluster

__all__ = ["api", "page"]

LINES = "seq -f 'line %07.0f of the fit' 0 2999; echo to-errors >&2; sleep 300"


def test_an_output_is_followed_searched_and_downloaded(
    cluster: Cluster, api: Api, page: Page, picture: Picture, tmp_path: Any
) -> None:
    files = ("--output=my run %j.out", "--error=my run %j.err")
    number = sbatch(cluster, WHO, LINES, "--job-name=fit", *files)
    wait_for_job(api, number, "RUNNING")
    page.goto(f"{cluster.url}/jobs/{number}/output")
    log = page.get_by_role("log")
    expect(log).to_contain_text("line 0002999 of the fit")
    grow = f'echo 2026-01-31T10:00:00Z größe-is-new >> "my run {number}.out"'
    cluster.shell("login", f"cd && {grow}", user=WHO)
    expect(log).to_contain_text("2026-01-31T10:00:00Z größe-is-new")  # as it was written
    find_a_hundred(page)
    picture(page, "job-output")
    clean_in_both_themes(page)
    fits(page, 1280, 390, 320)
    page.get_by_label("Wrap lines").uncheck()
    expect(log).to_have_class(re.compile("unwrapped"))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == f"job-{number}.out"
    download.value.save_as(tmp_path / "out")
    assert (tmp_path / "out").read_text().count("\n") == 3001
    page.get_by_role("link", name="Errors").click()
    expect(page.get_by_role("log")).to_contain_text("to-errors")


def test_an_output_that_is_written_anew_is_shown_from_its_beginning(
    cluster: Cluster, api: Api, page: Page
) -> None:
    number = sbatch(cluster, WHO, LINES, "--output=anew-%j.out")
    wait_for_job(api, number, "RUNNING")
    page.goto(f"{cluster.url}/jobs/{number}/output")
    log = page.get_by_role("log")
    expect(log).to_contain_text("line 0002999")
    cluster.shell("login", f"cd && echo from-the-beginning > anew-{number}.out", user=WHO)
    expect(log).to_have_text("from-the-beginning", use_inner_text=True)  # not the hidden button's


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("rm {0}", "it was deleted or moved"),
        ("rm {0}; mkdir {0}", "is a folder"),
        ("rm {0}; mkfifo {0}", "is a device or a pipe"),
        ("rm {0}; ln -s /dev/zero {0}", "is a device or a pipe"),
        ("chmod 0 {0}", "Permission denied"),
        ("rm {0}; ln -s /root/.bashrc {0}", "Permission denied"),
    ],
)
def test_what_is_no_file_is_told_in_words(
    cluster: Cluster, api: Api, page: Page, change: str, words: str
) -> None:
    number = sbatch(cluster, WHO, "echo done", "--output=odd-%j.out")
    wait_for_job(api, number, "COMPLETED")
    cluster.shell("login", f"cd && {change.format(f'odd-{number}.out')}", user=WHO)
    try:
        page.goto(f"{cluster.url}/jobs/{number}/output")
        expect(page.locator("#log-state")).to_contain_text(words)
        clean_in_both_themes(page)
    finally:  # other tests read whatever is in this home
        cluster.shell("login", f"cd && rm -rf odd-{number}.out", user=WHO)


def test_an_administrator_reads_it_and_the_owner_is_told(
    cluster: Cluster, api: Api, page: Page, log_in: LogIn
) -> None:
    number = sbatch(cluster, WHO, "echo hello; sleep 300")
    wait_for_job(api, number, "RUNNING")
    admin = log_in("admin")
    admin.goto(f"{cluster.url}/jobs/{number}")
    expect(admin.get_by_text("who is told if you read it").first).to_be_visible()
    admin.goto(f"{cluster.url}/jobs/{number}/output")
    expect(admin.get_by_role("log")).to_contain_text("hello")
    page.goto(f"{cluster.url}/jobs/{number}/output")
    expect(page.get_by_text("admin (an administrator) read it")).to_be_visible()
