"""Which words of a command line are options of ours, of Slurm's, and the script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from portal.node.batch import options
from portal.node.batch.options import OptionError, parse

RECORDED = Path(__file__).parents[3] / "recorded" / "sbatch_options.json"
SBATCH = json.loads(RECORDED.read_text())


def arguments_of(option: str) -> set[str]:
    """What the versions of Slurm say about an option's value."""
    return set(SBATCH[option]["arg"].values())


def test_every_option_of_sbatch_is_known() -> None:
    with_value = {option for option in SBATCH if "required_argument" in arguments_of(option)}
    assert with_value == options.WITH_VALUE["sbatch"] & set(SBATCH)
    assert set(SBATCH) - with_value | {"wait"} == options.WITHOUT_VALUE & set(SBATCH)
    letters = {SBATCH[option]["short"] for option in SBATCH} - {""}
    needing = {SBATCH[option]["short"] for option in with_value} - {""}
    assert needing == set(options.SHORT_WITH_VALUE["sbatch"]) & letters


@pytest.mark.parametrize("option", SBATCH)
def test_the_script_is_found_after_any_option(option: str) -> None:
    needs = "required_argument" in arguments_of(option)
    words = [f"--{option}", *(["7"] if needs else [])]
    line = parse("sbatch", [*words, "script.sh", "--image", "7"])
    assert (line.options, line.command) == (words, ["script.sh", "--image", "7"])
    if needs:
        line = parse("sbatch", [f"--{option}=7", "script.sh"])
        assert (line.options, line.command) == ([f"--{option}=7"], ["script.sh"])
    if short := SBATCH[option]["short"]:
        words = [f"-{short}", *(["7"] if needs else [])]
        line = parse("sbatch", [*words, "script.sh"])
        assert (line.options, line.command) == (words, ["script.sh"])


def test_our_options_are_taken_out() -> None:
    words = "-n 4 --image python/3.13 --fgpu=0.5 --mem=1G --mount a --mount=b:ro --dry-run job x"
    line = parse("sbatch", words.split())
    assert line.options == ["-n", "4", "--mem=1G"]
    assert line.command == ["job", "x"]
    assert line.slipway_options == [
        ("image", "python/3.13"),
        ("fgpu", "0.5"),
        ("mount", "a"),
        ("mount", "b:ro"),
        ("dry-run", ""),
    ]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("-n4 job", ["job"]),
        ("-Hn4 job", ["job"]),
        ("-Hn 4 job", ["job"]),
        ("-k job", ["job"]),
        ("-k4 job", ["job"]),
        ("--exclusive job", ["job"]),
        ("--exclusive=user job", ["job"]),
        ("--part main job", ["job"]),
        ("-- --image", ["--image"]),
        ("-n1 : -n2 job", ["job"]),
        ("-", ["-"]),
        ("--newer-than-this-table 5 job", ["job"]),
        ("", []),
    ],
)
def test_the_words_of_getopt(words: str, command: list[str]) -> None:
    line = parse("sbatch", words.split())
    assert line.command == command
    assert [*line.options, *line.command] == words.split()


def test_wrap_and_chdir_are_noted() -> None:
    line = parse("sbatch", ["-D", "/tmp", "--wrap", "echo  hi", "-n1"])
    assert (line.chdir, line.values["wrap"]) == ("/tmp", "echo  hi")
    assert line.wrap is not None
    assert line.options[line.wrap] == "echo  hi"
    assert parse("sbatch", ["--hold", "--wrap"]).wrap is None
    line = parse("sbatch", ["--wrap=date"])
    assert (line.wrap, line.values["wrap"]) == (0, "date")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--image"], "--image: it needs a value"),
        (["--dry-run=yes"], "--dry-run: it has no value"),
    ],
)
def test_wrong_options_are_named(words: list[str], text: str) -> None:
    with pytest.raises(OptionError, match=f"^{text}$"):
        parse("sbatch", words)


def test_srun_has_options_of_its_own() -> None:
    line = parse("srun", "--mpi pmi2 -l -W 5 --multi-prog --wait 3 conf".split())
    assert line.command == ["conf"]
    assert parse("salloc", "-I -K bash -l".split()).command == ["bash", "-l"]
