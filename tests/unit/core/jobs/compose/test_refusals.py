"""sbatch's words, and the field that they are about."""

from __future__ import annotations

from typing import Any

import pytest

from portal.core.jobs.compose.refusals import SubmissionRefused, refusal
from portal.core.jobs.compose.submission import parse_job
from tests.support.submissions import ALL_FIELDS, SCRIPT

FAILED = "sbatch: error: Batch job submission failed: "


@pytest.mark.parametrize(
    ("body", "text", "field", "message"),
    [
        (ALL_FIELDS, f"{FAILED}Invalid partition name specified", "resource_group",
         "Invalid partition name specified"),
        (ALL_FIELDS, f"sbatch: error: invalid partition specified: x\n{FAILED}Invalid partition "
         "name specified", "resource_group",
         "Invalid partition name specified: invalid partition specified: x"),
        ({}, f"{FAILED}Invalid partition name specified", "script",
         "Invalid partition name specified"),
        ({"options": ["--partition=x"]}, f"{FAILED}Invalid partition name specified", "options",
         "Invalid partition name specified"),
        (ALL_FIELDS, f"sbatch: error: CPU count per node can not be satisfied\n{FAILED}Requested "
         "node configuration is not available", "resources.cpus",
         "Requested node configuration is not available: CPU count per node can not be satisfied"),
        (ALL_FIELDS, "sbatch: error: Memory specification can not be satisfied",
         "resources.memory", "Memory specification can not be satisfied"),
        (ALL_FIELDS, f"{FAILED}Requested time limit is invalid (missing or exceeds some limit)",
         "time_limit", "Requested time limit is invalid (missing or exceeds some limit)"),
        (ALL_FIELDS, "sbatch: error: --mount: there is no folder /x", "mounts",
         "--mount: there is no folder /x"),
        (ALL_FIELDS, "sbatch: error: --image: /x.sif: No such file or directory", "image",
         "--image: /x.sif: No such file or directory"),
        (ALL_FIELDS, "sbatch: error: line 2 of the script: --shm: '5' is not a size", "script",
         "line 2 of the script: --shm: '5' is not a size"),
        ({}, "sbatch: error: --fgpu: there are no GPUs here", "script",
         "--fgpu: there are no GPUs here"),
        ({"options": ["--nonsense=1"]}, "sbatch: unrecognized option '--nonsense=1'\n"
         "Try \"sbatch --help\" for more information", "options",
         "unrecognized option '--nonsense=1'"),
        ({}, "sbatch: unrecognized option '--nonsense=1'\n"
         "Try \"sbatch --help\" for more information", "script",
         "unrecognized option '--nonsense=1'"),
        ({"account": "x"}, f"{FAILED}Invalid account or account/partition combination specified",
         "account", "Invalid account or account/partition combination specified"),
        ({"resource_group": "x"},
         f"{FAILED}Invalid account or account/partition combination specified",
         "resource_group", "Invalid account or account/partition combination specified"),
        ({"qos": "x"}, f"{FAILED}Invalid qos specification", "qos", "Invalid qos specification"),
        ({"reservation": "x"}, f"{FAILED}Requested reservation is invalid", "reservation",
         "Requested reservation is invalid"),
        ({"constraint": "x"}, f"{FAILED}Invalid feature specification", "constraint",
         "Invalid feature specification"),
        ({"options": ["-Ax"]}, f"{FAILED}Invalid qos specification", "options",
         "Invalid qos specification"),
        ({}, "sbatch: error: Something new", "", "Something new"),
        ({}, "", "", "Slurm refused the job without a reason"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_field(
    body: dict[str, Any], text: str, field: str, message: str
) -> None:
    error = refusal(SubmissionRefused(text), parse_job({"script": SCRIPT} | body))
    assert [(found.field, found.message) for found in error.errors] == [(field, message)]


def test_what_a_file_says_is_an_error_of_its_path() -> None:
    error = refusal(
        SubmissionRefused("sbatch: error: Unable to open file ./x"), parse_job({"path": "/x"})
    )
    assert [found.field for found in error.errors] == ["path"]


def test_a_known_field_wins() -> None:
    error = refusal(SubmissionRefused("no", "directory"), parse_job({"script": SCRIPT}))
    assert [(found.field, found.message) for found in error.errors] == [("directory", "no")]


def test_what_the_command_adds_is_left_out() -> None:
    said = "sbatch: error: Batch job submission failed: Invalid qos\nslipway: note: More.\n"
    found = refusal(SubmissionRefused(said), parse_job({"script": "#!/bin/sh\n"}))
    assert [one.message for one in found.errors] == ["Invalid qos"]
