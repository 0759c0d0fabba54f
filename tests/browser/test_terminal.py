"""The terminal: copy and paste without knowledge of tmux, tmux for its users, and floods."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.axe import clean_in_both_themes, fits
from tests.browser.conftest import SIZE, Picture
from tests.browser.terminals import Line, NewTerminal, Terminal, terminals
from tests.slurm.conftest import MakeApi
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for

OPEN_TOO = """
    Object.defineProperty(Navigator.prototype, 'clipboard', {get: () => undefined});
"""
# Several times the size of all buffers on the path.
FLOOD = r"head -c 50M /dev/zero | tr '\0' 'x' | fold -w 200"


@pytest.fixture(scope="module")
def api(make_api: MakeApi) -> Iterator[Api]:
    """The researcher's API client; her real home has a .tmux.conf meanwhile."""
    found = make_api("alice")
    conf = "set -g status-right FROM-MY-HOME; set -g @mine yes"
    found.cluster.shell("login", f"echo '{conf}' > ~/.tmux.conf", user="alice")
    yield found
    found.cluster.shell("login", "rm -f ~/.tmux.conf", user="alice")
    found.clean()


@pytest.fixture(scope="module")
def session(api: Api) -> Json:
    """One session for all tests here."""
    return api.running(name="terminal1")


@pytest.fixture
def new_terminal(browser: Browser, api: Api, session: Json) -> Iterator[NewTerminal]:
    """Opens terminals of the session."""
    path = f"/sessions/{session['id']}/apps/terminal"
    with terminals(browser, lambda: api.ask("POST", path)["url"]) as make:
        yield make


@pytest.fixture(scope="module")
def untouched(browser: Browser, make_api: MakeApi) -> Iterator[Line]:
    """The WebSocket frames of a terminal that bob opens and never touches."""
    bob = make_api("bob")
    link = bob.ask("POST", f"/sessions/{bob.running(name='untouched1')['id']}/apps/terminal")["url"]
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    line = Line(page)
    Terminal(context, link, page)
    yield line
    context.close()
    bob.clean()


def test_dragging_copies_and_the_usual_keys_paste(
    untouched: Line, terminal: Terminal, picture: Picture
) -> None:
    page = terminal.page
    expect(page).to_have_title("terminal1 · Terminal")
    hint = page.get_by_role("complementary", name="Hint")
    expect(hint).to_contain_text("drag over the text")
    picture(page, "terminal-hint")
    terminal.run("cat > /dev/null  # take-this-line")
    terminal.drag_over("take-this-line")
    terminal.copied("take-this-line")
    expect(page.get_by_role("status")).to_contain_text("Copied")
    expect(hint).to_be_hidden()
    # The habit of Ctrl-C after selecting must not end the running program; the next one does.
    terminal.press("Control+C")
    expect(page.get_by_role("status")).to_be_hidden()
    terminal.type("still-in-cat")
    terminal.shows("still-in-cat")
    assert "^C" not in "\n".join(terminal.rows())
    terminal.press("Control+C")
    terminal.shows("^C")
    for number, keys in enumerate(("Control+V", "Control+Shift+V", "Shift+Insert")):
        terminal.type(f"echo {number}-")
        terminal.press(keys, "Enter")
        terminal.shows(f"\n{number}-take-this-line")
    page.reload()
    terminal.shows("2-take-this-line")
    expect(hint).to_be_hidden()  # it was read once


def test_pasted_text_waits_for_enter(terminal: Terminal) -> None:
    terminal.put_on_clipboard("echo $((40+2))\necho $((40+3))\n")
    terminal.press("Control+V")
    terminal.shows("echo $((40+3))")
    # A fake end-of-paste sequence, meant to execute at once, is plain text.
    terminal.put_on_clipboard("# \x1b[201~\recho $((40+4))\r")
    terminal.press("Control+V")
    terminal.shows("echo $((40+4))")
    assert not {"42", "43", "44"} & set(terminal.rows())
    terminal.press("Enter")
    terminal.shows("\n43\n")


def test_copying_without_the_clipboard_of_secure_pages(new_terminal: NewTerminal) -> None:
    terminal = new_terminal(script=OPEN_TOO)
    terminal.clear("plain-http")
    terminal.drag_over("plain-http")
    expect(terminal.page.get_by_role("status")).to_contain_text("Copied")
    terminal.type("echo again-")
    terminal.press("Control+V", "Enter")
    terminal.shows("\nagain-plain-http")


