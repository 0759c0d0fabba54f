"""What users wrote into their jobs: real output, and attempts to forge records."""

from __future__ import annotations

import json

import pytest

from portal.adapters.slurm.texts import (
    new_separator,
    texts_argv,
    texts_format,
    texts_parse,
)
from portal.core.interfaces.jobs import MOST_NAMED
from portal.core.jobs.job import JobTexts
from tests.record import HOSTILE, SEPARATOR
from tests.support.paths import RECORDED
from tests.support.recordings import VERSIONS, recorded


def found(version: str) -> dict[str, JobTexts]:
    """The texts of the recorded jobs, by kind."""
    roles = json.loads((RECORDED / version / "jobs-others.json").read_text(encoding="utf-8"))
    texts = texts_parse(recorded(version, "jobs-texts"), SEPARATOR, roles.values())
    return {role: texts[number] for role, number in roles.items()}


@pytest.mark.parametrize("version", VERSIONS)
def test_names_with_line_breaks_are_one_name(version: str) -> None:
    assert found(version)["hostile"].name == HOSTILE


@pytest.mark.parametrize("version", VERSIONS)
def test_paths(version: str) -> None:
    texts = found(version)
    array = texts["array"]
    assert array == JobTexts(
        "arr", "/home/bob", "", "/home/bob/out-%A_%a-arr.txt", "/home/bob/out-%A_%a-arr.txt"
    )
    assert texts["errors"].stderr == "/tmp/errors-%4j.txt"
    assert texts["errors"].directory == "/tmp"
    assert texts["hostile"].stdout == "/home/bob/slurm-%j.out"


@pytest.mark.parametrize("version", VERSIONS)
def test_dependencies(version: str) -> None:
    roles = json.loads((RECORDED / version / "jobs-others.json").read_text(encoding="utf-8"))
    text = found(version)["waits"].dependency
    assert f"afterok:{roles['hostile']}(unfulfilled)" in text
    assert f"afterany:{roles['errors']}(unfulfilled)" in text


def record(*fields: str) -> str:
    """What squeue prints for one job."""
    return "".join(f"{field}<s>" for field in fields) + "\n"


def test_only_jobs_that_were_asked_for_are_read() -> None:
    text = record("7", "a", "/d", "(null)", "(null)", "(null)", "(null)") + record(
        "8", "b", "/d", "run me", "/o", "/e", "afterok:7"
    )
    assert texts_parse(text, "<s>", ["8", "9"]) == {
        "8": JobTexts("b", "/d", "run me", "/o", "/e", "afterok:7")
    }


@pytest.mark.parametrize(
    ("command", "known"),
    [
        ("/tmp/slipway-ab_12xyz/my job.sh a /b", "my job.sh a /b"),
        ("/scratch/me/slipway-abcdefgh/run.sh", "run.sh"),
        ("/home/a/run.sh /tmp/slipway-abcdefgh", "/home/a/run.sh /tmp/slipway-abcdefgh"),
        ("/home/a/slipway-results-1/run.sh", "/home/a/slipway-results-1/run.sh"),
    ],
)
def test_the_folder_of_a_copy_that_is_gone_is_no_part_of_a_command(
    command: str, known: str
) -> None:
    text = record("8", "b", "/d", command, "/o", "/e", "(null)")
    assert texts_parse(text, "<s>", ["8"])["8"].command == known


def test_an_incomplete_record_is_left_out() -> None:
    assert texts_parse("7<s>a<s>/d<s>", "<s>", ["7"]) == {}
    assert texts_parse("", "<s>", ["7"]) == {}


def test_the_separator_is_new_each_time_and_in_no_argument() -> None:
    separator = new_separator()
    assert separator != new_separator()
    assert not separator[0].isdigit()  # squeue would take it for a width
    assert separator in texts_format(separator)
    assert separator not in " ".join(texts_argv(["1", "2"]))


def test_many_jobs_are_not_named() -> None:
    """squeue would compare each job of the queue with each of them."""
    ids = [str(number) for number in range(1, MOST_NAMED + 2)]
    assert f"--jobs={','.join(sorted(ids[1:]))}" in texts_argv(ids[1:])
    assert not any(word.startswith("--jobs") for word in texts_argv(ids))
    others = record("9000", "x", "/x", "x", "x", "x", "(null)")
    printed = others + record("2", "b", "/b", "c", "o", "e", "(null)")
    assert list(texts_parse(printed, "<s>", ids)) == ["2"]


def test_numbers_of_jobs_are_checked() -> None:
    with pytest.raises(ValueError, match="invalid job ids"):
        texts_argv(["1", "2;id"])


def test_a_path_that_cannot_exist_is_unknown() -> None:
    long = "d" * 4090
    text = record("8", "b", f"/{long}", "c", "o", "/" + "%x" * 2000, "(null)")
    assert texts_parse(text, "<s>", ["8"])["8"] == JobTexts(
        "b", f"/{long}", "c", f"/{long}/o", "/" + "b" * 2000
    )
    text = record("8", "b" * 1000, f"/{long}", "c", "o" * 10, "/" + "%x" * 2000, "(null)")
    assert texts_parse(text, "<s>", ["8"])["8"].stdout == ""
    assert texts_parse(text, "<s>", ["8"])["8"].stderr == ""
