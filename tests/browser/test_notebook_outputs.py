"""What a notebook's cells print while no window shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import LogIn, Picture
from tests.slurm.conftest import MakeApi
from tests.support.client import Api, Json

WHO = "alice"
STARTS = 90_000
LAB: Json = {"resources": {"cpus": 1, "memory": "600m"}}
STEPS = 25
CODE = f"""import sys, time
for n in range({STEPS}):
    print('step', n, flush=True)
    time.sleep(1)
for n in range({STEPS}):
    print(f'\\r{{n}} done', end='', file=sys.stderr, flush=True)
'the result'"""
CELL: Json = {
    "cell_type": "code", "id": "night", "metadata": {}, "outputs": [], "execution_count": None,
    "source": CODE,
}  # fmt: skip
NOTEBOOK = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [CELL]}
WRITE = """
async (content) => {
  const [, mark] = document.cookie.match(/_xsrf=([^;]*)/) ?? [];
  const answer = await fetch("/api/contents/night.ipynb", {
    method: "PUT", body: JSON.stringify({ type: "notebook", content }),
    headers: { "Content-Type": "application/json", "X-XSRFToken": mark ?? "" } });
  return answer.status;
}
"""

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def api(make_api: MakeApi) -> Iterator[Api]:
    found = make_api(WHO)
    yield found
    found.clean()


def opened(context: BrowserContext, url: str) -> Page:
    window = context.new_page()
    window.goto(url)
    expect(window.locator(".jp-CodeCell").first).to_be_visible(timeout=STARTS)
    return window


@pytest.mark.parametrize("version", ["3.13", "3.11"])
@pytest.mark.parametrize("returns", ["while it runs", "after its end"])
def test_output_is_there_when_the_notebook_is_opened_again(
    log_in: LogIn, api: Api, picture: Picture, version: str, returns: str
) -> None:
    session = api.running(name="night1", version=version, **LAB)["id"]
    context = log_in(WHO).context
    window = context.new_page()
    window.goto(api.ask("POST", f"/sessions/{session}/apps/jupyterlab")["url"])
    expect(window.locator(".slipway-chip")).to_be_visible(timeout=STARTS)
    origin = window.evaluate("location.origin")
    assert window.evaluate(WRITE, json.loads(json.dumps(NOTEBOOK))) == 201
    window.close()
    url = f"{origin}/lab/tree/night.ipynb"
    window = opened(context, url)
    dialog = window.get_by_role("button", name="Select")
    dialog.click(timeout=STARTS)  # the kernel, which the notebook does not name
    # A run before the kernel answers is dropped by JupyterLab.
    expect(window.get_by_role("button", name="| Idle")).to_be_visible(timeout=STARTS)
    window.locator(".jp-CodeCell .cm-content").first.click()
    window.keyboard.press("Shift+Enter")
    output = ".jp-CodeCell .jp-OutputArea"
    expect(window.locator(output).first).to_contain_text("step 2", timeout=STARTS)
    window.keyboard.press("Control+s")
    window.close(run_before_unload=False)
    if returns == "after its end":
        log_in(WHO).wait_for_timeout(1000 * (STEPS + 5))
    again = opened(context, url)
    text = again.locator(output).first
    expect(text).to_contain_text("the result", timeout=60_000)
    expect(text).to_contain_text(f"step {STEPS - 1}")
    expect(text).to_contain_text(f"{STEPS - 1} done")
    shown = text.inner_text()
    assert [f"step {n}" in shown for n in range(STEPS)] == [True] * STEPS
    assert f"{STEPS - 2} done" not in shown
    expect(again.locator(".jp-CodeCell .jp-InputPrompt").first).to_have_text("[1]:")
    picture(again, "notebook-again")
