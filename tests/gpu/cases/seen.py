"""What a session sees of the GPU's processes: its own, and nobody else's."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import nullcontext
from typing import Any

from tests.gpu.case import NotRun, Trial, case
from tests.gpu.machine import MIB
from tests.gpu.session import start_bare
from tests.gpu.watchdog import watching

NEIGHBOUR = 512 * MIB


def unshare(*kinds: str) -> list[str]:
    """The command that starts another one in namespaces of its own. Raises NotRun."""
    command = ["unshare", *(["-r"] if os.geteuid() else []), *kinds]
    done = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotRun(f"{' '.join(command)}: {done.stderr.strip()}")
    return command


@case(
    "2a",
    50,
    "in a PID namespace: own PID, memory and utilisation > 0, nobody else's; every way",
    programs=("unshare",),
)
def visible(trial: Trial) -> None:
    namespace = unshare("-pf", "--mount-proc")
    session = trial.session(percent=50)
    # On the stand-in driver root does not know the PIDs of processes in a namespace.
    root = watching("visible") if trial.gpu.real else nullcontext()
    with root, start_bare(trial.gpu, "memory", "keep", NEIGHBOUR) as neighbour:
        neighbour.next_message()
        smi = trial.gpu.driver.smi
        with session.start("visible", smi, before=namespace) as program:
            seen = program.end()
    own = str(seen["pid"])
    _check_processes(trial, "NVML's processes", own, seen["processes"])
    if seen["python"] is not None:
        _check_processes(trial, "nvidia-ml-py's processes", own, seen["python"])
    trial.check(
        "NVML's samples",
        seen["samples"],
        must=f"of PID {own} alone, > 0",
        good=list(seen["samples"]) == [own] and seen["samples"][own] > 0,
    )
    most = max(seen["utilisation"])
    trial.check("utilisation", seen["utilisation"], good=most > 0, must="> 0")
    trial.note("Utilisation in a session that fills its 50 %", f"{most} % at most")
    _check_smi(trial, own, seen["smi"])


def _check_processes(trial: Trial, what: str, own: str, found: dict[str, int]) -> None:
    trial.check(
        what,
        found,
        good=list(found) == [own] and found[own] > 0,
        must=f"PID {own} alone, with memory",
    )


def _check_smi(trial: Trial, own: str, answers: dict[str, dict[str, Any]]) -> None:
    for name, answer in answers.items():
        print(f"--- nvidia-smi, {name}: {answer['status']}\n{answer['text'].rstrip()}\n---")
    apps = [line.split(", ") for line in answers["apps"]["text"].strip().splitlines()]
    trial.check(
        "--query-compute-apps",
        apps,
        must=f"PID {own} alone, with memory",
        good=[line[0] for line in apps] == [own] and apps[0][1].strip() not in {"0", "[N/A]"},
    )
    lines = [line.split() for line in answers["pmon"]["text"].splitlines() if line[:1] != "#"]
    pids = [line[1] for line in lines if len(line) > 2]
    trial.check("pmon", pids, good=pids == [own], must=f"PID {own} alone")
    pids = re.findall(r"Process ID\s*:\s*(\d+)", answers["-q"]["text"])
    trial.check("-q", pids, good=pids == [own], must=f"PID {own} alone")
    used = answers["utilisation"]["text"].strip()
    trial.check("utilization.gpu", used, good=used.isdigit() and int(used) > 0, must="> 0")
