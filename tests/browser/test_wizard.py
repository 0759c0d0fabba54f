"""The launch wizard on the real cluster, step by step."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.browser_wizard import STARTS, STEPS, expect_step, go_to_step, launched_ids, press
from tests.support.client import NO_GPU, Api
from tests.support.cluster import Cluster, healthy, wait_for

WHO = "bob"


@pytest.fixture
def api(make_api: MakeApi, cluster: Cluster) -> Iterator[Api]:
    """The same researcher's API client, to check behind the pages and to clean up."""
    found = make_api(WHO)
    found.forget_folders()
    yield found
    found.clean_all()
    for preset in found.ask("GET", "/presets")["presets"]:
        found("DELETE", f"/presets/{preset['name']}")
    cluster.shell("login", f"rm -rf /home/{WHO}/storage", user=WHO)


@pytest.fixture
def page(log_in: LogIn, api: Api) -> Page:
    """The wizard's first step."""
    found = log_in(WHO)
    found.get_by_role("link", name="Start a session").first.click()
    expect(found.get_by_role("button", name="Next")).to_be_visible()  # its script has run
    expect_step(found, "environment")
    return found


def small(page: Page, name: str) -> None:
    """Fill in a small session of this name, up to the third step."""
    page.get_by_label("Session name").fill(name)
    go_to_step(page, "resources")
    page.get_by_label("Memory", exact=True).fill("600 MB")


def check_page(page: Page) -> None:
    """No axe-core findings in either theme, and nothing wider than the window."""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_four_steps_by_keyboard_alone(page: Page, api: Api) -> None:
    page.get_by_label("Session name").focus()
    page.keyboard.type("keyboard1")
    for name in STEPS[1:]:
        page.keyboard.press("Enter")
        expect_step(page, name)
        expect(page.locator(f"#title-{name}")).to_be_focused()
        if name == "folders":
            page.keyboard.press("Tab")  # what the home directory is
            page.keyboard.press("Tab")
            expect(page.get_by_label("Home directory")).to_be_focused()
            page.keyboard.press("Space")
        if name == "resources":
            page.get_by_label("Memory", exact=True).focus()
            page.keyboard.press("Control+A")
            page.keyboard.type("600 MB")
    page.go_back()
    expect_step(page, "resources")
    expect(page.get_by_label("Memory", exact=True)).to_have_value("600 MB")
    page.go_back()
    page.go_back()
    expect_step(page, "environment")
    expect(page.get_by_label("Session name")).to_have_value("keyboard1")
    page.go_forward()
    expect_step(page, "folders")
    expect(page.get_by_label("Home directory")).to_be_checked()
    press(page, "Next")
    expect_step(page, "resources")  # before that, the server checks the step, and Next does nothing
    press(page, "Next")
    expect_step(page, "review")
    expect(page.locator(".review-list")).to_contain_text("keyboard1")
    press(page, "Back")
    expect_step(page, "resources")
    button = page.get_by_role("button", name="Confirm and launch")
    button.focus()
    page.keyboard.press("Enter")
    made = api.get(launched_ids(page)[0])
    assert (made["name"], made["resources"]["memory"]) == ("keyboard1", "600m")
    assert [mount["folder"] for mount in made["mounts"]] == ["home"]


def test_the_focus_stays_when_the_folders_arrive_late(page: Page) -> None:
    go_to_step(page, "folders")
    page.get_by_label("Home directory").focus()
    page.keyboard.press("Space")
    page.evaluate(
        """import(document.querySelector("script[type=module]").src).then(({ htmx }) =>
        htmx.ajax("GET", "/sessions/new/folders",
        {source: "#folder-list", target: "#folder-list", swap: "outerHTML"}))"""
    )
    expect(page.get_by_label("Home directory")).to_be_checked()
    expect(page.get_by_label("Home directory")).to_be_focused()
    page.keyboard.press("Enter")
    expect_step(page, "resources")


def test_the_first_page_launches_with_the_defaults(page: Page, api: Api) -> None:
    press(page, "Confirm and launch")
    press(page, "Launch without a folder")
    made = api.get(launched_ids(page)[0])
    assert made["resources"] == {"cpus": 1, "memory": "1g", "shared_memory": "512m"} | NO_GPU
    expect(page.locator(f"#s-{made['id']}")).to_have_attribute(
        "data-state", "RUNNING", timeout=STARTS
    )


