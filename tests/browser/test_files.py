"""The Files page: browsing, working from the keyboard, operations, and downloads."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import LogIn, Picture
from tests.support.browser_files import WHO, bash, entry_row, expect_listed
from tests.support.cluster import Cluster, wait_for

TREE = r"""
set -e; rm -rf ~/desk ~/storage/shelf ~/storage/rack
mkdir -p ~/desk/{photos,runs/deep} ~/desk/.cache ~/storage/shelf; cd ~/desk
head -c 300000 /dev/zero > big.bin; printf 'a,b\n1,2\n' > table.csv; printf 'hello\n' > readme.txt
touch run10.txt run9.txt; printf 'deep\n' > runs/deep/result.txt; printf '1' > photos/one.txt
ln -s /etc outside; ln -s runs inside; mkfifo pipe; mkdir closed; chmod 0 closed
printf 1 > '<img src=x onerror=document.title=1>'; printf 1 > $'new\nline'; printf 1 > $'\xff\xfe'
printf 1 > "$(printf 'a\xe2\x80\xaefdp.exe')"
mkdir many; cd many; seq -f 'f%g' 10000 | xargs touch
"""


@pytest.fixture
def desk(cluster: Cluster) -> Iterator[None]:
    """A folder of alice's with all kinds of entries."""
    bash(cluster, TREE)
    yield
    bash(cluster, "chmod -f 700 ~/desk/closed; rm -rf ~/desk ~/storage/*")


def names(page: Page) -> list[str]:
    """The names that are listed."""
    found: list[str] = page.locator("#folder tr[data-name]").evaluate_all(
        "rows => rows.map((row) => row.dataset.name)"
    )
    return found


def gone(page: Page, name: str) -> None:
    """Wait until an entry is not listed."""
    expect(entry_row(page, name)).to_have_count(0)


def at(page: Page, title: str) -> None:
    """Wait until a folder is shown."""
    expect(page.locator("#folder")).to_have_attribute("data-name", title)


def test_browsing_and_hostile_names(
    cluster: Cluster, log_in: LogIn, picture: Picture, desk: None
) -> None:
    page = log_in(WHO)
    page.get_by_role("link", name="Files", exact=True).first.click()
    page.locator(".area").get_by_role("link", name="Home").click()
    at(page, "Home")
    entry_row(page, "desk").get_by_role("link", name="desk", exact=True).click()
    at(page, "desk")
    expect(page.locator("#folder .crumbs")).to_have_text(re.compile("Files.*Home.*desk", re.S))
    found = names(page)
    assert found[:5] == ["closed", "inside", "many", "outside", "photos"]
    assert found.index("run9.txt") < found.index("run10.txt")
    assert ".cache" not in found
    # Hostile names are text, and open.
    assert page.title() == "desk · Files · Slipway"
    for name in ("<img src=x onerror=document.title=1>", "new\ufffdline", "a\ufffdfdp.exe"):
        assert name in found
    page.locator("#folder tr", has_text="line").get_by_role("link").first.click()
    expect(page.locator(".text-view")).to_contain_text("1")
    page.go_back()
    at(page, "desk")
    clean_in_both_themes(page)
    picture(page, "files")
    page.emulate_media(color_scheme="dark")
    picture(page, "files-dark")
    page.emulate_media(color_scheme="light")
    fits(page, 1440, 1024, 760, 390, 320)
    page.set_viewport_size({"width": 390, "height": 844})
    picture(page, "files-390")


