"""Memory that two processes of a session share (CUDA IPC): it is there once."""

from __future__ import annotations

import json
import time

from tests.gpu.case import Trial, case
from tests.gpu.machine import MIB
from tests.gpu.watchdog import watching


@case("2a", 35, "exported memory is charged once, and the watchdog counts it once and ends nobody")
def ipc(trial: Trial) -> None:
    session, size = trial.session(), trial.cap * 3 // 4
    with (
        watching("ipc") as dog,
        session.start("memory", "context") as idle,
        session.start("sharing", "export", size) as exporter,
    ):
        alone = trial.held(idle.next_message()["pid"]) or 0
        first = exporter.next_message()
        with session.start("sharing", "open", first["handle"]) as importer:
            second = importer.next_message()
            charged = session.memory - second["free"]
            trial.check("charged", charged, good=size <= charged < 1.1 * size, must=f"once: {size}")
            sizes = trial.gpu.processes()
            time.sleep(4)
            usage = json.loads((session.directory / "usage.json").read_text())["memory"]
            both = exporter.running and importer.running
            trial.check("both live", both, good=both, must="True")
            trial.check("log", dog.about(1), good=not dog.about(1), must="nothing about it")
            importer.end()
        exporter.end()
    own = {
        name: sizes.get(pid, 0) / MIB
        for name, pid in (("exporter", first["pid"]), ("importer", second["pid"]))
    }
    shown = ", ".join(f"{name} {found:.0f} MiB" for name, found in own.items())
    trial.note(
        "CUDA IPC, by NVML", f"of {size / MIB:.0f} MiB: {shown}, context {alone / MIB:.0f} MiB"
    )
    most = 1.25 * size + 3 * max(alone, 64 * MIB)
    trial.check("the watchdog's sum", usage, good=size <= usage <= most, must=f"once: ≤ {most:.0f}")
