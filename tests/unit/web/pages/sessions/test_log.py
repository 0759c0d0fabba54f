"""A session's log: its end first, earlier parts, and all of it as a file."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.web.log_text import PIECE, TAIL, whole_lines
from tests.support.fakes import World
from tests.unit.web.conftest import Browser, Runner

Launched = Callable[..., Runner]


def lines(count: int) -> bytes:
    """A log whose lines are numbered."""
    return b"".join(b"line %07d of a long log\n" % n for n in range(count))


@given(st.binary(max_size=30), st.integers(0, 3))
def test_a_piece_begins_with_a_line(data: bytes, offset: int) -> None:
    kept, moved = whole_lines(data, offset)
    assert data.endswith(kept)
    assert moved - offset == len(data) - len(kept)
    if offset == 0:
        assert kept == data
    elif kept != data:
        assert data[: len(data) - len(kept)].count(b"\n") == 1


def test_the_end_comes_first_and_the_rest_on_request(
    world: World, alice: Browser, launched: Launched
) -> None:
    session = launched("alice").session.id
    world.slurm.log = lines(60_000)
    piece = alice.get(f"/sessions/{session}/log/text")
    got = piece.text
    start, following = int(piece.headers["X-Offset"]), int(piece.headers["X-Next-Offset"])
    assert following == len(world.slurm.log)
    assert got.startswith("line ")
    assert len(got) <= TAIL
    while start:
        piece = alice.get(f"/sessions/{session}/log/text?before={start}")
        start = int(piece.headers["X-Offset"])
        got = piece.text + got
    assert got.encode() == world.slurm.log
    more = alice.get(f"/sessions/{session}/log/text?offset={following}")
    assert (more.text, more.headers["X-Next-Offset"]) == ("", str(following))


@pytest.mark.parametrize("query", ["", "offset=-5", "before=-5", "before=0", "before=x"])
def test_an_empty_log(alice: Browser, launched: Launched, query: str) -> None:
    session = launched("alice").session.id
    answer = alice.get(f"/sessions/{session}/log/text?{query}")
    assert (answer.status_code, answer.text, answer.headers["X-Next-Offset"]) == (200, "", "0")


def test_the_whole_log_is_a_file(world: World, alice: Browser, launched: Launched) -> None:
    session = launched("alice", name="training1").session
    world.slurm.log = lines(100_000)
    answer = alice.get(f"/sessions/{session.id}/log/download")
    assert answer.data == world.slurm.log
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    name = f"training1-{session.id[:8]}.log"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    reads = [line for line in world.slurm.commands if f"{session.id}.log " in line]
    assert len(reads) == -(-len(world.slurm.log) // PIECE)  # in pieces, never all at once


def test_a_download_ends_where_the_log_ended_when_it_began(
    world: World, alice: Browser, launched: Launched
) -> None:
    session = launched("alice").session.id
    world.slurm.log = lines(100_000)
    size = len(world.slurm.log)
    answer = alice.get(f"/sessions/{session}/log/download", buffered=False)
    pieces = answer.iter_encoded()
    got = next(iter(pieces))
    world.slurm.log += lines(50_000)
    got += b"".join(pieces)
    assert answer.headers["Content-Length"] == str(size)
    assert got == world.slurm.log[:size]


def app_log(count: int) -> bytes:
    """A log in which an app has a line after many of another's."""
    noise = b"2026-01-31T10:00:00Z [terminal] noise\n" * 999
    line = b"2026-01-31T10:00:01Z [jupyterlab] line %07d\n"
    return b"".join(noise + line % number for number in range(count))


def test_the_lines_of_one_app_followed_and_back_to_the_first(
    world: World, alice: Browser, launched: Launched
) -> None:
    session = launched("alice").session.id
    world.slurm.log = app_log(300) + b"2026-01-31T10:00:02Z [jupyterlab] incompl"
    place = f"/sessions/{session}/log/text?app=jupyterlab"
    piece = alice.get(place)
    start, following = (int(piece.headers[name]) for name in ("X-Offset", "X-Next-Offset"))
    got = piece.text
    assert got.endswith("line 0000299\n")
    while start:
        piece = alice.get(f"{place}&before={start}")
        start = int(piece.headers["X-Offset"])
        got = piece.text + got
    assert got == "".join(f"2026-01-31T10:00:01Z line {n:07}\n" for n in range(300))
    world.slurm.log += b"ete\n2026-01-31T10:00:02Z [terminal] noise\n"
    more = alice.get(f"{place}&offset={following}")
    assert more.text == "2026-01-31T10:00:02Z incomplete\n"
    assert int(more.headers["X-Next-Offset"]) == len(world.slurm.log)
    # Notebook is served by JupyterLab's process; the file and the API have the same lines.
    assert alice.get(f"/sessions/{session}/log/text?app=notebook").text.endswith("incomplete\n")
    whole = alice.get(f"/sessions/{session}/log/download?app=jupyterlab")
    assert whole.text == got + more.text
    assert "-jupyterlab.log" in whole.headers["Content-Disposition"]


def test_the_lines_of_an_unknown_app(
    world: World, alice: Browser, bob: Browser, launched: Launched
) -> None:
    session = launched("alice").session.id
    for part in ("", "/text", "/download"):
        assert alice.get(f"/sessions/{session}/log{part}?app=nothing").status_code == 422
        assert bob.get(f"/sessions/{session}/log{part}?app=terminal").status_code == 404


def test_a_tab_for_each_opened_app(alice: Browser, launched: Launched) -> None:
    runner = launched("alice")
    runner.ready()
    session = runner.session.id
    assert 'aria-label="Parts of the log"' not in alice.get(f"/sessions/{session}/log").text
    alice.post(f"/sessions/{session}/apps/notebook/open")
    page = alice.get(f"/sessions/{session}/log?app=jupyterlab").text
    assert f'href="/sessions/{session}/log?app=jupyterlab" aria-current="page"' in page
    assert "log?app=terminal" not in page
    assert "log?app=notebook" not in page