def test_programs_can_neither_write_nor_read_the_clipboard(terminal: Terminal) -> None:
    terminal.put_on_clipboard("mine")
    evil = "$(printf evil | base64)"
    terminal.run(rf"printf '\033]52;c;%s\a' {evil}; printf '\033]52;c;?\a'; sleep 1; echo do''ne")
    terminal.shows("\ndone")
    terminal.run(rf"printf '\033Ptmux;\033\033]52;c;%s\a\033\\' {evil}; sleep 1; echo ag''ain")
    terminal.shows("\nagain")
    assert terminal.clipboard() == "mine"
    assert "bWluZQ" not in "\n".join(terminal.rows())  # "mine", as a response would contain it


def test_tmux_keys_work(terminal: Terminal) -> None:
    terminal.shows("FROM-MY-HOME")
    terminal.run("seq 5000")
    terminal.shows("\n5000\n")
    terminal.press("Control+B", "PageUp")
    terminal.shows("\n4930\n")
    terminal.press("q")
    terminal.shows("\n5000\n")
    terminal.press("Control+B", "c")
    terminal.lacks("5000")
    terminal.shows("1:")
    terminal.press("Control+B", "w")
    terminal.shows("(1)")
    terminal.press("ArrowUp", "Enter")
    terminal.shows("\n5000\n")
    terminal.press("Control+B", "n")
    terminal.lacks("5000")
    terminal.press("Control+B", "x")
    terminal.shows("(y/n)")
    terminal.press("y")
    terminal.shows("\n5000\n")


def test_the_mouse_on_and_off(terminal: Terminal) -> None:
    page = terminal.page
    terminal.run("seq 3000 3999; echo select-me")
    terminal.shows("\nselect-me")
    page.mouse.move(400, 300)
    terminal.tmux("set -g mouse off")
    wait_for("no mouse for tmux", lambda: mouse_of(terminal) == "none")
    terminal.drag_over("select-me")
    terminal.copied("select-me")
    terminal.put_on_clipboard("other")
    terminal.press("Control+C")  # copies if something is selected
    terminal.copied("select-me")
    terminal.tmux("set -g mouse on")
    wait_for("the mouse for tmux", lambda: mouse_of(terminal) != "none")
    terminal.put_on_clipboard("other")
    terminal.drag_over("select-me", shift=True)  # as needed where a program has captured the mouse
    terminal.copied("select-me")
    page.mouse.move(400, 300)

    def scrolled_back() -> bool:
        page.mouse.wheel(0, -400)
        return "3900" in terminal.rows()

    wait_for("lines of long ago", scrolled_back, 30, 0.2)
    # A right click opens the browser's menu and none of tmux's.
    page.mouse.click(400, 300, button="right")
    terminal.press("Escape")
    terminal.print_mark("no-menu")
    assert "Horizontal Split" not in "\n".join(terminal.rows())


def mouse_of(terminal: Terminal) -> str:
    """What the page tells tmux about the mouse."""
    return str(terminal.page.evaluate("term.modes.mouseTrackingMode"))


def test_all_windows_show_the_same_after_reload_and_restart(
    new_terminal: NewTerminal, terminal: Terminal, cluster: Cluster
) -> None:
    other = new_terminal()
    terminal.run("for n in $(seq 900); do echo kept-$n; done")
    for window in (terminal, other):
        window.shows("kept-900")
    cluster.daemon("restart", "portal", "web", "worker")
    other.type("# typed-during-the-restart")
    terminal.shows("typed-during-the-restart")
    terminal.page.reload()
    terminal.shows("typed-during-the-restart")
    terminal.press("Control+B", "PageUp")
    terminal.shows("kept-830")
    terminal.press("q")
    terminal.lacks("kept-830")  # else it is still in copy mode when the window closes
    other.press("Control+C")


def test_a_broken_connection_is_restored(
    terminal: Terminal, cluster: Cluster, session: Json, picture: Picture
) -> None:
    page = terminal.page
    terminal.print_mark("before-the-cut")
    away = page.get_by_role("alert")
    cluster.shell(session["node"], "pkill -9 -u alice haproxy")
    expect(away).to_contain_text("The connection is lost")
    terminal.shows("before-the-cut", 60)
    expect(away).to_be_hidden()
    terminal.print_mark("after-the-cut")
    # A shell that exits is no error, and the page shows how to continue.
    terminal.press("Control+B", "d")
    expect(away).to_contain_text("This shell has ended")
    picture(page, "terminal-ended")
    page.keyboard.press("Enter")
    terminal.shows("after-the-cut")


