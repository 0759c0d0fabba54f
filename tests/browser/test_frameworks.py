"""Images that only `make images ALL=1` builds, in one real browser, as their users see them.

`make test-images` runs these; elsewhere, those whose images are not built are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import LogIn, Picture, Researcher
from tests.browser.terminals import Terminal
from tests.support.browser_apps import open_app, run_cell
from tests.support.cgroups import MB, SEEN_IN_CGROUP
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.recipes import FRAMEWORKS, PYTORCH, RANKS, TENSORFLOW, launch_recipe
from tests.support.slurm_settings import changed_limit

WHO = "alice"
STARTS = 120_000
"""Milliseconds in which an app, a kernel or a cell of a large image must be ready."""
SECONDS = 240


@pytest.fixture
def api(researcher: Researcher) -> Api:
    """The same researcher's API client, which launches and cleans up."""
    return researcher(WHO)


@pytest.fixture
def room_for_four(cluster: Cluster, api: Api) -> Iterator[None]:
    """A QOS under which one person's four sessions run at the same time."""
    more, usual = "MaxTRESPerUser=cpu=4,mem=6G", "MaxTRESPerUser=cpu=3,mem=3G"
    with changed_limit(cluster, "qos normal", more, usual):
        yield
        api.clean()


def notebook(lab: Page, language: str) -> None:
    """Open a notebook of this language, and wait for its kernel."""
    cards = lab.locator(".jp-LauncherCard[data-category=Notebook]")
    cards.filter(has=lab.get_by_text(language, exact=True)).click(timeout=STARTS)
    expect(lab.locator(".jp-Notebook-cell").first).to_be_visible(timeout=STARTS)
    idle = lab.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")
    expect(idle).to_be_visible(timeout=STARTS)


def printed(lab: Page) -> list[list[float | str]]:
    """The lines of JSON that the cells have printed, as the page shows them."""
    texts = lab.locator(".jp-OutputArea-output").all_inner_texts()
    lines = [line for text in texts for line in text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("[")]


def has_printed(lab: Page) -> bool:
    """Whether both lines are there."""
    return len(printed(lab)) == 2


@pytest.mark.timeout(900)
@pytest.mark.needs_images(*FRAMEWORKS)
def test_two_generations_of_two_frameworks_train_at_once_in_one_browser(
    log_in: LogIn, api: Api, room_for_four: None, picture: Picture
) -> None:
    sessions = [launch_recipe(api, recipe) for recipe in FRAMEWORKS]
    for session in sessions:
        api.wait_state(session["id"], "RUNNING", seconds=60)
    page = log_in(WHO)
    labs = [open_lab(page, session) for session in sessions]
    for lab, recipe in zip(labs, FRAMEWORKS, strict=True):
        begin(lab, recipe)
    for lab, recipe in zip(labs, FRAMEWORKS, strict=True):
        wait_for(f"both lines of {recipe}", partial(has_printed, lab), SECONDS, 1.0)
        (version, prediction), cgroup = printed(lab)
        assert str(version).startswith(recipe.partition("/")[2] + "."), (recipe, version)
        # The line through (0, 2) and (1, 5), at -1.
        assert prediction == pytest.approx(-1, abs=0.05), recipe
        assert cgroup == [1200 * MB, 1, 1, 1], recipe
        lab.bring_to_front()
        picture(lab, f"framework-{recipe.replace('/', '-')}")
    assert {api.get(session["id"])["state"] for session in sessions} == {"RUNNING"}


def open_lab(page: Page, session: Json) -> Page:
    """Click the row's button of JupyterLab, and return the new window."""
    page.bring_to_front()
    row = page.locator(f"tr[data-name={session['name']}]")
    expect(row).to_have_attribute("data-state", "RUNNING", timeout=STARTS)
    return open_app(page, row, "JupyterLab")


def begin(lab: Page, recipe: str) -> None:
    """Start the cell that trains and looks at the cgroup, without waiting for its end."""
    lab.bring_to_front()
    notebook(lab, "Python 3 (ipykernel)")
    training = TENSORFLOW if recipe.startswith("tensorflow") else PYTORCH
    run_cell(lab, f"{training.strip()}\n{SEEN_IN_CGROUP.strip()}")


@pytest.mark.parametrize(
    "recipe",
    [pytest.param(one, marks=pytest.mark.needs_images(one)) for one in ("cpp/14", "cpp/10")],
)
def test_cpp_is_compiled_and_runs_with_two_ranks_in_the_browsers_terminal(
    browser: Browser, api: Api, recipe: str, picture: Picture
) -> None:
    session = launch_recipe(api, recipe, cpus=2, memory="800m")
    api.wait_state(session["id"], "RUNNING")
    context = browser.new_context()
    link = api.ask("POST", f"/sessions/{session['id']}/apps/terminal")["url"]
    terminal = Terminal(context, link)
    terminal.type(RANKS)
    terminal.shows(f"GCC {recipe.partition('/')[2]}: 2 ranks made 30", 90)
    picture(terminal.page, f"ranks-{recipe.replace('/', '-')}")
    context.close()


@pytest.mark.timeout(400)
@pytest.mark.needs_images("r/4.5")
def test_r_shows_a_plot_in_the_notebook(log_in: LogIn, api: Api, picture: Picture) -> None:
    session = launch_recipe(api, "r/4.5")
    api.wait_state(session["id"], "RUNNING")
    lab = open_lab(log_in(WHO), session)
    notebook(lab, "R")
    run_cell(lab, "library(ggplot2)\nggplot(mtcars, aes(wt, mpg)) + geom_point()")
    plot = lab.locator(".jp-OutputArea-output img")
    expect(plot).to_be_visible(timeout=STARTS)
    wide, high, colours = plot.evaluate(SEEN_IN_PLOT)
    assert (wide, high) == (840, 840)
    # The points, the grid and the text; an empty picture has one colour.
    assert colours > 10
    picture(lab, "r-plot")


SEEN_IN_PLOT = """async (image) => {
    await image.decode();
    const {naturalWidth: wide, naturalHeight: high} = image;
    const canvas = new OffscreenCanvas(wide, high), context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const pixels = context.getImageData(0, 0, wide, high).data.buffer;
    return [wide, high, new Set(new Uint32Array(pixels)).size];
}"""
