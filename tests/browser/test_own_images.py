"""An image of one's own in the wizard, from a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.axe import violations
from tests.browser.conftest import LogIn
from tests.client import Api
from tests.cluster import Cluster
from tests.own_images import BUSYBOX, FOLDER, as_alice
from tests.slurm.conftest import MakeApi


@pytest.fixture
def api(make_api: MakeApi, cluster: Cluster) -> Iterator[Api]:
    """Alice's API client; she has an image of her own."""
    found = make_api("alice")
    as_alice(cluster, f"mkdir -p {FOLDER}; cp {BUSYBOX} {FOLDER}/mine.sif")
    yield found
    found.clean_all()
    as_alice(cluster, f"rm -rf {FOLDER}")


def test_an_own_image_is_launched_from_the_wizard(log_in: LogIn, api: Api) -> None:
    page = log_in("alice")
    page.get_by_role("link", name="Start a session").first.click()
    field = page.get_by_label("Your own image", exact=True).and_(page.get_by_role("combobox"))
    expect(field).to_be_hidden()
    page.locator("label[for=image-own]").first.click()
    expect(field).to_be_visible()
    field.fill("/etc/passwd.sif")
    page.get_by_role("button", name="Next").click()
    wrong = page.locator("#error-image")
    expect(wrong).to_contain_text("Choose a file in one of your storage folders")
    field.fill("images/mine.sif")
    page.get_by_role("button", name="Next").click()
    expect(wrong).to_be_hidden()
    assert violations(page) == []
    page.locator(".steps [data-go=review]").click()
    expect(page.locator("#review-text")).to_contain_text("images/mine.sif")
    page.get_by_role("button", name="Confirm and launch").click()
    page.get_by_role("button", name="Launch without a folder").click()
    expect(page.get_by_text("mine.sif").first).to_be_visible()
    session = api.list(limit=1)[0]
    assert session["image"] == "images/mine.sif"
    api.wait_state(session["id"], "RUNNING")