def test_the_selected_environment_and_version_is_what_runs(page: Page, api: Api) -> None:
    offered = page.locator("[name=image]:not([value=own])")
    wanted = api.ask("GET", "/environments")["environments"]
    found = [offered.nth(n).get_attribute("value") or "" for n in range(offered.count())]
    assert sorted(found) == sorted(
        f"{e['name']}/{v['version']}" for e in wanted for v in e["versions"]
    )
    offered.last.check()
    small(page, "picked1")
    press(page, "Confirm and launch")
    press(page, "Launch without a folder")
    made = api.get(launched_ids(page)[0])
    assert f"{made['environment']}/{made['version']}" == found[-1]


def test_names_follow_their_rule_or_are_generated(page: Page, api: Api) -> None:
    expect(page.locator("#hint-name")).to_contain_text("4 to 64 letters and digits")
    small(page, "two words")
    go_to_step(page, "review")
    expect(page.locator("#review-text")).to_contain_text(
        "Session name: use 4 to 64 letters and digits"
    )
    page.get_by_role("link", name="Change it").click()
    expect_step(page, "environment")
    expect(page.get_by_label("Session name")).to_be_focused()
    page.get_by_label("Session name").fill("")
    go_to_step(page, "review")
    expect(page.locator("#review-text")).to_contain_text("chosen at launch")
    press(page, "Confirm and launch")
    press(page, "Launch without a folder")
    assert len(api.get(launched_ids(page)[0])["name"]) > 4


def test_only_permitted_groups_with_their_free_resources(page: Page, api: Api) -> None:
    groups = [group["name"] for group in api.ask("GET", "/resource-groups")["resource_groups"]]
    free = api.ask("GET", "/usage")["cpus"]["available"]
    go_to_step(page, "resources")
    place = page.locator(".groups")
    for name in groups:
        expect(place).to_contain_text(name)
    expect(place.locator("[name=resource_group]")).to_have_count(
        len(groups) if len(groups) > 1 else 0
    )
    expect(place).to_contain_text(f"free now: {free} core")


def test_a_template_stands_for_its_resources(
    page: Page, api: Api, make_api: MakeApi, picture: Picture
) -> None:
    admin = make_api("admin")
    small = {"cpus": 1, "memory": "700m", "shared_memory": "64m"}
    large = {"cpus": 64, "memory": "700m"}
    try:
        for name, title, asked in (("fits", "Trying out", small), ("huge", "Whole rack", large)):
            body = {"title": title, "resources": asked, "time_limit": 30}
            admin.ask("PUT", f"/admin/templates/{name}", json=body)
        page.reload()
        go_to_step(page, "resources")
        expect(page.get_by_label("Trying out")).to_be_checked()  # the first that fits
        page.get_by_label("Custom allocation").check()
        expect(page.get_by_label("CPU cores", exact=True)).to_be_visible()
        expect(page.get_by_label("Whole rack")).to_be_disabled()
        expect(page.locator(".templates")).to_contain_text("Not available to you: ")
        page.get_by_label("Trying out").check()
        expect(page.get_by_label("CPU cores", exact=True)).to_be_hidden()
        check_page(page)
        picture(page, "wizard-templates")
        go_to_step(page, "review")
        expect(page.locator(".review-list")).to_contain_text("700 MB")
        press(page, "Confirm and launch")
        press(page, "Launch without a folder")
        made = api.get(launched_ids(page)[0])
        assert (made["resources"], made["time_limit"]) == (small | NO_GPU, 30)
    finally:
        for name in ("fits", "huge"):
            admin("DELETE", f"/admin/templates/{name}")


