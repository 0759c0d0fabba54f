"""Shares of a GPU in the browser: requested, shown, waited for, and released.

The demo's GPU has 8 GB, and 1 fGPU is half of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture
from tests.browser.terminals import STARTS, Terminal
from tests.slurm.conftest import MakeApi
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for

WHO = "bob"
NARROW = (390, 320)
LEARNT = 90
"""Seconds after which the worker has read a changed limit (it polls once a minute)."""


@pytest.fixture
def api(make_api: MakeApi) -> Iterator[Api]:
    """The same researcher's API client, to check behind the pages and to clean up."""
    found = make_api(WHO)
    found.forget_folders()
    yield found
    found.clean_all()
    found("DELETE", "/presets/tenth")


@pytest.fixture
def admin(make_api: MakeApi) -> Iterator[Api]:
    """The administrator's API client; the template is removed afterwards."""
    found = make_api("admin")
    yield found
    found("DELETE", "/admin/templates/half-gpu")


def resources(page: Page, name: str, fgpu: str = "") -> Locator:
    """Fill in the wizard up to its third step, and return the GPU's field."""
    page.get_by_role("link", name="Start a session").click()
    page.get_by_label("Session name").fill(name)
    page.locator(".steps [data-go=resources]").click()
    page.get_by_label("Memory", exact=True).fill("600 MB")
    field = page.get_by_label("GPU", exact=True)
    if fgpu:
        line = field.locator("option", has_text=re.compile(rf"^\s*{re.escape(fgpu)} fGPU"))
        field.select_option(line.get_attribute("value"))
    return field


def launch(page: Page) -> None:
    """Launch without folders, and wait for the list."""
    page.get_by_role("button", name="Confirm and launch").click()
    page.get_by_role("button", name="Launch without a folder").click()
    page.wait_for_url("**/sessions**")


def state(page: Page, name: str, wanted: str) -> Locator:
    """Wait until a session's row shows a state, without reloading, and return the row."""
    row = page.locator(f"tr[data-name={name}]")
    expect(row).to_have_attribute("data-state", wanted, timeout=STARTS)
    return row


def end(page: Page, name: str) -> None:
    """End a session with its button."""
    page.get_by_role("button", name=f"End {name}", exact=True).click()
    page.get_by_role("button", name="End session").click()


def holds(page: Page, fgpu: str) -> None:
    """Wait until the bar shows this amount as the user's own, without reloading."""
    meter = page.locator("[data-meter=fgpu] dd").first
    expect(meter).to_contain_text(re.compile(rf"^\s*{re.escape(fgpu)} of 2\b"), timeout=STARTS)


def test_half_an_fgpu_from_the_wizard_to_nvidia_smi(
    log_in: LogIn, api: Api, picture: Picture
) -> None:
    page = log_in(WHO)
    holds(page, "0")
    field = resources(page, "half1")
    offered = [text.strip() for text in field.locator("option").all_inner_texts()]
    assert offered == [
        "None",
        "0.5 fGPU · 2 GB · 25 %",
        "1 fGPU · 4 GB · 50 %",
        "1.5 fGPU · 6 GB · 75 %",
        "2 fGPU · one whole GPU · 8 GB",
    ]
    hint = page.locator("#hint-resources-fgpu")
    expect(hint).to_contain_text("up to 2 GPU shares (fGPU) · 2 free for you now")
    stepper = page.locator("[data-gpu-field]")
    stepper.get_by_role("button", name="More").click()
    stepper.get_by_role("button", name="More").click()
    expect(hint).to_contain_text("4 GB of GPU memory and 50 % of the multiprocessors")
    stepper.get_by_role("button", name="Less").click()
    expect(hint).to_contain_text("2 GB of GPU memory and 25 % of the multiprocessors")
    page.locator("[aria-label='About GPU']").click()
    expect(page.get_by_text("ordinary out-of-memory error")).to_be_visible()
    clean_in_both_themes(page)
    picture(page, "gpu-field")
    fits(page, *NARROW)
    page.locator(".steps [data-go=review]").click()
    review = page.locator(".review-list")
    expect(review).to_contain_text("0.5 fGPU · 2 GB of GPU memory and 25 %")
    expect(page.locator(".outlook")).to_contain_text("2 fGPU")
    launch(page)
    row = state(page, "half1", "RUNNING")
    holds(page, "0.5")
    expect(row.locator(".c-use")).to_contain_text("0.5 fGPU")
    expect(row.locator(".c-use")).to_contain_text("2 GB GPU")
    # Usage arrives with the node's next report.
    expect(row.locator(".c-use")).to_contain_text("GPU memory: 2 GB GPUin use: ", timeout=STARTS)
    made = next(one for one in api.list(state="running") if one["name"] == "half1")
    terminal = Terminal(
        page.context, api.ask("POST", f"/sessions/{made['id']}/apps/terminal")["url"]
    )
    terminal.run("nvidia-smi")
    terminal.shows("/ 2048MiB")
    page.bring_to_front()
    clean_in_both_themes(page)
    picture(page, "gpu-list")
    fits(page, *NARROW)
    end(page, "half1")
    holds(page, "0")


