"""Findings from the output of a probe's job about its node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from portal.cli.findings import Finding, warn
from portal.core.session.end_reasons import start_failure, tail
from portal.errors import visible

MARK = "slipway-check "
MEMORY_LEEWAY = 1.2
"""AllowedRAMSpace of cgroup.conf may permit slightly more than was requested."""
ANSWERS = frozenset({"401", "404", "410"})
"""HTTP statuses of a portal for an unknown session."""

_FOR_USERS = re.compile(r"^The session did not start: | (Tell the|Launch it again).*$")

PREAMBLE = r"""
# What the node has, for `slipway check --session`; the session's own script follows.
(
    say() { printf 'slipway-check %s %s\n' "$1" "$2"; }
    export PATH=/usr/local/bin:/usr/bin:/bin
    say node "$SLURMD_NODENAME"
    say cpus "${SLURM_CPUS_ON_NODE:-unknown}"
    hash apptainer 2>/dev/null || . /etc/profile
    if hash apptainer 2>/dev/null; then say apptainer "$(apptainer --version 2>&1 | head -n 1)"
    else say apptainer missing; fi
    if [[ ! -e /dev/fuse ]]; then say fuse missing
    elif [[ -r /dev/fuse && -w /dev/fuse ]]; then say fuse yes
    else say fuse forbidden; fi
    if ! hash unshare 2>/dev/null; then say namespaces unknown
    elif unshare --user true 2>/dev/null; then say namespaces yes
    else say namespaces no; fi
)
"""
"""Bash code before the session's script, which reports facts about the node."""


@dataclass(frozen=True)
class Expected:
    """The probe's requested resources, and the expected connections."""

    memory_mb: int
    callback: str
    called: bool
    """Whether the portal reached the job's port."""
    call_problem: str
    """Why it did not, if the portal knows."""
    ports: tuple[int, int]


def read_facts(log: bytes) -> dict[str, str]:
    """Parse the facts in a log; other lines are ignored."""
    facts: dict[str, str] = {}
    for line in tail(log).split("\n"):
        if match := re.fullmatch(r"slipway-check ([a-z-]+) (.+)", line.strip()):
            facts[match[1]] = visible(match[2])
    return facts


def judge(
    facts: Mapping[str, str], log: bytes, exit_code: int | None, expected: Expected
) -> Iterator[Finding]:
    """One finding for each step of a session's start."""
    started = "container" in facts
    yield from _node(facts, started)
    if not started:
        yield Finding(False, _not_started(log, exit_code))
        return
    yield Finding(True, "the container starts, with image and toolkit mounted")
    if problem := facts.get("problem"):
        yield Finding(False, f"the toolkit's runner refuses its instructions: {problem}")
        return
    yield from _way_to_portal(facts, expected)
    yield from _fences(facts, expected)
    yield from _gateway(facts, expected)


def _node(facts: Mapping[str, str], started: bool) -> Iterator[Finding]:
    version = facts.get("apptainer", "")
    if version == "missing":
        text = "Apptainer was not found: install it, or let /etc/profile put its module in PATH"
        yield Finding(False, text)
    elif version:
        yield Finding(True, version)
    fuse = facts.get("fuse", "")
    if fuse in ("missing", "forbidden"):
        problem = (
            "is missing (modprobe fuse)" if fuse == "missing" else "cannot be opened (chmod 666)"
        )
        text = f"/dev/fuse {problem}: images are mounted by it, unless Apptainer is set-uid"
        yield warn(text) if started else Finding(False, text)
    elif fuse:
        yield Finding(True, "/dev/fuse can be used")
    namespaces = facts.get("namespaces", "")
    if namespaces == "no":
        text = (
            "no user namespaces: set sysctl user.max_user_namespaces (and on Debian and Ubuntu "
            "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns); "
            "own images need them, and others unless Apptainer is set-uid"
        )
        yield warn(text) if started else Finding(False, text)
    elif namespaces == "yes":
        yield Finding(True, "user namespaces can be created")


def _not_started(log: bytes, exit_code: int | None) -> str:
    text = tail(log)
    if "The runner cannot start: apps" in text or "unknown option" in text:
        return (
            "the toolkit is of an older release, whose runner knows no check: make it again with "
            "images/toolkit/build.sh"
        )
    lines = [line for line in text.split("\n") if not line.startswith(MARK)]
    message = visible(start_failure(exit_code, "\n".join(lines)))
    # The message is written for users; remove the advice to contact administrators.
    return f"no session starts: {_FOR_USERS.sub('', message).rstrip()}"


def _way_to_portal(facts: Mapping[str, str], expected: Expected) -> Iterator[Finding]:
    for key, text in (
        ("name", "the portal's name resolves: {}"),
        ("tcp", "TCP reaches the portal ({})"),
        ("tls", "TLS: the portal's certificate is trusted ({})"),
    ):
        if key in facts:
            yield Finding(True, text.format(facts[key]))
    if problem := facts.get("reach-problem"):
        yield Finding(False, f"the portal ({expected.callback}) is not reached: {problem}")
        return
    answer = facts.get("answer", "none")
    if answer in ANSWERS:
        yield Finding(True, "the portal answers calls of sessions")
    elif answer != "429":
        yield Finding(
            False,
            f"what listens at {expected.callback} answers {answer}: is it this portal, and does "
            "slipway-web run?",
        )


def _fences(facts: Mapping[str, str], expected: Expected) -> Iterator[Finding]:
    requested, limit = expected.memory_mb << 20, facts.get("memory-limit", "none")
    if not limit.isdecimal():
        yield Finding(
            False,
            "no cgroup limits the job's memory: ConstrainRAMSpace=yes (cgroup.conf), "
            "TaskPlugin=task/cgroup (slurm.conf)",
        )
    elif int(limit) > requested * MEMORY_LEEWAY:
        text = f"the job may use {int(limit) >> 20} MiB, and asked for {expected.memory_mb}"
        yield warn(f"{text} (AllowedRAMSpace, or the partition's own least memory)")
    else:
        yield Finding(True, f"memory is limited to {int(limit) >> 20} MiB")
    inside, granted = facts.get("cpus-inside", ""), facts.get("cpus", "")
    if not (inside.isdecimal() and granted.isdecimal()):
        return
    if int(inside) > int(granted):
        yield Finding(
            False,
            f"the job can use {inside} processors, and Slurm gave it {granted}: "
            "ConstrainCores=yes (cgroup.conf), TaskPlugin=task/cgroup,task/affinity (slurm.conf)",
        )
    else:
        yield Finding(True, f"processors are limited to {granted}")


def _gateway(facts: Mapping[str, str], expected: Expected) -> Iterator[Finding]:
    low, high = expected.ports
    ports = f"ports {low} to {high}" if low else "all ports, as sessions.gateway_ports is not set"
    if problem := facts.get("port-problem"):
        yield Finding(False, f"no port for the gateway: {problem} (sessions.gateway_ports)")
    elif expected.called:
        yield Finding(True, f"the portal reaches the gateway's port ({facts.get('port')})")
    elif "port" in facts:
        why = expected.call_problem or "no connection in time"
        yield Finding(
            False,
            f"the portal does not reach port {facts['port']} of the node ({why}): let the portal's "
            f"host through to the nodes' {ports}",
        )