def test_a_flood_of_output_is_throttled(
    new_terminal: NewTerminal, terminal: Terminal, api: Api, cluster: Cluster, session: Json
) -> None:
    visitor = api.open(session["id"], "terminal")
    with visitor.websocket("/ws", "tty") as stuck:  # a window that no longer reads
        stuck.send(json.dumps({"columns": 120, "rows": 40}).encode())
        before, heap = memory(cluster, session), terminal.heap()
        terminal.run(f"{FLOOD}; echo flood''-over")
        highest = dict(before)
        deadline = time.monotonic() + 300
        while "flood-over" not in "\n".join(terminal.rows()):
            assert time.monotonic() < deadline
            for name, size in memory(cluster, session).items():
                highest[name] = max(size, highest.get(name, 0))
            assert terminal.heap() < heap + 40
        grown = {name: highest[name] - before.get(name, 0) for name in highest}
        print(f"MB at most {highest}, grown by {grown}; browser {heap} to {terminal.heap()}")
        assert grown["ttyd"] < 10, grown
        assert grown["haproxy"] < 10, grown
        assert grown["tmux: server"] < 60, grown  # its lines of history, and no more
        terminal.run("yes flood")
        terminal.shows("flood\nflood\nflood")
        terminal.press("Control+C")
        began = time.monotonic()
        terminal.print_mark("the-shell-listens")
        assert time.monotonic() - began < 20
    late = new_terminal()
    late.shows("the-shell-listens")


def memory(cluster: Cluster, session: Json) -> dict[str, float]:
    """Megabytes held by the session's own programs."""
    text = cluster.run(session["node"], "ps", "-u", "alice", "-o", "rss=,comm=")
    found: dict[str, float] = {}
    for line in text.splitlines():
        size, _, name = line.strip().partition(" ")
        found[name.strip()] = found.get(name.strip(), 0) + int(size) / 1024
    return found


def test_terminal_page_is_accessible(terminal: Terminal, picture: Picture) -> None:
    page = terminal.page
    terminal.run(r"ls -la --color=always /; printf 'wide 漢字 \U1f600 end\n'")
    wait_for("the wide line", lambda: column_of(terminal, "end") >= 0)
    wide = page.evaluate("term.cols * term._core._renderService.dimensions.css.cell.width")
    assert wide > 0.95 * SIZE["width"]
    assert column_of(terminal, "end") == len("wide ") + 4 + len(" ") + 2 + len(" ")
    page.keyboard.press("Control+Shift+H")
    panel = page.get_by_role("dialog", name="The terminal")
    expect(panel).to_be_visible()
    clean_in_both_themes(page)
    fits(page, 1280, 390)
    page.set_viewport_size({"width": 390, "height": 844})
    picture(page, "terminal-help-narrow")
    page.keyboard.press("Escape")
    picture(page, "terminal-narrow")
    page.set_viewport_size(SIZE)
    clean_in_both_themes(page)
    page.keyboard.press("Control+Shift+H")
    panel.get_by_label("Colours").select_option("dark")
    panel.get_by_role("button", name="Close").press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    terminal.shows("end")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    picture(page, "terminal-dark")
    terminal.print_mark("keys-go-to-the-shell")


def column_of(terminal: Terminal, word: str) -> int:
    """The column of a word in the last line that ends with it."""
    return int(
        terminal.page.evaluate(
            """(word) => { const b = term.buffer.active;
            for (let y = b.length - 1; y >= 0; y--) {
                const line = b.getLine(y), text = line.translateToString(true);
                if (!text.startsWith('wide') || !text.endsWith(word)) continue;
                for (let x = 0; x < line.length; x++)
                    if (line.getCell(x).getChars() === word[0]
                        && line.getCell(x + 1).getChars() === word[1]) return x;
            } return -1; }""",
            word,
        )
    )


def test_an_idle_terminal_sends_nothing(untouched: Line) -> None:
    # Initially page and tmux query each other's features, tmux renames its window, and within
    # 30 s, when the runner reports next, its status line gets the time left.
    frames = untouched.between(35, 60)
    assert not frames, "\n".join(frames)