def test_limits_and_their_origin(page: Page, api: Api, picture: Picture) -> None:
    go_to_step(page, "resources")
    for field in ("CPU cores", "Memory", "Shared memory", "Number of sessions", "Time limit"):
        about = page.locator("summary").and_(page.get_by_label(f"About {field}", exact=True))
        about.focus()
        page.keyboard.press("Enter")
        expect(page.locator("details[open] .info-text")).to_have_count(1)
        expect(page.locator("details[open] .info-text")).to_be_visible()
        check_page(page)
        if field == "Memory":
            expect(page.locator("details[open]")).to_contain_text("You may use 3 GB at once")
            picture(page, "wizard-info")
        page.keyboard.press("Escape")
        expect(page.locator("details.info[open]")).to_have_count(0)
    press_more = page.locator("[data-more='resources.cpus']")
    for _ in range(5):
        press_more.click()
    bound = page.locator("[data-bound=cpus]").inner_text()
    expect(page.get_by_label("CPU cores", exact=True)).to_have_value(bound)


def test_shared_memory_is_part_of_the_memory(page: Page, api: Api) -> None:
    small(page, "shared1")
    page.get_by_label("Shared memory", exact=True).fill("601 MB")
    go_to_step(page, "review")
    expect(page.locator("#review-text")).to_contain_text("cannot be more than it")
    page.get_by_role("link", name="Change it").click()
    page.get_by_label("Shared memory", exact=True).fill("64 MB")
    go_to_step(page, "review")
    expect(page.locator(".review-list")).to_contain_text("64 MB")


def test_three_sessions_at_once(page: Page, api: Api) -> None:
    small(page, "thrice")
    page.get_by_label("Number of sessions", exact=True).fill("3")
    go_to_step(page, "review")
    expect(page.locator(".review-list")).to_contain_text("thrice1 … thrice3")
    press(page, "Confirm and launch")
    press(page, "Launch without a folder")
    names = sorted(api.get(session)["name"] for session in launched_ids(page))
    assert names == ["thrice1", "thrice2", "thrice3"]


def test_folders_are_created_and_mounted_or_confirmed_missing(
    page: Page, api: Api, picture: Picture
) -> None:
    small(page, "mounted1")
    press(page, "Confirm and launch")
    question = page.get_by_role("alertdialog", name="No folder is mounted")
    expect(question).to_be_visible()
    check_page(page)
    picture(page, "wizard-no-folder")
    question.get_by_role("button", name="Choose folders").click()
    expect_step(page, "folders")
    name = page.get_by_label("New storage folder")
    name.fill("trial")
    name.press("Enter")
    box = page.get_by_role("checkbox", name="trial", exact=False).first
    expect(box).to_be_checked()
    expect_step(page, "folders")
    page.get_by_label("read-only home").check()
    expect(page.get_by_label("Home directory")).to_be_checked()
    check_page(page)
    picture(page, "wizard-folders")
    page.get_by_label("New storage folder").fill("trial")
    press(page, "Create")
    expect(page.locator("#error-folder")).to_be_visible()
    press(page, "Confirm and launch")
    made = api.get(launched_ids(page)[0])
    found = sorted((mount["folder"], mount["read_only"]) for mount in made["mounts"])
    assert found == [("home", True), ("trial", False)]


def test_the_confirmation_can_be_disabled(page: Page, api: Api) -> None:
    press(page, "Confirm and launch")
    page.get_by_label("Do not ask again in this browser").check()
    press(page, "Launch without a folder")
    launched_ids(page)
    page.get_by_role("link", name="Start a session").first.click()
    press(page, "Confirm and launch")
    launched_ids(page)


def test_the_review_shows_everything(page: Page, api: Api, picture: Picture) -> None:
    press(page, "Environment variables Set variables…")
    dialog = page.get_by_role("dialog", name="Environment variables")
    dialog.get_by_label("Name 1", exact=True).fill("PLACE")
    dialog.get_by_label("Value 1", exact=True).fill("over the rainbow")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    small(page, "review1")
    page.get_by_label("Time limit", exact=True).fill("90")
    go_to_step(page, "review")
    shown = page.locator(".review-list")
    page.get_by_role("link", name="change memory", exact=True).click()
    expect(page.get_by_label("Memory", exact=True)).to_be_focused()
    go_to_step(page, "review")
    for words in ("Python", "review1", "600 MB", "300 MB", "1 h 30 min", "PLACE", "none: every"):
        expect(shown).to_contain_text(words)
    expect(shown).not_to_contain_text("rainbow")
    picture(page, "wizard-review")


