"""Account and QOS in the wizard, on a cluster where a person has several accounts.

The accounts are made here, and taken away again.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.browser_wizard import go_to_step, launched_ids, press
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for

WHO = "bob"
ACCOUNT = "wizard_account"
QOS = ("wizard_short", "wizard_spare")
MAKE = (
    f"add account {ACCOUNT} Description=Crystal_growth Organization=demo",
    f"add qos {QOS[0]}",
    f"modify qos {QOS[0]} set MaxTRESPerJob=cpu=1 MaxWall=30",
    f"add qos {QOS[1]}",
    f"modify account {ACCOUNT} set QOS={QOS[0]},{QOS[1]} DefaultQOS={QOS[0]}",
    f"add user {WHO} Account={ACCOUNT}",
)
REMOVE = (
    f"remove user {WHO} Account={ACCOUNT}",
    f"remove account {ACCOUNT}",
    f"remove qos {QOS[0]}",
    f"remove qos {QOS[1]}",
)


@pytest.fixture(scope="module")
def accounts(cluster: Cluster) -> Iterator[None]:
    """The second account."""
    for change in MAKE:
        cluster.shell("ctl", f"sacctmgr -i -Q {change} || [ $? -eq 1 ]")
    yield
    for change in REMOVE:
        cluster.shell("ctl", f"sacctmgr -i -Q {change} || [ $? -eq 1 ]")


@pytest.fixture
def api(make_api: MakeApi, accounts: None) -> Iterator[Api]:
    """The researcher's API client."""
    found = make_api(WHO)
    yield found
    found.clean_all()


@pytest.fixture
def page(log_in: LogIn, api: Api, cluster: Cluster) -> Page:
    """The wizard's step with the resources, once the portal has read the account and its QOS."""
    found = log_in(WHO)

    def offered() -> bool:
        found.goto(f"{cluster.url}/sessions/new")
        return found.locator(f"#field-account option[value={ACCOUNT}]").count() == 1

    wait_for("the portal has not read the account", offered, 120, 2)
    go_to_step(found, "resources")
    return found


def test_account_and_qos_decide_the_bounds_and_reach_slurm(
    page: Page, api: Api, cluster: Cluster, picture: Picture
) -> None:
    account, qos = page.get_by_label("Account", exact=True), page.get_by_label("QOS", exact=True)
    # What the last session had is proposed: of another test, or of an earlier run of this one.
    unticked = "boxes => boxes.forEach((box) => { box.checked = false })"
    page.locator("[name=mount]").evaluate_all(unticked)
    if account.input_value():
        account.select_option("")
    expect(qos).to_have_count(0)  # one only
    account.focus()
    page.keyboard.type(ACCOUNT)
    expect(page.locator("[data-bound=cpus]")).to_have_text("1")
    expect(page.locator("[data-bound=time]")).to_have_text("30 min")
    expect(account).to_be_focused()
    expect(qos).to_have_value("")
    assert violations(page) == []
    picture(page, "slurm-options")
    qos.select_option(QOS[1])
    expect(page.locator("[data-bound=cpus]")).not_to_have_text("1")
    page.get_by_label("Memory", exact=True).fill("600 MB")
    page.get_by_label("Session name").evaluate("field => { field.value = 'charged' }")
    go_to_step(page, "review")
    expect(page.locator("#review-text")).to_contain_text(ACCOUNT)
    expect(page.locator("#review-text")).to_contain_text(QOS[1])
    press(page, "Confirm and launch")
    dialog = page.locator("#no-folder")
    expect(dialog).to_be_visible()
    dialog.locator("[data-bare]").click()
    (made,) = launched_ids(page)
    job = str(wait_for("no job", lambda: api.ask("GET", f"/sessions/{made}")["job_id"], 60))
    shown = cluster.shell("ctl", f"scontrol show job {job}")
    assert f"Account={ACCOUNT} QOS={QOS[1]}" in shown
    page.goto(f"{cluster.url}/sessions/new")
    expect(page.locator("#field-account")).to_have_value(ACCOUNT)  # proposed again


def test_the_composers_qos_follow_the_account(page: Page, cluster: Cluster) -> None:
    page.goto(f"{cluster.url}/jobs/new")
    offers = page.locator("#offers-qos option")
    values = "options => options.map((option) => option.value)"
    every = offers.evaluate_all(values)
    assert set(QOS) < set(every)
    page.get_by_label("Account", exact=True).fill(ACCOUNT)
    expect(offers).to_have_count(len(QOS))
    assert offers.evaluate_all(values) == list(QOS)
    expect(page.locator("#hint-qos")).to_have_text(", ".join(QOS))
    page.get_by_label("Account", exact=True).fill("unfinished")
    expect(offers).to_have_count(len(every))
    assert violations(page) == []
