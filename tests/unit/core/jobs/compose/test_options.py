"""Options that are typed: divided like a shell's words, and those that are refused."""

from __future__ import annotations

import json
import re

import pytest

from portal.core.jobs.compose.options import (
    LETTERS_WITH_VALUE,
    REFUSED,
    WITHOUT_VALUE,
    check_directives,
    check_options,
    divide,
)
from portal.node.batch import options as of_the_command
from tests.support.paths import ROOT

KNOWN = json.loads((ROOT / "tests" / "recorded" / "sbatch_options.json").read_text())


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("--constraint=avx -n4", ("--constraint=avx", "-n4")),
        ("--constraint avx -n 4", ("--constraint=avx", "-n4")),
        ("--hold --exclusive=user", ("--hold", "--exclusive=user")),
        ("--hold -C 'a&b|c'", ("--hold", "-Ca&b|c")),
        ("-Hn 4 -kx", ("-Hn4", "-kx")),
        ("--comment 'two words; $(touch x)'", ("--comment=two words; $(touch x)",)),
        ("--comment=''", ("--comment=",)),
        ("--new-option value", ("--new-option=value",)),
        ("--export-file=/x --uid=0 --bbf=b", ("--export-file=/x", "--uid=0", "--bbf=b")),
        ("", ()),
    ],
)  # fmt: skip
def test_each_option_becomes_one_word_with_its_value(typed: str, words: tuple[str, ...]) -> None:
    assert check_options(divide(typed)) == words


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("--wrap=id", "--wrap is not possible here: the script is what is submitted"),
        ("--wra id", "--wrap is not possible here: the script is what is submitted"),
        ("--parsable", "--parsable is not possible here: Slipway reads sbatch's answer itself"),
        ("-W", "--wait is not possible here: Slipway does not wait for the end of a job"),
        ("-HW", "--wait is not possible here: Slipway does not wait for the end of a job"),
        ("-HQ", "--quiet is not possible here: it hides the number of the job"),
        ("--test", "--test-only is not possible here: use Check instead"),
        ("-V", "--version is not possible here: nothing would be submitted"),
        ("-h", "--help is not possible here: nothing would be submitted"),
        ("--dry-run", "--dry-run is not possible here: use Show the command instead"),
        ("run.sh", "run.sh is not an option: the script is entered above"),
        ("--hold run.sh", "run.sh is not an option: the script is entered above"),
        ("-- run.sh", "-- is not an option: the script is entered above"),
        (":", ": is not an option: the script is entered above"),
        ("--constraint", "--constraint needs a value"),
        ("-n", "-n needs a value"),
        ("--comment='a\nb'", "use printable characters, in one line"),
        ("--comment 'a\0b'", "use printable characters, in one line"),
        ("x" * 9000, "use up to 100 words with 8,192 characters in total"),
        ("-H " * 101, "use up to 100 words with 8,192 characters in total"),
    ],
)
def test_what_would_not_submit_the_script_is_refused_by_name(typed: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_options(divide(typed))


def test_an_open_quotation_mark_is_named() -> None:
    with pytest.raises(ValueError, match="a quotation mark or backslash is not closed"):
        divide("--comment='a")


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_every_option_of_sbatch_is_taken_or_refused_by_name(name: str) -> None:
    argument = set(KNOWN[name]["arg"].values())
    if name in REFUSED:
        with pytest.raises(ValueError, match=f"--{name} is not possible here"):
            check_options([f"--{name}"])
    elif argument == {"required_argument"}:
        assert check_options([f"--{name}", "value"]) == (f"--{name}=value",)
    else:
        assert check_options([f"--{name}"]) == (f"--{name}",)


def test_the_tables_agree_with_those_of_the_command() -> None:
    assert of_the_command.SHORT_WITH_VALUE["sbatch"] == LETTERS_WITH_VALUE
    assert WITHOUT_VALUE <= of_the_command.WITHOUT_VALUE


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("#!/bin/sh\n#SBATCH --wait\n", "line 2: --wait is not possible"),
        ("#!/bin/sh\n\n# note\n#SBATCH -n 2 -W\n", "line 4: --wait is not possible"),
        ("#!/bin/sh\n#SBATCH --parsable # quickly\n", "line 2: --parsable is not possible"),
    ],
)
def test_directives_that_would_hide_the_number_are_refused(script: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        check_directives(script)


@pytest.mark.parametrize(
    "script",
    [
        "#!/bin/sh\necho hello\n#SBATCH --wait\n",
        "#!/bin/sh\n##SBATCH --wait\n # SBATCH --wait\n",
        "#!/bin/sh\n#SBATCH --comment='open\n",
        "#!/bin/sh\n#SBATCH --wait-all-nodes=1\n#SBATCH -J Wait\n#SBATCH -t 1\n",
    ],
)
def test_other_lines_are_left_to_sbatch(script: str) -> None:
    check_directives(script)


def test_long_lines_of_options_are_refused_at_once() -> None:
    """Dividing one word of 500 KB took eight seconds of the portal's processor."""
    with pytest.raises(ValueError, match=r"^use up to 100 words with 8,192 characters"):
        divide("a" * 8193)
    with pytest.raises(ValueError, match=r"^line 2: use up to 8,192 characters in one line"):
        check_directives("#!/bin/sh\n#SBATCH " + "a" * 8192)
    check_directives("#!/bin/sh\n#" + "a" * 500_000 + "\n#SBATCH " + "a" * 8184)
