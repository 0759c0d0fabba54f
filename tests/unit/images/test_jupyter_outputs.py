"""What cells print while their window is away: recorded as a window would show it."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from tests.support.paths import ROOT

MODULE = runpy.run_path(str(ROOT / "images/toolkit/jupyter/outputs.py"))
Recorder, merge, overwritten = (MODULE[name] for name in ("Recorder", "merge", "overwritten"))
HERE, THERE = "window 1", "window 2"


@pytest.fixture
def recorder() -> Any:
    """A kernel with one window, which has run cell `a` and is closed."""
    made = Recorder()
    made.connected(HERE)
    made.request("r1", HERE, "a", "code of a")
    made.take("execute_input", "r1", {"code": "code of a", "execution_count": 4})
    printed(made, "before\n")
    made.disconnected(HERE)
    return made


def printed(recorder: Any, text: str, name: str = "stdout", request: str = "r1") -> None:
    recorder.take("stream", request, {"name": name, "text": text})


def idle(recorder: Any, request: str = "r1") -> None:
    recorder.take("status", request, {"execution_state": "idle"})


def cell(id: str = "a", **more: Any) -> dict[str, Any]:
    usual = {"id": id, "cell_type": "code", "source": f"code of {id}", "metadata": {}}
    return {**usual, "outputs": [], "execution_count": None, **more}


def outputs(recorder: Any) -> list[dict[str, Any]]:
    (execution,) = recorder.missed
    found: list[dict[str, Any]] = execution.outputs
    return found


def test_all_output_of_a_closed_window_is_there(recorder: Any) -> None:
    printed(recorder, "after\n")
    printed(recorder, "warning", "stderr")
    recorder.take("display_data", "r1", {"data": {"image/png": "x"}, "metadata": {}})
    recorder.take(
        "execute_result", "r1",
        {"data": {"text/plain": "5"}, "metadata": {}, "execution_count": 4},
    )  # fmt: skip
    recorder.take("error", "r1", {"ename": "E", "evalue": "v", "traceback": ["t"]})
    idle(recorder)
    cells = [cell("b"), cell()]
    assert merge(cells, recorder.missed)
    assert cells[1]["execution_count"] == 4
    assert cells[1]["metadata"] == {"trusted": True}
    assert cells[1]["outputs"] == [
        {"output_type": "stream", "name": "stdout", "text": "before\nafter\n"},
        {"output_type": "stream", "name": "stderr", "text": "warning"},
        {"output_type": "display_data", "data": {"image/png": "x"}, "metadata": {}},
        {
            "output_type": "execute_result", "data": {"text/plain": "5"}, "metadata": {},
            "execution_count": 4,
        },
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["t"]},
    ]  # fmt: skip
    assert cells[0] == cell("b")
    assert not merge(cells, recorder.missed)


def test_nothing_is_kept_of_a_run_that_its_window_has_seen() -> None:
    recorder = Recorder()
    recorder.connected(HERE)
    recorder.connected(THERE)
    recorder.request("r1", HERE, "a", "x")
    printed(recorder, "seen")
    recorder.disconnected(THERE)
    idle(recorder)
    assert recorder.missed == []
    assert not recorder.knows("r1")


def test_cells_that_wait_are_recorded_when_they_run(recorder: Any) -> None:
    """ "Run all", and then the window is closed."""
    recorder.connected(THERE)
    recorder.request("r2", THERE, "b", "code of b")
    recorder.disconnected(THERE)
    idle(recorder)
    cells = [cell(), cell("b")]
    merge(cells, recorder.missed)
    assert (cells[1]["outputs"], cells[1]["execution_count"]) == ([], None)
    recorder.take("execute_input", "r2", {"execution_count": 5})
    printed(recorder, "second", request="r2")
    idle(recorder, "r2")
    merge(cells, recorder.missed)
    assert cells[1]["outputs"][0]["text"] == "second"


def test_a_run_that_goes_on_has_no_number(recorder: Any) -> None:
    cells = [cell()]
    assert merge(cells, recorder.missed)
    assert (cells[0]["outputs"][0]["text"], cells[0]["execution_count"]) == ("before\n", None)


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["  5%|", "\r 50%|", "\r100%|#", "\n"], "100%|#\n"),
        (["10%\r", "20%\r", "done\n"], "done\n"),
        (["long line\rabc"], "abcg line"),
        (["a\r\nb\r\n"], "a\nb\n"),
        (["wait\r"], "wait"),
    ],
)
def test_a_progress_bar_is_one_line(pieces: list[str], shown: str) -> None:
    recorder = Recorder()
    recorder.request("r1", HERE, "a", "x")
    recorder.disconnected(HERE)
    for piece in pieces:
        printed(recorder, piece, "stderr")
    assert outputs(recorder)[0]["text"] == shown


def test_a_long_progress_bar_takes_no_memory(recorder: Any) -> None:
    for number in range(30_000):
        printed(recorder, f"\r{number:1000}")
    (execution,) = recorder.missed
    assert execution._size < 2000
    assert outputs(recorder)[0]["text"].endswith("29999")


def test_output_is_cleared_and_replaced(recorder: Any) -> None:
    recorder.take("clear_output", "r1", {"wait": True})
    assert outputs(recorder)[0]["text"] == "before\n"
    shown = {"data": {"text/plain": "old"}, "metadata": {}, "transient": {"display_id": "d"}}
    recorder.take("display_data", "r1", shown)
    assert [each["data"] for each in outputs(recorder)] == [{"text/plain": "old"}]
    recorder.take("update_display_data", "r9", {**shown, "data": {"text/plain": "new"}})
    assert outputs(recorder)[0]["data"] == {"text/plain": "new"}
    recorder.take("clear_output", "r1", {"wait": False})
    assert outputs(recorder) == []


def test_output_without_end_is_cut_and_said(recorder: Any) -> None:
    for _ in range(12):
        printed(recorder, "x" * (1 << 20))
    recorder.take("error", "r1", {"ename": "E", "evalue": "", "traceback": []})
    *_, notice, error = outputs(recorder)
    assert notice["text"].startswith("Slipway kept only the first 10 MB")
    assert error["ename"] == "E"
    assert sum(len(each.get("text", "")) for each in outputs(recorder)) < 12 << 20


def test_a_saved_notebook_that_has_it_ends_the_recording(recorder: Any) -> None:
    idle(recorder)
    recorder.saved([cell()])  # by a window that does not have it
    assert len(recorder.missed) == 1
    cells = [cell()]
    merge(cells, recorder.missed)
    recorder.saved(cells)
    assert recorder.missed == []


def test_while_it_runs_no_save_ends_the_recording(recorder: Any) -> None:
    cells = [cell()]
    merge(cells, recorder.missed)
    recorder.saved(cells)
    printed(recorder, "after")
    assert outputs(recorder)[0]["text"] == "before\nafter"


def test_a_newer_run_is_not_replaced(recorder: Any) -> None:
    idle(recorder)
    newer = cell(execution_count=7, outputs=[{"output_type": "stream", "text": "newer"}])
    cells = [dict(newer)]
    assert not merge(cells, recorder.missed)
    assert cells == [newer]
    recorder.request("r2", THERE, "a", "x")
    assert recorder.missed == []


def test_notebooks_without_ids_are_matched_by_text(recorder: Any) -> None:
    def old(text: str | list[str]) -> dict[str, Any]:
        made = cell(source=text)
        del made["id"]
        return made

    cells = [old("other"), old(["code ", "of a"])]
    assert merge(cells, recorder.missed)
    assert cells[1]["outputs"][0]["text"] == "before\n"
    assert not merge([old("code of a"), old("code of a")], recorder.missed)


def test_a_kernel_that_ends_leaves_what_it_has_printed(recorder: Any) -> None:
    recorder.ended()
    cells = [cell()]
    merge(cells, recorder.missed)
    assert (cells[0]["outputs"][0]["text"], cells[0]["execution_count"]) == ("before\n", 4)
