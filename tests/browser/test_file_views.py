"""Single files on the Files page: viewers, the editor, and uploads."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture, Researcher
from tests.support.browser_files import DROP_FILE, bash, entry_row, expect_listed
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for

WHO = "alice"
PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154"
        "08d763f8cfc000000301010018dd8db00000000049454e44ae426082"
    )
).decode()
EVIL = "<script>parent.document.title='evil'</script><img src=x onerror=parent.evil=1>"
NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {},
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Findings\n", EVIL]},
        {
            "cell_type": "code",
            "metadata": {},
            "execution_count": 7,
            "source": "print('x')",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": "printed\n"},
                {"output_type": "display_data", "data": {"text/html": f"<b>bold</b>{EVIL}"}},
                {"output_type": "display_data", "data": {"image/png": PNG}},
            ],
        },
    ],
}
PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R
/Resources<</Font<</F 5 0 R>>>>>>endobj
4 0 obj<</Length 44>>stream
BT /F 24 Tf 40 100 Td (Hello from PDF) Tj ET
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
trailer<</Root 1 0 R>>
"""
SVG = (
    "<svg xmlns='http://www.w3.org/2000/svg' width='90' height='60'><script>alert(1)</script>"
    "<rect width='90' height='60' fill='teal'/></svg>"
)


@pytest.fixture
def shelf(cluster: Cluster) -> Iterator[None]:
    """A folder of alice's with files of all kinds."""
    files = {
        "notes.txt": b"first\nsecond\n",
        "page.html": b"<h1>raw</h1><script>document.title='evil'</script>",
        "draw.svg": SVG.encode(),
        "dot.png": base64.b64decode(PNG),
        "table.csv": b"name,value\n" + b"".join(b"row%d,%d\n" % (n, n) for n in range(1500)),
        "book.ipynb": json.dumps(NOTEBOOK).encode(),
        "paper.pdf": PDF,
        "readme.md": f"# Title\n\n* item\n\n{EVIL}".encode(),
        "data.bin": b"\0\1\2" * 500,
        "dos.txt": b"\xef\xbb\xbfone\r\ntwo\r\n",
    }
    sent = json.dumps({name: base64.b64encode(data).decode() for name, data in files.items()})
    script = (
        "import base64,json,os,shutil,sys; os.chdir(os.path.expanduser('~'));"
        "shutil.rmtree('shelf', True); os.mkdir('shelf');"
        "files = json.load(sys.stdin).items();"
        "[open('shelf/' + n, 'wb').write(base64.b64decode(d)) for n, d in files]"
    )
    cluster.run("login", "python3", "-c", script, user=WHO, stdin=sent)
    yield
    bash(cluster, "rm -rf ~/shelf")


def view(page: Page, cluster: Cluster, name: str) -> None:
    """Open a file from its folder."""
    page.goto(f"{cluster.url}/files/home/shelf")
    entry_row(page, name).get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)
    expect(page.locator("#view")).to_have_attribute("data-state", "shown")


def test_files_are_shown_by_kind_and_nothing_of_them_runs(
    cluster: Cluster, log_in: LogIn, picture: Picture, shelf: None
) -> None:
    page = log_in(WHO)
    errors: list[str] = []
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    view(page, cluster, "notes.txt")
    expect(page.locator(".text-view pre").last).to_have_text("first\nsecond")
    expect(page.locator(".numbers")).to_have_text("1\n2")
    clean_in_both_themes(page)
    picture(page, "file-text")
    view(page, cluster, "page.html")
    expect(page.locator(".text-view pre").last).to_contain_text("<h1>raw</h1><script>")
    view(page, cluster, "dot.png")
    expect(page.locator("[data-file-note]")).to_have_text("1 \u00d7 1 pixels")
    view(page, cluster, "draw.svg")
    expect(page.locator("[data-file-note]")).to_have_text("90 \u00d7 60 pixels")
    page.get_by_role("button", name="Text").click()
    expect(page.locator(".text-view pre").last).to_contain_text("<script>")
    view(page, cluster, "table.csv")
    expect(page.locator("[data-file-note]")).to_contain_text("The first 1,000 rows, 2 columns")
    expect(page.locator("#view tbody tr")).to_have_count(1000)
    clean_in_both_themes(page)
    picture(page, "file-table")
    view(page, cluster, "paper.pdf")
    expect(page.locator("canvas[data-drawn]")).to_have_count(1)
    inked = "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v < 100)"
    assert page.locator("canvas").evaluate(inked)
    picture(page, "file-pdf")
    view(page, cluster, "book.ipynb")
    frame = page.frame_locator("iframe.document")
    expect(frame.get_by_role("heading", name="Findings")).to_be_visible()
    expect(frame.get_by_text("bold")).to_be_visible()
    expect(frame.get_by_text("printed")).to_be_visible()
    expect(frame.locator('img[alt="Output"]')).to_be_visible()
    assert frame.locator("script").count() == 0
    assert frame.locator("[onerror]").count() == 0
    picture(page, "file-notebook")
    fits(page, 1280, 390)
    view(page, cluster, "readme.md")
    expect(frame.get_by_role("heading", name="Title")).to_be_visible()
    view(page, cluster, "data.bin")
    expect(page.get_by_text("This file is not text")).to_be_visible()
    assert "evil" not in page.title()
    assert page.evaluate("window.evil") is None
    assert errors == []


