"""Variables that an image makes of the job's."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.node.runner.batch.image_variables import from_job

OCI = 'export LANG="${LANG:-"C.UTF-8"}"\nexport MODE="${MODE:-"slow"}"\nexport FIXED="image"\n'
CONTAINER = {"LANG": "C.UTF-8", "MODE": "slow", "FIXED": "image", "PATH": "/usr/bin:/bin"}


@pytest.fixture
def scripts(tmp_path: Path) -> str:
    (tmp_path / "10-oci.sh").write_text(OCI)
    (tmp_path / "90-own.sh").write_text("export LIBRARIES=/opt/x:$LIBRARIES\n")
    return f"{tmp_path}/*.sh"


@pytest.mark.parametrize(
    ("job", "found"),
    [
        ({"MODE": "fast", "FIXED": "job", "PATH": "/job"}, {"MODE": "fast"}),
        ({"MODE": ""}, {"MODE": "slow"}),
        ({"LANG": "de\n \udcff'", "MODE": "slow"}, {"LANG": "de\n \udcff'"}),
        ({"LIBRARIES": "/home/a"}, {"LIBRARIES": "/opt/x:/home/a"}),
        ({"OTHER": "1"}, {}),
        ({}, {}),
    ],
)
def test_the_image_takes_the_jobs_where_it_asks_for_it(
    job: dict[str, str], found: dict[str, str], scripts: str
) -> None:
    assert from_job(CONTAINER | {"LIBRARIES": "/opt/x:"}, job, scripts) == found


def test_scripts_that_a_shell_cannot_read_change_nothing(scripts: str, tmp_path: Path) -> None:
    (tmp_path / "91-odd.sh").write_text("a=(1 2)\nif\n")
    assert from_job(CONTAINER, {"MODE": "fast"}, scripts) == {}
