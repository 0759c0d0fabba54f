"""The Files page in a browser."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.support.cluster import Cluster

DROP_FILE = """async ([name, text, folder]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  const target = document.querySelector("#drop");
  for (const kind of ["dragover", "drop"]) {
    const how = {dataTransfer: data, bubbles: true, cancelable: true};
    target.dispatchEvent(new DragEvent(kind, how));
  }
}"""
WHO = "alice"


def bash(cluster: Cluster, script: str) -> str:
    """Run a script as alice on the login node."""
    return cluster.run("login", "bash", "-c", script, user=WHO, seconds=180)


def entry_row(page: Page, name: str) -> Locator:
    """The row of an entry."""
    return page.locator(f'#folder tr[data-name="{name}"]')


def expect_listed(page: Page, name: str) -> None:
    """Wait until an entry is listed."""
    expect(entry_row(page, name)).to_be_visible()
