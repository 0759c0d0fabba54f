"""Time limits as the wizard, the review and the rows show them, and extending them at any time."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import clean_in_both_themes
from tests.browser.conftest import LogIn, Picture, Researcher
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for

WHO = "alice"


@pytest.fixture
def api(researcher: Researcher) -> Api:
    """The researcher's API client: looks behind the pages, and cleans up."""
    return researcher(WHO)


def slurms_limit(cluster: Cluster, session: Json) -> str:
    """The time limit that Slurm itself has for the session."""
    words = ["squeue", "--noheader", f"--jobs={session['job_id']}", "--Format=TimeLimit"]
    return cluster.run("login", *words).strip()


def resources(page: Page, cluster: Cluster) -> Locator:
    """Open the wizard at its third step, and return the time field."""
    page.goto(f"{cluster.url}/sessions/new")
    page.get_by_role("link", name="Resources").click()
    return page.get_by_label("Time limit", exact=True)


def test_what_is_shown_is_what_happens(
    cluster: Cluster, api: Api, log_in: LogIn, picture: Picture
) -> None:
    page = log_in(WHO)
    field = resources(page, cluster)
    expect(field).to_have_value("1 h")
    expect(page.locator("#hint-time_limit")).to_have_text("up to 8 h")
    for typed, written in (("90", "1 h 30 min"), ("1:30", "1 h 30 min"), ("8h", "8 h")):
        field.fill(typed)
        field.press("Tab")
        expect(field).to_have_value(written)
    field.fill("")
    field.press("Tab")
    expect(field).to_have_value("1 h")
    picture(page, "time-limit")
    clean_in_both_themes(page)
    page.get_by_role("link", name="Review").click()
    line = page.locator(".review-list div", has_text="Time limit")
    expect(line).to_contain_text(re.compile(r"1 h, until about \S+"))
    page.get_by_role("button", name="Confirm and launch").click()
    page.get_by_role("button", name="Launch without a folder").click()
    page.wait_for_url("**/sessions?new=*")
    (made,) = api.list(state="running")
    assert made["time_limit"] == 60
    running = api.wait_state(made["id"], "RUNNING")
    assert slurms_limit(cluster, running) == "1:00:00"


def test_another_group_has_another_time(cluster: Cluster, log_in: LogIn) -> None:
    page = log_in(WHO)
    field = resources(page, cluster)
    group = page.locator("label.pick", has_text="short")
    expect(group).to_contain_text("up to 30 min, 15 min unless you say more")
    group.click()
    expect(field).to_have_value("15 min")
    expect(page.locator("#hint-time_limit")).to_have_text("up to 30 min")
    field.fill("20")
    page.locator("label.pick", has_text="main").click()
    expect(field).to_have_value("20 min")  # entered by a person, so it stays


def test_the_time_without_scripts(cluster: Cluster, api: Api, log_in: LogIn) -> None:
    page = log_in(WHO, java_script_enabled=False)
    page.goto(f"{cluster.url}/sessions/new")
    page.get_by_role("radio", name="short").check()
    page.get_by_role("button", name="Confirm and launch").last.click()
    page.get_by_role("button", name="Launch without a folder").click()
    (made,) = api.list(state="running")
    assert (made["resource_group"], made["time_limit"]) == ("short", 15)


def test_the_api_takes_times_and_names_the_limit(api: Api) -> None:
    groups = api.ask("GET", "/resource-groups")["resource_groups"]
    times = {g["name"]: (g["default_time_limit"], g["max_time_limit"]) for g in groups}
    assert (times["main"], times["short"]) == ((60, 480), (15, 30))
    assert api.launch(time_limit="1:30")["time_limit"] == 90
    small = {"environment": "python", "resources": {"cpus": 1, "memory": "600m"}}
    answer = api("POST", "/sessions", json=small | {"time_limit": "9 h"})
    assert answer.json()["errors"] == [
        {"field": "time_limit", "message": "9 h is too long: sessions here may run 8 h at most"}
    ]


def test_administrators_see_the_default(cluster: Cluster, log_in: LogIn) -> None:
    page = log_in("admin")
    page.goto(f"{cluster.url}/admin/limits")
    main = page.locator("[data-limited=main]").last
    expect(main).to_contain_text("scontrol update PartitionName=main DefaultTime=01:00:00")


def deadline(api: Api, session: Json) -> datetime:
    """When a session ends."""
    return datetime.fromisoformat(api.get(session["id"])["deadline"])


def test_a_session_is_extended_at_any_time(
    cluster: Cluster, api: Api, log_in: LogIn, picture: Picture
) -> None:
    session = api.running(name="longer1")
    page = log_in(WHO)
    before = deadline(api, session)

    def extend(by: str) -> None:
        page.get_by_role("button", name="More for longer1").click()
        menu = page.locator(f"#more-{session['id']}")
        expect(menu).to_be_visible()
        picture(page, f"extend-{by.replace(' ', '-')}")
        menu.get_by_role("button", name=f"Extend by {by}").click()

    extend("4 h")
    done = page.locator("#session-actions-done")
    # "Nov 23, 12:05 AM" when that is after midnight
    expect(done).to_contain_text(re.compile(r"longer1 now ends at (\w{3}\s\d{1,2},\s)?\d"))
    assert deadline(api, session) - before == timedelta(hours=4)
    picture(page, "extended")
    clean_in_both_themes(page)
    extend("3 h")  # as long as possible
    wait_for("8 h", lambda: deadline(api, session) - before == timedelta(hours=7), 10)
    assert slurms_limit(cluster, session) == "8:00:00"
    page.reload()
    page.get_by_role("button", name="More for longer1").click()
    menu = page.locator(f"#more-{session['id']}")
    expect(menu).to_contain_text("It cannot be extended: sessions here may run 8 h at most.")
    expect(menu.get_by_role("button", name="Extend by")).to_have_count(0)
    clean_in_both_themes(page)


def test_extending_over_the_api(api: Api) -> None:
    session = api.running()
    path = f"/sessions/{session['id']}/extend"
    assert api.ask("POST", path, json={"minutes": "max"})["time_limit"] == 480
    answer = api("POST", path, json={"minutes": "long"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith("minutes")


def test_extending_without_scripts(cluster: Cluster, api: Api, log_in: LogIn) -> None:
    session = api.running(name="plain1", time_limit=10)
    page = log_in(WHO, java_script_enabled=False)
    page.goto(f"{cluster.url}/sessions")
    page.get_by_role("button", name="Extend plain1 by 1 h").click()
    expect(page.get_by_text("plain1 now ends at")).to_be_visible()
    assert api.get(session["id"])["time_limit"] == 70
