"""A job's output: its end first, earlier parts, written anew, and all of it as a file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.core.cluster.job_reports import JobState
from portal.web.log_text import PIECE, TAIL
from tests.support.fakes import World
from tests.support.measured_jobs import ERR, OUT, TEXTS, end, run
from tests.unit.web.conftest import Browser

TEXT = "/jobs/7/output/text"


def lines(count: int) -> bytes:
    return b"".join(b"line %07d of a long output\n" % n for n in range(count))


def test_the_end_comes_first_and_the_rest_on_request(world: World, alice: Browser) -> None:
    run(world)
    world.slurm.files[OUT] = lines(60_000)
    piece = alice.get(TEXT)
    got = piece.text
    start, following = int(piece.headers["X-Offset"]), int(piece.headers["X-Next-Offset"])
    assert following == len(world.slurm.files[OUT])
    assert len(got) <= TAIL
    assert got.startswith("line ")
    while start:
        piece = alice.get(f"{TEXT}?before={start}")
        start = int(piece.headers["X-Offset"])
        got = piece.text + got
    assert got.encode() == world.slurm.files[OUT]
    more = alice.get(f"{TEXT}?offset={following}")
    assert (more.text, more.headers["X-Next-Offset"]) == ("", str(following))
    world.slurm.files[OUT] += b"new\n"
    assert alice.get(f"{TEXT}?offset={following}").text == "new\n"


def test_an_output_that_is_written_anew_is_read_from_its_beginning(
    world: World, alice: Browser
) -> None:
    run(world)
    world.slurm.files[OUT] = b"again\n"
    piece = alice.get(f"{TEXT}?offset=5000")
    assert (piece.text, piece.headers["X-Offset"]) == ("again\n", "0")


def test_errors_have_a_page_of_their_own_if_they_have_a_file(world: World, alice: Browser) -> None:
    run(world)
    world.slurm.files |= {OUT: b"out\n", ERR: b"err\n"}
    assert alice.get(f"{TEXT}?stream=stderr").text == "err\n"
    page = alice.get("/jobs/7/output?stream=stderr").text
    assert f"<code>{ERR}</code>" in page
    assert 'href="/jobs/7/output"' in page
    assert 'href="/jobs/7/output?stream=stderr" aria-current="page"' in page


def test_both_in_one_file_are_shown_once(world: World, alice: Browser) -> None:
    run(world, texts=replace(TEXTS, stderr=OUT))
    world.slurm.files[OUT] = b"both\n"
    assert alice.get(f"{TEXT}?stream=stderr").text == "both\n"
    page = alice.get("/jobs/7").text
    assert "Output and errors" in page
    assert page.count('class="log-end"') == 1
    assert "log-tabs" not in alice.get("/jobs/7/output").text


@pytest.mark.parametrize(
    "query", ["", "?offset=-5", "?before=-5", "?offset=x", f"?offset={10**30}"]
)
def test_nothing_has_been_written_yet(world: World, alice: Browser, query: str) -> None:
    run(world)
    answer = alice.get(TEXT + query)
    assert (answer.status_code, answer.text, answer.headers["X-Next-Offset"]) == (200, "", "0")
    assert answer.headers["X-Over"] == "no"


def test_a_file_that_is_gone_after_the_end_is_told_in_words(world: World, alice: Browser) -> None:
    end(world)
    answer = alice.get(TEXT)
    assert answer.status_code == 409
    assert answer.headers["X-Over"] == "yes"
    assert answer.text == (
        f"{OUT} is not on the login node: it was deleted or moved, or it is in a folder that only "
        "the compute node has."
    )


def test_a_job_that_never_started_wrote_nothing(world: World, alice: Browser) -> None:
    end(world, state=JobState.CANCELLED, start=None)
    answer = alice.get(TEXT)
    assert (answer.status_code, answer.text) == (
        409,
        f"The job never started, so it did not write {OUT}.",
    )


def test_a_folder_in_its_place_is_told_in_words(world: World, alice: Browser) -> None:
    run(world)
    world.slurm.files[f"{OUT}/"] = b""
    for path in (TEXT, "/jobs/7/output/download"):
        answer = alice.get(path)
        assert answer.status_code == 409
        assert f"{OUT} is a folder, so there is no output to show." in answer.text


def test_the_path_never_comes_from_the_request(world: World, alice: Browser) -> None:
    run(world)
    world.slurm.files |= {OUT: b"out\n", "/etc/passwd": b"root\n"}
    for query in ("?path=/etc/passwd", "?stream=/etc/passwd", "?stdout=/etc/passwd"):
        assert alice.get(TEXT + query).text == "out\n"


def test_the_whole_output_is_a_file(world: World, alice: Browser) -> None:
    run(world, 21, array_id="20", tasks="4")
    world.slurm.files[OUT] = lines(100_000)
    answer = alice.get("/jobs/20_4/output/download")
    assert answer.data == world.slurm.files[OUT]
    assert answer.headers["Content-Length"] == str(len(world.slurm.files[OUT]))
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="job-20_4.out"'
    reads = [line for line in world.slurm.commands if OUT in line]
    assert len(reads) == 1 + -(-len(world.slurm.files[OUT]) // PIECE)  # never all at once
    assert all(line.startswith("alice: ") for line in reads)


def test_a_third_download_at_once_is_refused_in_words(world: World, alice: Browser) -> None:
    run(world)
    world.slurm.files[OUT] = lines(100_000)
    path = "/jobs/7/output/download"
    held = [alice.get(path, buffered=False) for _ in range(2)]
    refused = alice.get(path)
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "15"
    assert "You are downloading 2 files already." in refused.text
    held[0].close()
    assert alice.get(path).status_code == 200


def test_characters_are_not_cut_and_bytes_that_are_none_are_replaced(
    world: World, alice: Browser
) -> None:
    run(world)
    world.slurm.files[OUT] = b"gr\xc3\xb6\xc3"
    piece = alice.get(TEXT)
    assert (piece.text, piece.headers["X-Next-Offset"]) == ("grö", "4")
    world.slurm.files[OUT] = b"\x00\xff\x1b[31m\n"
    assert alice.get(TEXT).text == "\x00\ufffd\x1b[31m\n"
