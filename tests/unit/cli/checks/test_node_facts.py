"""What a probe's facts mean: each line with cause and remedy."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from portal.cli.checks.node_facts import PREAMBLE, Expected, judge, read_facts
from portal.cli.findings import Finding

GOOD = {
    "node": "n1", "cpus": "2", "apptainer": "apptainer version 1.4.5", "fuse": "yes",
    "namespaces": "yes", "container": "yes", "memory-limit": str(512 << 20), "cpus-inside": "2",
    "port": "40000", "name": "10.1.2.3", "tcp": "10.1.2.3", "tls": "TLSv1.3", "answer": "401",
    "called": "yes", "done": "yes",
}  # fmt: skip


def found(
    facts: dict[str, str], log: bytes = b"", called: bool = True, problem: str = ""
) -> list[Finding]:
    """The findings."""
    expected = Expected(512, "https://portal:8443", called, problem, (0, 0))
    return list(judge(facts, log, 0, expected))


def test_a_node_on_which_everything_works() -> None:
    findings = found(GOOD)
    assert [one for one in findings if not one.ok or one.warning] == []
    assert len(findings) == 11


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"apptainer": "missing", "container": None}, "Apptainer was not found: install it"),
        ({"fuse": "missing", "container": None}, "/dev/fuse is missing (modprobe fuse)"),
        ({"fuse": "forbidden", "container": None}, "/dev/fuse cannot be opened"),
        ({"namespaces": "no", "container": None}, "user.max_user_namespaces"),
        ({"reach-problem": "the node knows no address"}, "is not reached: the node knows no"),
        ({"answer": "503"}, "answers 503: is it this portal, and does slipway-web run?"),
        ({"memory-limit": "none"}, "ConstrainRAMSpace=yes"),
        ({"cpus-inside": "4"}, "can use 4 processors, and Slurm gave it 2: ConstrainCores=yes"),
        ({"port-problem": "no free port from 1 to 2"}, "no port for the gateway: no free port"),
        ({"problem": "callback: must be https"}, "refuses its instructions: callback"),
    ],
)
def test_what_is_wrong(changes: dict[str, str | None], words: str) -> None:
    facts = {key: value for key, value in (GOOD | changes).items() if value is not None}
    wrong = [one.text for one in found(facts) if not one.ok]
    assert any(words in text for text in wrong), wrong


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fuse": "missing"}, "/dev/fuse is missing"),
        ({"namespaces": "no"}, "no user namespaces"),
        ({"memory-limit": str(4096 << 20)}, "may use 4096 MiB, and asked for 512"),
    ],
)
def test_what_is_right_on_some_sites_only(changes: dict[str, str], words: str) -> None:
    (one,) = (one for one in found(GOOD | changes) if one.warning)
    assert one.ok and words in one.text


def test_a_gateway_that_the_portal_does_not_reach() -> None:
    facts = {key: value for key, value in GOOD.items() if key != "called"}
    (one,) = (one for one in found(facts, called=False, problem="timed out") if not one.ok)
    assert "does not reach port 40000 of the node (timed out): let the portal's host" in one.text


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (b"Slipway: its image cannot be read on n1 (/x). Tell the administrators.\n", "its image"),
        (b"FATAL:   container creation failed: mount error: no squashfuse\n", "no squashfuse"),
        (
            b"2026-11-24T04:00:00Z The runner cannot start: apps: must be a list\n",
            "the toolkit is of an older release",
        ),
        (b"\x1b[31mgarbage\xff\n", "ended before it was ready"),
    ],
)
def test_a_container_that_does_not_start(log: bytes, words: str) -> None:
    (one,) = (one for one in found({"node": "n1"}, log) if not one.ok)
    assert words in one.text


def test_facts_are_read_from_whatever_is_in_the_log() -> None:
    log = b"noise\nslipway-check node n1\nslipway-check \nslipway-check name a\xe2\x80\xaeb c\n\xff"
    assert read_facts(log) == {"node": "n1", "name": "ab c"}
    assert read_facts(b"") == {}


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_preamble_runs_and_says_what_the_node_has() -> None:
    script = f"SLURMD_NODENAME=n1 SLURM_CPUS_ON_NODE=2\n{PREAMBLE}\nexit 7"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert done.returncode == 7
    facts = read_facts(done.stdout)
    assert facts["node"] == "n1" and facts["cpus"] == "2"
    assert facts["fuse"] in ("yes", "missing", "forbidden")
    assert facts["namespaces"] in ("yes", "no", "unknown")
    assert "apptainer" in facts
