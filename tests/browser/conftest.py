"""A researcher's browser: Debian's Chromium in front of the real cluster.

With SCREENSHOTS=1, screenshots of pages go to build/screenshots; UPDATE_SCREENSHOTS=1 also
renews the few that are kept in the repository, for its README.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import load_pem_x509_certificate
from playwright.sync_api import Browser, BrowserContext, Page, StorageState, expect, sync_playwright

from tests.browser.axe import settled
from tests.browser.smaller import smaller
from tests.browser.terminals import SIZE, NewTerminal, Terminal
from tests.slurm.conftest import (
    MakeApi,
    clean_accounts,
    cluster,
    hub_logins,
    make_api,
    make_hub,
    tokens,
)
from tests.support.built_images import pytest_collection_modifyitems, pytest_terminal_summary
from tests.support.client import Api
from tests.support.cluster import Cluster, authority
from tests.support.paths import ROOT

__all__ = [
    "SIZE",
    "clean_accounts",
    "cluster",
    "hub_logins",
    "make_api",
    "make_hub",
    "pytest_collection_modifyitems",
    "pytest_terminal_summary",
    "tokens",
]

# Chromium without its windows, as Playwright uses by default, too: the whole browser in its new
# headless mode takes twice the processor time for the same pages. Without --disable-gpu it imitates
# a GPU, which takes another fifth.
CHROMIUM = "/usr/bin/chromium-headless-shell"
FLAGS = ["--no-sandbox", "--disable-gpu"]

# As for Playwright's actions: four clusters on two cores may need more than its usual 5 s.
expect.set_options(timeout=30_000)

Picture = Callable[[Page, str], None]
Researcher = Callable[[str], Api]
LogIn = Callable[..., Page]


def _trusted() -> list[str]:
    """Trust the cluster's CA, and no other unknown one."""
    if not authority():
        return []
    os.environ["NODE_EXTRA_CA_CERTS"] = authority()  # for requests by Playwright itself
    key = load_pem_x509_certificate(Path(authority()).read_bytes()).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    digest = base64.b64encode(hashlib.sha256(der).digest()).decode()
    return [f"--ignore-certificate-errors-spki-list={digest}"]


_running: list[Browser] = []


@pytest.fixture(scope="session")
def browser(pytestconfig: pytest.Config) -> Browser:
    """Headless Chromium, shared by the tests here and by the attacks, which import this."""
    if not _running:
        flags = [*FLAGS, *_trusted()]  # set first, since Playwright reads it from its environment
        playwright = sync_playwright().start()
        pytestconfig.add_cleanup(playwright.stop)
        _running.append(playwright.chromium.launch(executable_path=CHROMIUM, args=flags))
        pytestconfig.add_cleanup(_running[0].close)
    return _running[0]


@pytest.fixture(scope="session")
def cookies() -> dict[str, StorageState]:
    """Saved logins by user: login attempts are limited."""
    return {}


@pytest.fixture
def log_in(browser: Browser, cluster: Cluster, cookies: dict[str, StorageState]) -> Iterator[LogIn]:
    """Opens a browser of a user's own, logged in, and returns the Sessions page."""
    with logging_in(browser, cluster, cookies) as enter:
        yield enter


@contextmanager
def logging_in(
    browser: Browser, cluster: Cluster, cookies: dict[str, StorageState]
) -> Iterator[LogIn]:
    """The same, for any scope."""
    contexts: list[BrowserContext] = []

    def enter(user: str, **options: object) -> Page:
        options = {"viewport": SIZE, "storage_state": cookies.get(user), **options}
        context = browser.new_context(**options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.goto(f"{cluster.url}/sessions")
        if user not in cookies:
            page.get_by_label("User name").fill(user)
            page.get_by_label("Password").fill(cluster.password(user))
            page.get_by_role("button", name="Log in").click()
            page.wait_for_url("**/sessions")
            cookies[user] = context.storage_state()
        return page

    yield enter
    for context in contexts:
        context.close()


@pytest.fixture
def researcher(make_api: MakeApi) -> Iterator[Researcher]:
    """API clients of users, to look behind the pages; what they launched is ended afterwards."""
    made: list[Api] = []

    def make(who: str) -> Api:
        api = make_api(who)
        api.forget_folders()
        made.append(api)
        return api

    yield make
    for api in made:
        api.clean_all()


@pytest.fixture
def terminal(new_terminal: NewTerminal) -> Iterator[Terminal]:
    """A terminal with an empty screen; programs left running by a test are ended."""
    made = new_terminal()
    made.clear("BEGIN")
    yield made
    made.press("q", "Control+C", "Control+C")


@pytest.fixture(scope="session")
def picture() -> Picture:
    """Takes a screenshot where somebody wants to see it; nothing is compared with it."""
    renews = bool(os.environ.get("UPDATE_SCREENSHOTS"))
    takes = renews or bool(os.environ.get("SCREENSHOTS"))
    kept = Path(__file__).parent / "screenshots"
    folder = ROOT / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)

    def take(page: Page, name: str) -> None:
        settled(page)
        if not takes:
            return
        page.screenshot(path=folder / f"{name}.png")
        if renews and (kept / f"{name}.png").exists():
            (kept / f"{name}.png").write_bytes(smaller((folder / f"{name}.png").read_bytes()))

    return take
