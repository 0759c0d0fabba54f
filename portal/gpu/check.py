"""`slipway-gpu check`: what is missing on this node, for administrators."""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from portal.core.cluster.fgpu import MIB
from portal.gpu import limits, settings
from portal.gpu.checks import Finding
from portal.gpu.checks.containers import CONFIGURATIONS, check_apptainer
from portal.gpu.checks.driver import PLACES, Places, check_gpu, check_node
from portal.gpu.checks.memory import check_memory
from portal.gpu.gres import find_kind
from portal.gpu.nvml import Device, Nvml, NvmlError
from portal.gpu.slices import JOBS
from portal.gpu.watchdog.lock import is_running

_CONFIG = re.compile(r"^(\w+)(?:\[0\])?\s*=\s*(.*?)\s*$", re.MULTILINE)


def check(
    jobs: Path = JOBS,
    file: Path = settings.FILE,
    connect: Callable[[], Nvml] = Nvml,
    scontrol: Callable[..., str] | None = None,
    places: Places = PLACES,
    apptainer: Sequence[Path] = CONFIGURATIONS,
) -> Iterator[Finding]:
    """Check everything that slices on this node depend on."""
    if os.geteuid() != 0:
        yield "wrong", "run this as root, like Slurm's Prolog and the watchdog"
    yield from _settings_and_gpus(file, connect, places)
    yield from check_apptainer(apptainer)
    scontrol = scontrol or _scontrol
    yield from check_config(scontrol("show", "config"))
    yield _check_json(scontrol("show", "partition", "--json"))
    yield _check_watch(jobs)


def _check_watch(jobs: Path) -> Finding:
    try:
        running = is_running(jobs)
    except OSError as error:
        return "wrong", f"cannot determine whether the watchdog runs: {error}"
    if running:
        return "ok", "the watchdog runs"
    return "wrong", "the watchdog does not run (slipway-gpu watch)"


def _settings_and_gpus(
    file: Path, connect: Callable[[], Nvml], places: Places
) -> Iterator[Finding]:
    try:
        found = settings.load(file)
    except settings.SettingsError as error:
        yield "wrong", f"{error}; create it with: slipway render gpu"
        return
    yield "ok", f"{file}: {len(found.kinds)} kinds of GPUs"
    if found.margin < found.context:
        yield (
            "wrong",
            f"gpu.margin_mb ({found.margin // MIB}) is less than gpu.context_mb "
            f"({found.context // MIB}), so the watchdog would end programs for their contexts: "
            "raise it",
        )
    try:
        nvml = connect()
        try:
            devices = nvml.devices()
            driver = nvml.driver()
            limited = bool(devices) and limits.supported(driver, devices[0].uuid)
            states = list(_check_states(nvml, devices, found))
        finally:
            nvml.close()
    except NvmlError as error:
        yield "wrong", f"the driver does not answer: {error}"
        return
    yield from check_devices(devices, found)
    yield from states
    yield from check_node(devices, places)
    version = ".".join(map(str, driver))
    if limited:
        yield "ok", f"driver {version} limits the memory of cgroups (tier A)"
    else:
        yield "note", f"driver {version} does not limit cgroups: shim and watchdog do (tier B)"


def _check_states(
    nvml: Nvml, devices: Sequence[Device], found: settings.Settings
) -> Iterator[Finding]:
    for number, device in enumerate(devices):
        kind = find_kind(device, found.kinds, found.context)
        yield from check_gpu(nvml, f"GPU {number}", device, kind)


def check_devices(devices: Sequence[Device], found: settings.Settings) -> Iterator[Finding]:
    """Compare the node's GPUs with the settings."""
    if not devices:
        yield "wrong", "the driver shows no GPU"
    for number, device in enumerate(devices):
        kind = find_kind(device, found.kinds, found.context)
        text = f"GPU {number}: {device.name}, {device.memory // MIB} MiB, {device.uuid}"
        if kind is None:
            yield "wrong", f"{text}: no kind of the settings has about this memory"
            continue
        yield "ok", f"{text}: {kind.name or 'the only kind'}, {kind.shards} shards"
        yield from check_memory(f"GPU {number}", device, kind, found.context)
    minors = [device.minor for device in devices if not device.mig]
    if minors != sorted(set(minors)):
        yield "wrong", "two GPUs share a device file number"


def check_config(text: str) -> Iterator[Finding]:
    """Check Slurm's configuration, as `scontrol show config` prints it."""
    config = dict(_CONFIG.findall(text))
    if not config:
        yield "wrong", "scontrol show config prints nothing: does slurmctld answer?"
        return
    for name, why in (
        ("Prolog", "no job gets a slice (slurm_plugins/prolog.sh)"),
        ("Epilog", "slices outlive their jobs (slurm_plugins/epilog.sh)"),
    ):
        if config.get(name, "(null)").startswith("(null)"):
            yield "wrong", f"{name} is not set: {why}"
        else:
            yield "ok", f"{name} is {config[name]}"
    for name, word, why in (
        ("GresTypes", "shard", "Slurm does not allocate shares of GPUs"),
        ("TaskPlugin", "cgroup", "devices are not constrained"),
        ("ConstrainDevices", "yes", "every job can open every GPU (cgroup.conf)"),
        ("AccountingStorageTRES", "gres/shard", "limits on shares cannot be set"),
        ("JobSubmitPlugins", "lua", "impossible requests are not rejected at submission"),
    ):
        has = word in config.get(name, "").lower()
        yield ("ok", f"{name} has {word}") if has else ("wrong", f"{name} lacks {word}: {why}")
    file = Path(config.get("SLURM_CONF", "/etc/slurm/slurm.conf")).with_name("plugstack.conf")
    if not config.get("PlugStackConfig", "(null)").startswith("(null)"):
        file = Path(config["PlugStackConfig"])
    if "spank_slipway" in _read_with_includes(file):
        yield "ok", f"{file} names spank_slipway"
    else:
        yield "wrong", f"{file} does not name spank_slipway.so: a task may start without its slice"


def _read_with_includes(file: Path) -> str:
    try:
        text = file.read_text()
    except OSError:
        return ""
    for pattern in re.findall(r"^include\s+(\S+)", text, re.MULTILINE):
        for name in glob.glob(str(file.parent / pattern)):
            text += Path(name).read_text()
    return text


def _check_json(text: str) -> Finding:
    try:
        json.loads(text)
    except ValueError:
        return "wrong", "scontrol prints no JSON, which Prolog reads (Slurm built without it?)"
    return "ok", "scontrol prints JSON"


def _scontrol(*words: str) -> str:
    try:
        done = subprocess.run(
            ["scontrol", *words], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