def test_sorting_searching_and_places_that_are_refused(
    cluster: Cluster, log_in: LogIn, desk: None
) -> None:
    page = log_in(WHO)
    page.goto(f"{cluster.url}/files/home/desk")
    # Sorting and hidden files are kept in other folders.
    page.get_by_role("link", name="Size").click()
    expect(page.locator("th.c-size")).to_have_attribute("aria-sort", "descending")
    files = [name for name in names(page) if name.endswith((".bin", ".csv", ".txt"))]
    assert files[:3] == ["big.bin", "table.csv", "readme.txt"]
    page.get_by_role("link", name="Hidden files").click()
    expect_listed(page, ".cache")
    # Search, here and below.
    page.keyboard.press("/")
    page.keyboard.type("RESULT")
    expect(page.get_by_text("Nothing of this name")).to_be_visible()
    page.locator(".empty").get_by_role("link", name="Search the folders below").click()
    expect_listed(page, "result.txt")
    expect(entry_row(page, "result.txt")).to_contain_text("in runs/deep")
    # Links out of the area and closed folders are refused in words.
    for name, words in (("outside", "link to “/etc”"), ("closed", "no permission")):
        page.goto(f"{cluster.url}/files/home/desk")
        entry_row(page, name).get_by_role("link").first.click()
        expect(page.get_by_role("alert").first).to_contain_text(words)
        page.get_by_role("link", name="To the folder above").click()
        at(page, "desk")
    entry_row(page, "inside").get_by_role("link").first.click()
    expect_listed(page, "deep")
    # 10,000 files are pages of 200.
    page.goto(f"{cluster.url}/files/home/desk/many")
    expect(page.locator(".page-words")).to_have_text("1\u2013200 of 10,000")
    page.get_by_role("link", name="Next").click()
    expect(page.locator(".page-words")).to_have_text("201\u2013400 of 10,000")