def test_a_text_file_is_edited_and_a_change_by_others_is_seen(
    cluster: Cluster, log_in: LogIn, picture: Picture, shelf: None
) -> None:
    page = log_in(WHO)
    view(page, cluster, "dos.txt")
    page.get_by_role("button", name="Edit").click()
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("three\n")
    page.keyboard.press("Control+s")
    expect(page.locator("[data-file-note]")).to_contain_text("Saved at")
    saved = bash(cluster, "od -An -c ~/shelf/dos.txt").split()
    assert saved[:6] == ["357", "273", "277", "o", "n", "e"]
    assert saved[-7:] == ["t", "h", "r", "e", "e", "\\r", "\\n"]
    # Somebody else writes it meanwhile.
    view(page, cluster, "notes.txt")
    page.get_by_role("button", name="Edit").click()
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("mine")
    bash(cluster, "echo theirs >> ~/shelf/notes.txt")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#ask-conflict")).to_be_visible()
    clean_in_both_themes(page, "#ask-conflict")
    picture(page, "file-conflict")
    page.get_by_role("button", name="Save as another name").click()
    page.locator("#ask-name").get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("notes (mine).txt")
    assert bash(cluster, "cat ~/shelf/'notes (mine).txt'") == "first\nsecond\nmine"
    assert bash(cluster, "tail -1 ~/shelf/notes.txt") == "theirs\n"
    # What is not saved survives a reload.
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("+ kept")
    page.wait_for_timeout(500)
    page.reload()
    expect(page.locator("[data-file-note]")).to_contain_text("which were not saved, are back")
    expect(page.locator(".cm-content")).to_contain_text("mine+ kept")
    picture(page, "file-edit")
    page.get_by_role("button", name="Discard them").click()
    expect(page.locator(".cm-content")).not_to_contain_text("kept")


def test_files_and_folders_are_uploaded_by_button_and_by_dropping(
    cluster: Cluster, log_in: LogIn, picture: Picture, shelf: None, tmp_path: Path
) -> None:
    page = log_in(WHO)
    page.add_init_script("delete globalThis.showOpenFilePicker")  # Playwright knows the other one
    page.goto(f"{cluster.url}/files/home/shelf")
    expect_listed(page, "notes.txt")
    big = tmp_path / "big.dat"
    big.write_bytes(b"x" * 20_000_000)
    mine = tmp_path / "notes.txt"
    mine.write_text("other")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload", exact=True).click()
    chooser.value.set_files([big, mine])
    expect(page.locator("#ask-exists")).to_contain_text("notes.txt")
    clean_in_both_themes(page, "#ask-exists")
    page.get_by_role("button", name="Keep both").click()
    expect_listed(page, "big.dat")
    expect_listed(page, "notes (2).txt")
    assert bash(cluster, "stat -c %s ~/shelf/big.dat; cat ~/shelf/notes.txt").startswith(
        "20000000\nfirst"
    )
    folder = tmp_path / "whole"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "in.txt").write_text("inside")
    page.get_by_role("button", name="More for this folder").first.click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload a folder").click()
    chooser.value.set_files(folder)
    expect_listed(page, "whole")
    assert bash(cluster, "cat ~/shelf/whole/deep/in.txt") == "inside"
    page.evaluate(DROP_FILE, ["dropped.txt", "dropped", ""])
    expect_listed(page, "dropped.txt")
    # An upload that was cut is offered again, and goes on with the same file.
    slow = page.context.new_cdp_session(page)
    slow.send("Network.enable")
    limits = {"offline": False, "latency": 0, "downloadThroughput": -1}
    slow.send("Network.emulateNetworkConditions", {**limits, "uploadThroughput": 2_000_000})
    cut = tmp_path / "cut.dat"
    cut.write_bytes(b"y" * 20_000_000)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload", exact=True).click()
    chooser.value.set_files(cut)
    module = "import(document.querySelector('script[type=module]').src)"
    sent = f"{module}.then((module) => module.uploads.at(-1).sent)"
    wait_for("4 MB to be sent", lambda: page.evaluate(sent) > 4_000_000)
    expect(page.locator("#work")).to_contain_text("left")
    picture(page, "files-upload")
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    slow.send("Network.emulateNetworkConditions", {**limits, "uploadThroughput": -1})
    expect(page.locator("#work")).to_contain_text("Choose the same file to go on")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose file").click()
    chooser.value.set_files(cut)
    expect_listed(page, "cut.dat")
    assert bash(cluster, "stat -c %s ~/shelf/cut.dat") == "20000000\n"


