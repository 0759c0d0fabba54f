"""The page of a session's SSH access, as a researcher sees it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.client import Api
from tests.support.cluster import Cluster, authority, wait_for

WHO = "alice"


@pytest.fixture
def api(make_api: MakeApi) -> Iterator[Api]:
    """The researcher's API client: launches, and cleans up."""
    found = make_api(WHO)
    yield found
    found.clean()


@pytest.fixture(autouse=True)
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block's curl trusts the cluster's CA, as a site's computers trust the site's."""
    if authority():
        monkeypatch.setenv("CURL_CA_BUNDLE", authority())


def run(argv: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command and return what it printed."""
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def test_ssh_from_the_page_to_a_shell(
    cluster: Cluster, api: Api, log_in: LogIn, picture: Picture, tmp_path: Path
) -> None:
    small = {"environment": "busybox", "resources": {"cpus": 1, "memory": "300m"}}
    session = api.running(name="harbour1", **small)["id"]
    page = log_in(WHO)
    page.goto(f"{cluster.url}/sessions/{session}/ssh")
    expect(page.get_by_text("Nobody can connect with SSH until you open it.")).to_be_visible()
    order = page.locator(".ssh h2").all_inner_texts()
    assert [title[0] for title in order] == ["1", "2"], order
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
        page.get_by_text("1. Once: your key").click()
        page.get_by_role("button", name="Download the key").click()
    key = tmp_path / "id_container"
    download.value.save_as(key)
    key.chmod(0o600)
    known = tmp_path / "known_hosts"
    page.get_by_text("For this session only, on any system").click()
    known.write_text(page.get_by_label("The line for ~/.ssh/known_hosts", exact=True).inner_text())
    # The shown commands work as they are; only the paths of the two files are the test's own.
    typed = command.inner_text().replace("~/.ssh/id_container", str(key))
    options = f"-F none -o UserKnownHostsFile={known} -o StrictHostKeyChecking=yes"
    typed = f"{typed.replace('ssh ', f'ssh {options} ', 1)} id -un"
    done = subprocess.run(typed, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout == f"{WHO}\n", done
    # The block for all sessions: nothing in it belongs to this session.
    block = page.get_by_label("The block for ~/.ssh/config", exact=True).inner_text()
    assert session not in block
    assert "harbour1" not in block
    config = tmp_path / "config"
    config.write_text(block.replace("~/.ssh/id_container", str(key)))
    short = [
        "ssh", "-F", str(config), "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes",
    ]  # fmt: skip
    done = run([*short, "slipway-harbour1", "id", "-un"])
    assert done.stdout == f"{WHO}\n", done
    done = run([*short, "slipway-nothing9", "true"])
    assert (done.returncode, "no running session of this name" in done.stderr) == (255, True)
    page.get_by_role("button", name="Close SSH and cut all connections").click()
    expect(page.get_by_role("button", name="Open SSH")).to_be_visible()
    expect(command).to_have_count(0)


def test_a_key_of_ones_own_works_until_it_is_removed_also_in_open_connections(
    cluster: Cluster, api: Api, log_in: LogIn, picture: Picture, tmp_path: Path
) -> None:
    for known in api.ask("GET", "/me/ssh-keys")["keys"]:  # left by a test that failed
        api("DELETE", f"/me/ssh-keys/{known['id']}")
    mine = tmp_path / "mine"
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "laptop", "-f", str(mine)]
    subprocess.run(made, check=True)
    page = log_in(WHO)
    page.goto(f"{cluster.url}/account/ssh")
    page.get_by_role("textbox", name="Public key").fill(mine.read_text())
    page.get_by_role("button", name="Add key").click()
    expect(page.get_by_text("This is a private key")).to_be_visible()
    expect(page.get_by_role("textbox", name="Public key")).to_have_attribute("aria-invalid", "true")
    page.get_by_role("textbox", name="Public key").fill(mine.with_suffix(".pub").read_text())
    page.get_by_role("button", name="Add key").click()
    expect(page.get_by_text("The key was added.")).to_be_visible()
    clean_in_both_themes(page)
    fits(page, 1280, 390, 320)
    picture(page, "ssh-keys")
    small = {"environment": "busybox", "resources": {"cpus": 1, "memory": "300m"}}
    session = api.running(name="ownkey1", **small)["id"]
    api.ask("POST", f"/sessions/{session}/apps/ssh")
    wait_for("SSH", lambda: api.ask("GET", f"/sessions/{session}/ssh")["host_key"], 30)
    config = tmp_path / "config"
    config.write_text(page.get_by_label("The block for ~/.ssh/config", exact=True).inner_text())
    connect = [
        "ssh", "-F", str(config), "-i", str(mine), "-o", "IdentityAgent=none",
        "-o", "BatchMode=yes", "slipway-ownkey1",
    ]  # fmt: skip
    opened = subprocess.Popen(
        [*connect, "echo in; sleep 300"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert opened.stdout is not None
    assert opened.stdout.readline() == "in\n"
    page.get_by_role("button", name="Remove the key laptop").click()
    expect(page.get_by_text("all SSH connections were cut")).to_be_visible()
    assert opened.wait(15) == 255
    opened.communicate()  # closes its pipes
    done = run([*connect, "true"])
    assert "Permission denied" in done.stderr, done
