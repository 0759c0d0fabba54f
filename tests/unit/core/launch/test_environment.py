"""Which variables may be set, and why others may not."""

from __future__ import annotations

import pytest

from portal.core.launch.environment import variable_problem


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