EMPTY = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
"""JupyterLab leaves the address of a file that is no notebook."""


@pytest.fixture
def sharer(researcher: Researcher) -> Iterator[Api]:
    """Who shares the folder papers; it is not shared any more afterwards, whatever happened."""
    api = researcher(WHO)
    yield api
    api("DELETE", "/folders/papers/shares/user/bob")


def test_a_folder_is_shared_and_a_notebook_opens_in_a_running_session(
    cluster: Cluster, log_in: LogIn, sharer: Api, picture: Picture
) -> None:
    bash(cluster, f"mkdir -p ~/storage/papers; echo '{EMPTY}' > ~/storage/papers/'a b.ipynb'")
    sharer.running(name="reader", mounts=["papers"], resources={"cpus": 1, "memory": "600m"})
    page = log_in(WHO)
    page.goto(f"{cluster.url}/files")
    papers = page.locator('tr[data-name="papers"]')
    expect(papers).to_contain_text("reader")
    # The answer to the dialog's opening comes after the one to the change, and must not replace it.
    late: list[Route] = []

    def hold(route: Route) -> None:
        late.append(route)

    page.route("**/files-shares/papers", hold, times=1)
    papers.get_by_role("button", name="Share papers").click()
    page.locator("#share-name").fill("bob")
    page.locator("#ask-share").get_by_role("button", name="Share", exact=True).click()
    expect(page.locator("[data-shares]")).to_contain_text("bob user, may read")
    late[0].fulfill(json={"shares": []})
    page.wait_for_timeout(200)
    expect(page.locator("[data-shares]")).to_contain_text("bob user, may read")
    clean_in_both_themes(page, "#ask-share")
    picture(page, "files-share")
    page.get_by_role("button", name="Close").click()
    expect(papers.locator(".c-shared")).to_contain_text("bob")
    bob = log_in("bob")
    bob.goto(f"{cluster.url}/files")
    bob.get_by_role("link", name="papers").click()
    expect_listed(bob, "a b.ipynb")
    expect(bob.get_by_text("You may read this folder")).to_be_visible()
    papers.get_by_role("link", name="papers", exact=True).click()
    entry_row(page, "a b.ipynb").get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("a b.ipynb")  # folders open, too
    with page.expect_popup() as popup:
        page.get_by_role("button", name="Open in JupyterLab").click()
    popup.value.wait_for_url("**/lab/tree/papers/a%20b.ipynb", timeout=90_000)
    popup.value.close()
    page.goto(f"{cluster.url}/files")
    papers.get_by_role("button", name="Delete papers").click()
    expect(page.locator("#ask-delete")).to_contain_text("shared with bob (may read it)")
    expect(page.locator("#ask-delete")).to_contain_text("mounted in your live session reader")
    page.get_by_role("button", name="Delete for good").click()
    expect(papers).to_have_count(0)
    bob.goto(f"{cluster.url}/files")
    expect(bob.get_by_role("link", name="papers")).to_have_count(0)