def test_free_capacity_and_an_estimate(page: Page, api: Api) -> None:
    small(page, "estimate1")
    go_to_step(page, "review")
    outlook = page.locator(".outlook")
    expect(outlook).to_contain_text("Free for you in")
    expect(outlook).to_contain_text("Starts right away.", timeout=20_000)
    expect(outlook).not_to_contain_text("UTC")
    expect(outlook).not_to_contain_text("Asking the cluster", timeout=20_000)


def test_relaunch_edit_and_save(page: Page, api: Api, cluster: Cluster) -> None:
    first = api.launch(name="again1", env={"A": "b c"}, time_limit=30, mounts=["home"])
    page.goto(f"{cluster.url}/sessions/new?from={first['id']}")
    expect(page.get_by_label("Session name")).to_have_value("again1")
    go_to_step(page, "folders")
    expect(page.get_by_label("Home directory")).to_be_checked()
    go_to_step(page, "review")
    expect(page.locator(".review-list")).to_contain_text("30 min")
    page.get_by_text("Save these settings as a preset").click()
    page.get_by_label("Name of the preset").fill("every day")
    page.keyboard.press("Enter")
    expect(page.locator("#preset-saved")).to_contain_text("Saved as every day.")
    press(page, "Save as preset")
    check_page(page)
    press(page, "Replace it")
    expect(page.locator("#preset-saved")).to_contain_text("Saved as every day.")
    page.get_by_role("link", name="Your presets").click()
    check_page(page)
    page.get_by_label("More for every day").click()
    page.get_by_label("Delete every day", exact=True).click()  # asks first
    expect(page.get_by_text("Delete the preset every day?")).to_be_visible()
    page.reload()
    press(page, "Launch every day")
    second = api.get(launched_ids(page)[0])
    same = ("environment", "version", "resources", "time_limit", "mounts", "env")
    assert [second[key] for key in same] == [api.get(first["id"])[key] for key in same]
    press(page, "Presets")
    page.get_by_role("button", name="every day").click()
    another = f"^(?!{second['id']})[0-9a-f]{{32}}$"
    expect(page.locator("#rows")).to_have_attribute("data-fresh", re.compile(another))


def test_input_survives_an_outage_of_the_portal(page: Page, api: Api, cluster: Cluster) -> None:
    small(page, "patient1")
    cluster.daemon("stop", "portal", "web")
    try:
        press(page, "Confirm and launch")
        press(page, "Launch without a folder")
        expect(page.get_by_text("The portal cannot be reached")).to_be_visible(timeout=40_000)
    finally:
        cluster.daemon("start", "portal", "web")
    wait_for("the portal", lambda: healthy(cluster), 60)
    press(page, "Confirm and launch")
    assert api.get(launched_ids(page)[0])["name"] == "patient1"


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_everybody_can_use_every_step(page: Page, picture: Picture, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    for name in STEPS:
        go_to_step(page, name)
        if name == "folders":
            expect(page.get_by_text("Looking for your storage folders")).to_have_count(0)
        check_page(page)
        picture(page, f"wizard-{name}-{width}")


def test_it_works_without_javascript(log_in: LogIn, api: Api, cluster: Cluster) -> None:
    log_in(WHO)
    page = log_in(WHO, java_script_enabled=False)
    page.goto(f"{cluster.url}/sessions/new")
    for name in STEPS:
        expect(page.locator(f"#step-{name}")).to_be_visible()
    page.get_by_label("Session name").fill("plain1")
    page.get_by_label("Memory", exact=True).fill("600 MB")
    page.get_by_role("textbox", name="Environment variables").fill('PLACE="here or there"')
    press(page, "Show everything as it will be submitted")
    expect(page.locator(".review-list")).to_contain_text("plain1")
    press(page, "Confirm and launch")
    expect(page.get_by_role("heading", name="No folder is mounted")).to_be_visible()
    press(page, "Choose folders")
    home: Locator = page.get_by_label("Home directory")
    home.check()
    press(page, "Confirm and launch")
    made = api.get(launched_ids(page)[0])
    assert (made["mounts"][0]["folder"], made["env"]) == ("home", ["PLACE"])
