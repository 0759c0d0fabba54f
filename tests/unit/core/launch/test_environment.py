"""Which variables may be set, and why others may not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.launch.environment import NAME, parse_lines, to_lines, variable_problem
from portal.errors import FieldError, InvalidRequest


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("IPYTHONDIR", "could open its kernels to everybody on the node"),
        ("JUPYTER_CONFIG_DIR", "could open its kernels to everybody on the node"),
        ("JUPYTERHUB_API_TOKEN", "Jupyter's"),
        ("JUPYTER_RUNTIME_DIR", "Jupyter's"),
        ("SPANK_X", "Slurm's, for its plug-ins"),
        ("PYTHONSTARTUP", "would run a file in each kernel"),
        ("TMUX", "the terminal's"),
        ("TMUX_TMPDIR", "the terminal's"),
        ("TTYD_CREDENTIAL", "would change who gets in"),
        ("NSS_WRAPPER_PASSWD", "would change who gets in"),
        ("CODE_SERVER_HOST", "would change who gets in"),
        ("LD_PRELOAD", "the program loader's"),
        ("BASH_ENV", "the shell's"),
        ("HOME", "set by Slipway in every session"),
    ],
)
def test_each_refusal_names_the_variable_and_the_reason(name: str, why: str) -> None:
    text = variable_problem(name)
    assert text is not None
    assert text.startswith(f"{name} cannot be set: it is ")
    assert why in text


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "PYTHONPATH",
        "LD_LIBRARY_PATH",
        "PORT",
        "XDG_DATA_HOME",
        "MY_JUPYTER",
        "OMP_NUM_THREADS",
    ],
)
def test_others_may_be_set(name: str) -> None:
    assert variable_problem(name) is None


def test_lines_are_read_as_a_shell_would() -> None:
    text = '# comment\n\nA=1\n export B="two \\"words\\""\nC=\'$HOME/x\';\nD=a=b\nE=\n'
    assert parse_lines(text) == {"A": "1", "B": 'two "words"', "C": "$HOME/x", "D": "a=b", "E": ""}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A=1\nMY DATA", "write line 2 as NAME=value"),
        ("=x", "write line 1 as NAME=value"),
        ("A=1\nexport A=2", "A occurs twice"),
    ],
)
def test_lines_that_set_nothing_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_lines(text)
    assert refused.value.errors == (FieldError("env", message),)


NAMES = st.from_regex(NAME, fullmatch=True)
VALUES = st.text(st.characters(exclude_characters="\r\n"))


@given(st.dictionaries(NAMES, VALUES))
def test_lines_keep_every_value(variables: dict[str, str]) -> None:
    assert parse_lines(to_lines(variables) or "") == variables


def test_values_of_several_lines_cannot_be_written_as_lines() -> None:
    assert to_lines({"A": "1", "B": "two\nlines"}) is None
    assert to_lines({"A": "ends\n"}) is None
