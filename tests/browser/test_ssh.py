"""The page of a session's SSH access, as a researcher sees it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture
from tests.client import Api
from tests.cluster import Cluster
from tests.slurm.conftest import MakeApi

WHO = "alice"


@pytest.fixture
def api(make_api: MakeApi) -> Iterator[Api]:
    """The researcher's API client: launches, and cleans up."""
    found = make_api(WHO)
    yield found
    found.clean()


def test_a9_ssh_from_the_page_to_a_shell(
    cluster: Cluster, api: Api, log_in: LogIn, picture: Picture, tmp_path: Path
) -> None:
    small = {"environment": "busybox", "resources": {"cpus": 1, "memory": "300m"}}
    session = api.running(name="harbour1", **small)["id"]
    page = log_in(WHO)
    page.goto(f"{cluster.url}/sessions/{session}/ssh")
    expect(page.get_by_text("Nobody can connect with SSH until you open it.")).to_be_visible()
    clean_in_both_themes(page)
    picture(page, "ssh-closed")
    page.get_by_role("button", name="Open SSH").click()
    command = page.get_by_label("A shell", exact=True)
    expect(command).to_be_visible(timeout=20_000)
    expect(page.get_by_text("Open", exact=True)).to_be_visible()
    clean_in_both_themes(page)
    fits(page, 1280, 390, 320)
    picture(page, "ssh-open")
    page.emulate_media(color_scheme="dark")
    picture(page, "ssh-dark")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 390, "height": 844})
    picture(page, "ssh-narrow")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the key").click()
    key = tmp_path / "id_container"
    download.value.save_as(key)
    key.chmod(0o600)
    known = tmp_path / "known_hosts"
    known.write_text(page.get_by_label("The line for ~/.ssh/known_hosts", exact=True).inner_text())
    # The shown commands work as they are; only the paths of the two files are the test's own.
    typed = command.inner_text().replace("~/.ssh/id_container", str(key))
    options = f"-F none -o UserKnownHostsFile={known} -o StrictHostKeyChecking=yes"
    typed = f"{typed.replace('ssh ', f'ssh {options} ', 1)} id -un"
    done = subprocess.run(typed, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout == f"{WHO}\n", done
    page.get_by_role("button", name="Close SSH and cut all connections").click()
    expect(page.get_by_role("button", name="Open SSH")).to_be_visible()
    expect(command).to_have_count(0)
