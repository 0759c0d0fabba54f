"""The complete batch script, and what it must never contain."""

from __future__ import annotations

import dataclasses
import subprocess

import pytest

from portal.core.session_job.batch_script import render_script
from portal.core.session_job.description import JobDescription
from tests.support.batch_scripts import GOLDEN, PLAIN, TEMPLATE

FULL = dataclasses.replace(
    PLAIN,
    partition="main",
    time_limit=90,
    cpus=4,
    memory_mb=16384,
    dotfiles=(".tmux.conf", ".config/tmux/tmux.conf"),
)
GPU = dataclasses.replace(PLAIN, gres="shard:2")


@pytest.mark.parametrize(("name", "job"), [("plain", PLAIN), ("full", FULL), ("gpu", GPU)])
def test_the_complete_script(name: str, job: JobDescription) -> None:
    """After an intended change render it again, review the difference, and commit both."""
    assert render_script(job, TEMPLATE) == (GOLDEN / f"session-{name}.sh").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("name", ["plain", "full", "gpu"])
def test_bash_can_parse_the_script(name: str) -> None:
    subprocess.run(["bash", "-n", str(GOLDEN / f"session-{name}.sh")], check=True)


@pytest.mark.parametrize("field", ["user", "image", "toolkit", "directory", "session"])
@pytest.mark.parametrize("value", ["a b", "$(id)", "a;b", "a\n#SBATCH --uid=0", "'", "`id`", "ä"])
def test_no_shell_syntax_can_be_injected(field: str, value: str) -> None:
    with pytest.raises(ValueError, match=field):
        render_script(JobDescription(**{**dataclasses.asdict(PLAIN), field: value}), TEMPLATE)


@pytest.mark.parametrize("value", ["$(id)", "a;b", "a\n#SBATCH --uid=0", "'", '"', "`id`", "-p"])
def test_nor_in_the_name_of_a_partition(value: str) -> None:
    with pytest.raises(ValueError, match="partition"):
        render_script(dataclasses.replace(PLAIN, partition=value), TEMPLATE)


@pytest.mark.parametrize("name", ["sp ace", "Größe", "gpu+big:1"])
def test_partitions_with_odd_names(name: str) -> None:
    script = render_script(dataclasses.replace(PLAIN, partition=name), TEMPLATE)
    assert f'\n#SBATCH --partition="{name}"\n' in script