def test_three_where_two_fit_and_the_third_runs_when_one_ends(
    log_in: LogIn, api: Api, picture: Picture
) -> None:
    page = log_in(WHO)
    resources(page, "third", "1")
    page.get_by_label("Number of sessions", exact=True).fill("3")
    launch(page)
    state(page, "third1", "RUNNING")
    state(page, "third2", "RUNNING")
    waits = state(page, "third3", "PENDING")
    holds(page, "2")
    expect(waits.locator(".why")).to_contain_text("GPU", timeout=STARTS)
    picture(page, "gpu-waits")
    end(page, "third1")
    state(page, "third3", "RUNNING")
    holds(page, "2")


@pytest.fixture
def short_without_gpu(cluster: Cluster, api: Api) -> Iterator[None]:
    """Leave the partition "short" the node without a GPU, until the test is over."""

    def known(offered: bool) -> bool:
        groups = api.ask("GET", "/resource-groups")["resource_groups"]
        return next(bool(one["gpus"]) for one in groups if one["name"] == "short") == offered

    set_nodes = ["scontrol", "update", "PartitionName=short"]
    cluster.run("ctl", *set_nodes, "Nodes=n2")
    try:
        wait_for("the partition without GPUs", lambda: known(False), LEARNT)
        yield
    finally:
        cluster.run("ctl", *set_nodes, "Nodes=n1,n2")
        wait_for("the partition with GPUs", lambda: known(True), LEARNT)


def test_offered_amounts_depend_on_the_resource_group(
    log_in: LogIn, short_without_gpu: None
) -> None:
    page = log_in(WHO)
    field = resources(page, "groups1", "1")
    page.locator("[name=resource_group][value=short]").check()
    expect(field).to_be_hidden()
    expect(field).to_have_value("")
    expect(page.locator("[data-so-far]")).not_to_contain_text("fGPU")
    page.locator("[name=resource_group][value=main]").check()
    expect(field).to_be_visible()
    expect(field.locator("option:not([disabled])")).to_have_count(5)


def test_amounts_between_two_steps_are_rounded_up_with_a_notice(
    log_in: LogIn, api: Api, admin: Api
) -> None:
    preset = {
        "environment": "python",
        "resources": {"cpus": 1, "memory": "600m", "fgpu": 0.3},
    }
    api.ask("PUT", "/presets/tenth", 201, json=preset)
    page = log_in(WHO)
    page.goto(page.url.replace("/sessions", "/sessions/new?preset=tenth#resources"))
    expect(page.get_by_label("GPU", exact=True)).to_have_value(re.compile("0.5$"))
    expect(page.locator(".field-note")).to_contain_text("0.3 fGPU was requested")
    template = {
        "title": "Half",
        "resources": {"cpus": 1, "memory": "600m", "fgpu": 9},
    }
    admin.ask("PUT", "/admin/templates/half-gpu", json=template)
    office = log_in("admin")
    office.goto(office.url.replace("/sessions", "/admin/templates/half-gpu/edit"))
    office.get_by_label("GPU, in fGPU").fill("0.5")
    clean_in_both_themes(office)
    fits(office, *NARROW)
    office.get_by_role("button", name="Save").click()
    expect(office.locator("#t-half-gpu")).to_contain_text("0.5 fGPU")
    page.reload()
    page.locator(".steps [data-go=resources]").click()
    expect(page.get_by_role("radio", name="Half")).to_be_enabled()
    expect(page.get_by_text("1 core · 600 MB · 0.5 fGPU")).to_be_visible()