def test_the_keyboard_selects_opens_and_comes_back(
    cluster: Cluster, log_in: LogIn, desk: None
) -> None:
    page = log_in(WHO)
    page.goto(f"{cluster.url}/files/home/desk")
    expect_listed(page, "photos")
    page.keyboard.press("ArrowDown")  # the first row
    expect(entry_row(page, "closed")).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowDown")
    expect(page.locator("#picked-count")).to_have_text("2 selected")
    expect(entry_row(page, "inside")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#announce")).to_have_text("2 selected")
    page.keyboard.press("Control+a")
    expect(page.locator("#picked-count")).to_contain_text(f"{len(names(page))} selected")
    page.keyboard.press("Escape")
    expect(page.locator("#picked")).to_be_hidden()
    entry_row(page, "photos").locator(".c-size").click()
    page.keyboard.press("Enter")
    at(page, "photos")
    expect(entry_row(page, "one.txt")).to_be_focused()
    page.keyboard.press("Backspace")
    at(page, "desk")
    expect(entry_row(page, "photos")).to_be_focused()
    # A click counts though the folder is shown anew in the middle of it.
    entry_row(page, "run9.txt").locator(".c-size").hover()
    page.mouse.down()
    page.evaluate(
        "import(document.querySelector('script[type=module]').src).then((page) => page.refresh())"
    )
    page.mouse.up()
    expect(page.locator("#picked-count")).to_contain_text("1 selected")
    expect(page.locator("body")).not_to_have_class(re.compile("is-loading"))
    entry_row(page, "run9.txt").locator(".c-size").click()
    # Clicks with Ctrl and Shift.
    entry_row(page, "run9.txt").locator(".c-size").click()
    entry_row(page, "table.csv").locator(".c-size").click(modifiers=["Shift"])
    expect(page.locator("#picked-count")).to_contain_text("3 selected")
    entry_row(page, "run10.txt").locator(".c-size").click(modifiers=["ControlOrMeta"])
    expect(page.locator("#picked-count")).to_contain_text("2 selected")


def test_folders_are_made_and_files_renamed_moved_and_copied(
    cluster: Cluster, log_in: LogIn, picture: Picture, desk: None
) -> None:
    page = log_in(WHO)
    page.goto(f"{cluster.url}/files/home/desk")
    page.get_by_role("button", name="New folder").click()
    page.locator("#ask-name-field").fill("photos")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#ask-name [role=alert]")).to_contain_text("exists already")
    clean_in_both_themes(page, "#ask-name")
    page.locator("#ask-name-field").fill("new & <b>")
    page.get_by_role("button", name="Create").click()
    expect(entry_row(page, "new & <b>")).to_be_focused()
    # Rename by F2.
    entry_row(page, "readme.txt").focus()
    page.keyboard.press("F2")
    page.keyboard.type("README")  # the name without its ending is marked
    page.keyboard.press("Enter")
    expect(entry_row(page, "README.txt")).to_be_focused()
    # Copy and move by the dialog.
    for name, button, action in (
        ("README.txt", "Copy", "Copy here"),
        ("table.csv", "Move", "Move here"),
    ):
        entry_row(page, name).locator(".c-size").click()
        page.locator("#picked").get_by_role("button", name=button).click()
        page.get_by_role("option", name="new & <b>").click()
        expect(page.locator("#ask-to .sub")).to_be_visible()
        picture(page, f"files-{button.lower()}")
        page.get_by_role("button", name=action).click()
        expect(page.locator("#ask-to")).to_be_hidden()
    gone(page, "table.csv")
    expect_listed(page, "README.txt")
    # A name that exists asks.
    entry_row(page, "README.txt").locator(".c-size").click()
    page.locator("#picked").get_by_role("button", name="Copy").click()
    page.get_by_role("option", name="new & <b>").click()
    page.get_by_role("button", name="Copy here").click()
    expect(page.locator("#ask-exists")).to_contain_text("README.txt")
    page.get_by_role("button", name="Keep both").click()
    expect(page.locator("#ask-exists")).to_be_hidden()
    both = "README (2).txt\nREADME.txt\ntable.csv\n"
    inside = "LC_ALL=C ls ~/desk/'new & <b>'"
    wait_for("both copies", lambda: bash(cluster, inside) == both, 20)
    expect(page.locator("#picked")).to_be_hidden()  # the answer has come: nothing is selected


def test_an_archive_is_unpacked_beside_itself(cluster: Cluster, log_in: LogIn, desk: None) -> None:
    bash(cluster, "cd ~/desk && tar -czf packed.tgz photos table.csv")
    page = log_in(WHO)
    page.goto(f"{cluster.url}/files/home/desk")
    unpack = page.locator("#picked").get_by_role("button", name="Unpack")
    entry_row(page, "table.csv").locator(".c-size").click()
    expect(page.locator("#picked-count")).to_contain_text("1 selected")
    expect(unpack).to_be_hidden()
    entry_row(page, "packed.tgz").locator(".c-size").click()
    unpack.click()
    expect(entry_row(page, "packed")).to_be_visible()
    assert bash(cluster, "ls ~/desk/packed") == "photos\ntable.csv\n"


def test_permissions_are_set_and_a_deletion_counts_first(
    cluster: Cluster, log_in: LogIn, desk: None
) -> None:
    page = log_in(WHO)
    page.goto(f"{cluster.url}/files/home/desk")
    entry_row(page, "readme.txt").locator(".c-size").click()
    page.locator("#picked").get_by_role("button", name="Permissions").click()
    page.get_by_label("As a number").fill("600")
    expect(page.get_by_label("Others: read")).not_to_be_checked()
    page.get_by_label("Group: read").check()
    page.get_by_role("button", name="Set permissions").click()
    expect(entry_row(page, "readme.txt")).to_contain_text("rw-r-----")
    entry_row(page, "many").locator(".c-size").click()
    page.keyboard.press("Delete")
    expect(page.locator("#ask-delete [data-count]")).to_contain_text("10,000 files in 1 folder")
    clean_in_both_themes(page, "#ask-delete")
    page.get_by_role("button", name="Delete for good").click()
    gone(page, "many")
    assert "many" not in bash(cluster, "ls ~/desk")


SLOW_ANSWERS = """() => {
    const send = window.fetch;
    window.fetch = async (...request) => {
        const answer = await send(...request);
        if (request[1]?.method === "POST") await new Promise((then) => setTimeout(then, 1500));
        return answer;
    };
}"""


def test_what_is_selected_while_the_server_answers_stays_selected(
    cluster: Cluster, log_in: LogIn, desk: None
) -> None:
    page = log_in(WHO)
    page.goto(f"{cluster.url}/files/home/desk")
    entry_row(page, "readme.txt").locator(".c-size").click()
    page.locator("#picked").get_by_role("button", name="Copy").click()
    page.get_by_role("option", name="photos").click()
    page.evaluate(SLOW_ANSWERS)
    page.get_by_role("button", name="Copy here").click()
    expect(page.locator("#ask-to")).to_be_hidden()
    entry_row(page, "table.csv").locator(".c-size").click()
    work = page.get_by_role("region", name="Operations and uploads")
    expect(work.get_by_text("Copied “readme.txt” to “photos”")).to_be_visible()
    expect(page.locator("#picked-count")).to_contain_text("1 selected")
    expect(entry_row(page, "table.csv").get_by_role("checkbox")).to_be_checked()


def test_downloads_of_one_file_and_of_a_selection(
    cluster: Cluster, log_in: LogIn, desk: None
) -> None:
    page = log_in(WHO)
    page.goto(f"{cluster.url}/files/home/desk")
    with page.expect_download() as one:
        entry_row(page, "table.csv").get_by_role("link", name="Download").click()
    assert one.value.suggested_filename == "table.csv"
    assert one.value.path().read_bytes() == b"a,b\n1,2\n"
    entry_row(page, "photos").locator(".c-size").click()
    entry_row(page, "table.csv").locator(".c-size").click(modifiers=["ControlOrMeta"])
    page.locator("#picked").get_by_role("button", name="Download").click()
    with page.expect_download() as several:
        page.get_by_role("button", name="As zip").click()
    with zipfile.ZipFile(io.BytesIO(several.value.path().read_bytes())) as archive:
        assert archive.read("table.csv") == b"a,b\n1,2\n"
        assert archive.read("photos/one.txt") == b"1"


def test_storage_folders_are_made_renamed_and_deleted(
    cluster: Cluster, log_in: LogIn, picture: Picture, desk: None
) -> None:
    page = log_in(WHO)
    page.goto(f"{cluster.url}/files")
    shelf = page.locator('tr[data-name="shelf"]')
    expect(shelf.locator("[data-files-used]")).to_have_text("0")
    page.get_by_role("button", name="New storage folder").first.click()
    page.locator("#ask-name-field").fill(".hidden")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#ask-name [role=alert]")).to_contain_text("a dot, which hides a folder")
    page.locator("#ask-name-field").fill("50% #1?")  # what means something else in an address
    page.get_by_role("button", name="Create").click()
    expect(page.locator('tr[data-name="50% #1?"]')).to_be_visible()
    picture(page, "files-start")
    clean_in_both_themes(page)
    fits(page, 1280, 390)
    shelf.get_by_role("button", name="Rename shelf").click()
    page.locator("#ask-name-field").fill("shelf2")
    page.locator("#ask-name").get_by_role("button", name="Rename").click()
    expect(page.locator('tr[data-name="shelf2"]')).to_be_visible()
    page.locator('tr[data-name="shelf2"]').get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete for good").click()
    expect(page.locator('tr[data-name="shelf2"]')).to_have_count(0)
    assert bash(cluster, "ls ~/storage").splitlines() == ["50% #1?"]


def test_big_operations_show_their_progress_and_can_be_cancelled(
    cluster: Cluster, log_in: LogIn, desk: None
) -> None:
    bash(
        cluster, "cd ~/desk; truncate -s 20G huge.img; for i in {1..6}; do cp -r many tree$i; done"
    )
    bash(cluster, "cd ~/desk; mkdir tree; mv tree? tree")
    page = log_in(WHO)
    page.goto(f"{cluster.url}/files/home/desk")
    work = page.locator("#work")
    expect(entry_row(page, "huge.img")).to_contain_text("20 GB")
    # 60,000 files take some seconds: time to think better of it.
    entry_row(page, "tree").locator(".c-size").click()
    page.locator("#picked").get_by_role("button", name="Copy").click()
    page.get_by_role("option", name="photos").click()
    page.get_by_role("button", name="Copy here").click()
    expect(work).to_contain_text(re.compile(r"of 60,000 files"))
    expect(work.locator("progress")).to_be_visible()
    work.get_by_role("button", name="Cancel").click()
    expect(work).to_contain_text("was cancelled")
    # Nothing is left of it.
    wait_for("its end", lambda: bash(cluster, "ls -A ~/desk/photos") == "one.txt\n")
    assert int(bash(cluster, "find ~/desk/tree -name 'f*' | wc -l")) == 60000
    # Only the data of a sparse file is copied.
    entry_row(page, "huge.img").locator(".c-size").click()
    page.locator("#picked").get_by_role("button", name="Copy").click()
    page.get_by_role("option", name="photos").click()
    page.get_by_role("button", name="Copy here").click()
    expect(work).to_contain_text("Copied “huge.img”")
    assert bash(cluster, "stat -c '%s %b' ~/desk/photos/huge.img").split() == [str(20 * 2**30), "0"]
    page.keyboard.press("Escape")
    for name in ("tree", "huge.img"):
        entry_row(page, name).locator(".c-size").click(modifiers=["ControlOrMeta"])
    page.keyboard.press("Delete")
    expect(page.locator("#ask-delete [data-count]")).to_contain_text("60,001 files in 7 folders")
    page.get_by_role("button", name="Delete for good").click()
    gone(page, "tree")
    gone(page, "huge.img")
    assert bash(cluster, "cd ~/desk; ls -d tree huge.img || true") == ""
