"""The upload queue in Chromium, in front of HAProxy and a real file server."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, CDPSession, Page

from tests.browser.upload_site import UploadSite

SIZE = 12_000_000


@pytest.fixture
def site(tmp_path: Path) -> Iterator[UploadSite]:
    running = UploadSite(tmp_path)
    yield running
    running.close()


@pytest.fixture
def page(browser: Browser, site: UploadSite) -> Iterator[Page]:
    context = browser.new_context()
    page = context.new_page()
    page.expose_function("startServer", site.start_server)
    page.add_init_script("addEventListener('load', () => { queue.ensureWith(startServer); })")
    page.goto(site.url)
    yield page
    context.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.bin"
    path.write_bytes(os.urandom(SIZE))
    os.utime(path, (1_600_000_000, 1_600_000_000))
    return path


def add(page: Page, *files: Path, folder: str = "home/up") -> None:
    page.set_input_files("input", [str(file) for file in files])
    page.evaluate("folder => queue.add(document.querySelector('input').files, folder)", folder)


def slow(page: Page, bytes_per_second: int) -> CDPSession:
    line = page.context.new_cdp_session(page)
    set_line(line, bytes_per_second)
    return line


def set_line(line: CDPSession, bytes_per_second: int, *, offline: bool = False) -> None:
    line.send(
        "Network.emulateNetworkConditions",
        {
            "offline": offline,
            "latency": 0,
            "downloadThroughput": -1,
            "uploadThroughput": bytes_per_second,
        },
    )


def wait(page: Page, condition: str) -> None:
    page.wait_for_function(f"queue.items.length && ({condition})", timeout=30_000)


DONE = "queue.items.every(item => item.state === 'done')"
HALF = f"queue.items[0].sent > {SIZE // 3}"


def same(one: Path, other: Path) -> bool:
    digests = [hashlib.sha256(path.read_bytes()).digest() for path in (one, other)]
    return digests[0] == digests[1]


def test_files_arrive_with_their_times_and_a_name_that_exists_asks(
    page: Page, site: UploadSite, file: Path, tmp_path: Path
) -> None:
    small, empty = tmp_path / "a b%.txt", tmp_path / "empty"
    small.write_text("hello")
    empty.touch()
    add(page, file, small, empty)
    wait(page, DONE)
    assert same(site.home / "up/data.bin", file)
    assert (site.home / "up/data.bin").stat().st_mtime == 1_600_000_000
    assert (site.home / "up/a b%.txt").read_text() == "hello"
    assert (site.home / "up/empty").read_bytes() == b""
    small.write_text("changed")
    page.evaluate("queue.onConflict((found) => { globalThis.asked = found; })")
    add(page, file, small)
    wait(page, "queue.items.filter(item => item.state === 'asking').length === 2")
    page.evaluate("asked.answer('rename', true)")
    wait(page, DONE)
    assert (site.home / "up/a b% (2).txt").read_text() == "changed"
    assert same(site.home / "up/data (2).bin", file)
    assert not list(site.home.rglob("*.part"))


def test_it_goes_on_after_the_server_was_killed(page: Page, site: UploadSite, file: Path) -> None:
    line = slow(page, 4_000_000)
    add(page, file)
    wait(page, HALF)
    (part,) = site.home.rglob("*.part")
    site.kill_server()
    arrived = part.stat().st_size
    assert not (site.home / "up/data.bin").exists()
    wait(page, "queue.items[0].state === 'retrying'")
    line.detach()
    wait(page, DONE)
    assert site.starts == 2
    assert 0 < arrived < SIZE
    assert same(site.home / "up/data.bin", file)


def test_it_goes_on_after_a_reload_when_the_same_file_is_chosen(
    page: Page, site: UploadSite, file: Path
) -> None:
    slow(page, 4_000_000)
    add(page, file)
    wait(page, HALF)
    page.reload()
    assert page.evaluate("queue.items.length") == 0
    page.evaluate("queue.onChange((item) => { if (item.sent) globalThis.first ??= item.sent; })")
    add(page, file)
    wait(page, DONE)
    assert page.evaluate("first") >= SIZE // 4
    assert same(site.home / "up/data.bin", file)
    assert [path.name for path in (site.home / "up").iterdir()] == ["data.bin"]


def test_it_goes_on_at_once_when_the_line_is_back(page: Page, site: UploadSite, file: Path) -> None:
    line = slow(page, 4_000_000)
    add(page, file)
    wait(page, HALF)
    page.evaluate("queue.items[0].attempt = 5")  # the next pause would be half a minute
    set_line(line, 4_000_000, offline=True)
    wait(page, "queue.items[0].state === 'retrying'")
    since = time.monotonic()
    set_line(line, -1)
    wait(page, DONE)
    assert time.monotonic() - since < 15
    assert same(site.home / "up/data.bin", file)


def test_pause_and_cancel(page: Page, site: UploadSite, file: Path) -> None:
    slow(page, 4_000_000)
    add(page, file)
    wait(page, HALF)
    page.evaluate("queue.pause(1)")
    assert page.evaluate("queue.items[0].state") == "paused"
    page.evaluate("queue.resume(1)")
    wait(page, f"queue.items[0].sent > {SIZE // 2}")
    with page.expect_response(lambda answer: answer.request.method == "DELETE") as answered:
        page.evaluate("queue.cancel(1)")
    assert answered.value.status == 204
    assert list((site.home / "up").iterdir()) == []
    assert page.evaluate("Object.keys(localStorage).length") == 0
