"""sbatch's refusals, by the words of Slurm 24.11 and 26.05 (slurm_errno.c, and recorded ones)."""

from __future__ import annotations

import pytest

from portal.adapters.slurm.refusals import refusal
from portal.adapters.ssh.transport import Completed
from portal.errors import GresUnknown, InvalidRequest, Unavailable

FAILED = "sbatch: error: Batch job submission failed: "
POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"


def refused(*lines: str) -> InvalidRequest:
    """The error for sbatch's messages, the last one being its answer."""
    *before, last = lines
    text = "".join(f"sbatch: error: {line}\n" for line in before) + f"{FAILED}{last}\n"
    found = refusal(Completed(1, b"", text))
    assert isinstance(found, InvalidRequest)
    return found


@pytest.mark.parametrize(
    ("field", "lines"),
    [
        ("account", ["Invalid account or account/partition combination specified"]),
        ("qos", ["Invalid qos specification"]),
        ("qos", ["Requested account has breached requested QOS usage threshold"]),
        ("reservation", ["Requested reservation is invalid"]),
        ("reservation", ["Access denied to requested reservation"]),
        ("reservation", ["Requested reservation not usable now"]),
        ("constraint", ["Invalid feature specification"]),
        ("resources.fgpu", ["Invalid generic resource (gres) specification"]),
        ("resources.memory", ["Memory required by task is not available"]),
        ("resources.cpus", ["CPU count specification invalid"]),
        ("resources.cpus", ["More processors requested than permitted"]),
        ("resource_group", ["Invalid partition name specified"]),
        ("resource_group", ["User's group not permitted to use this partition"]),
        ("resource_group", ["Required partition not available (inactive or drain)"]),
        ("resource_group", ["Requested partition configuration not available now"]),
        ("time_limit", ["Requested time limit is invalid (missing or exceeds some limit)"]),
        ("resources", ["Requested node configuration is not available"]),
        ("resources", ["Required node not available (down, drained or reserved)"]),
        (
            "resources.memory",
            [
                "Memory specification can not be satisfied",
                "Requested node configuration is not available",
            ],
        ),
        (
            "resources.cpus",
            [
                "CPU count per node can not be satisfied",
                "Requested node configuration is not available",
            ],
        ),
        # A plug-in's words do not hide what Slurm's own answer is about.
        ("qos", ["lua: check your memory", "Invalid qos specification"]),
        ("", ["Access/permission denied"]),
        ("", [POLICY]),
        ("count", ["AssocMaxSubmitJobLimit", POLICY]),
        ("count", ["QOSMaxSubmitJobPerUserLimit", POLICY]),
        ("time_limit", ["QOSMaxWallDurationPerJobLimit", POLICY]),
        ("resources.cpus", ["QOSMaxCpuPerUserLimit", POLICY]),
        ("resources.memory", ["QOSMaxMemoryPerJob", POLICY]),
        ("resources.fgpu", ["QOSMaxGRESPerUser", POLICY]),
        ("account", ["AssocMaxNodePerJobLimit", POLICY]),
        ("qos", ["QOSMinBilling", POLICY]),
    ],
)
def test_the_field_is_named(field: str, lines: list[str]) -> None:
    (error,) = refused(*lines).errors
    assert error.field == field
    assert error.message.startswith("Slurm refused it: ")


def test_a_limit_is_explained_in_words() -> None:
    (error,) = refused("QOSMaxWallDurationPerJobLimit", POLICY).errors
    assert error.message == (
        "Slurm refused it: It asks for more run time than one session may have "
        "(QOSMaxWallDurationPerJobLimit)"
    )
    (error,) = refused("AssocMaxSubmitJobLimit", POLICY).errors
    assert error.message == (
        "Slurm refused it: You have reached your limit of running and waiting jobs at once "
        "(AssocMaxSubmitJobLimit)"
    )


def test_unknown_gpus_are_told_from_what_a_plug_in_refuses() -> None:
    gres = "Invalid generic resource (gres) specification"
    assert isinstance(refused(gres), GresUnknown)
    assert not isinstance(refused("One GPU has 4 shards.", gres), GresUnknown)
    assert not isinstance(refused("Invalid qos specification"), GresUnknown)


@pytest.mark.parametrize(
    "words",
    [
        "Unable to contact slurm controller (connect failure)",
        "Rate limit exceeded, please retry momentarily",
        "Slurm backup controller in standby mode",
    ],
)
def test_a_busy_slurm_is_no_refusal(words: str) -> None:
    assert isinstance(refusal(Completed(1, b"", f"{FAILED}{words}\n")), Unavailable)
