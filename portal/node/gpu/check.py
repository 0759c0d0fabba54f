"""`slipway-gpu check`: report missing or wrong configuration on this node."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from portal.node.common.fgpu import MIB
from portal.node.gpu import limits, settings, untrusted
from portal.node.gpu.checks import Finding
from portal.node.gpu.checks.containers import CONFIGURATIONS, check_apptainer
from portal.node.gpu.checks.driver import KERNEL_PATHS, KernelPaths, check_gpu, check_node
from portal.node.gpu.checks.memory import check_memory
from portal.node.gpu.gres import find_kind
from portal.node.gpu.health.members import members, orphans
from portal.node.gpu.nvml import Device, Nvml, NvmlError
from portal.node.gpu.slices import JOBS
from portal.node.gpu.watchdog.heartbeat import problem
from portal.node.gpu.watchdog.processes import Processes

_CONFIG = re.compile(r"^(\w+)(?:\[0\])?\s*=\s*(.*?)\s*$", re.MULTILINE)


def check(
    jobs: Path = JOBS,
    file: Path = settings.FILE,
    connect: Callable[[], Nvml] = Nvml,
    scontrol: Callable[..., str] | None = None,
    paths: KernelPaths = KERNEL_PATHS,
    apptainer: Sequence[Path] = CONFIGURATIONS,
) -> Iterator[Finding]:
    """Check everything that slices on this node depend on."""
    if os.geteuid() != 0:
        yield "wrong", "run this as root, like Slurm's Prolog and the watchdog"
    yield from _settings_and_gpus(file, connect, paths)
    yield from check_apptainer(apptainer)
    scontrol = scontrol or _scontrol
    yield from check_config(scontrol("show", "config"))
    yield _check_json(scontrol("show", "partition", "--json"))
    yield _check_watch(jobs)
    yield from check_lost(paths.proc)


def _check_watch(jobs: Path) -> Finding:
    try:
        why = problem(jobs)
    except OSError as error:
        return "wrong", f"cannot determine whether the watchdog runs: {error}"
    return ("wrong", f"{why} (slipway-gpu watch)") if why else ("ok", "the watchdog runs")


def check_lost(proc: Path) -> Iterator[Finding]:
    """Report jobs whose processes live on without a slurmstepd."""
    orphaned = orphans(members(Processes(proc), proc))
    for job in sorted({member.step.job for member in orphaned}):
        pids = [member.pid for member in orphaned if member.step.job == job]
        yield (
            "note",
            f"job {job} has {len(pids)} processes and no slurmstepd (the first is PID {pids[0]}): "
            "the health check ends them once Slurm says that the job is over",
        )


def _settings_and_gpus(
    file: Path, connect: Callable[[], Nvml], paths: KernelPaths
) -> Iterator[Finding]:
    try:
        config = settings.load(file)
    except settings.SettingsError as error:
        yield "wrong", f"{error}; create it with: slipway render gpu"
        return
    yield "ok", f"{file}: {len(config.kinds)} kinds of GPUs"
    if config.margin < config.context:
        yield (
            "wrong",
            f"gpu.margin_mb ({config.margin // MIB}) is less than gpu.context_mb "
            f"({config.context // MIB}), so the watchdog would end programs for their contexts: "
            "raise it",
        )
    try:
        nvml = connect()
        try:
            devices = nvml.devices()
            driver = nvml.driver()
            limited = bool(devices) and limits.supported(driver, devices[0].uuid)
            states = list(_check_states(nvml, devices, config))
        finally:
            nvml.close()
    except NvmlError as error:
        yield "wrong", f"the driver does not answer: {error}"
        return
    yield from check_devices(devices, config)
    yield from states
    yield from check_node(devices, paths)
    version = ".".join(map(str, driver))
    if limited:
        yield "ok", f"driver {version} limits the memory of cgroups (tier A)"
    else:
        yield "note", f"driver {version} does not limit cgroups: shim and watchdog do (tier B)"


def _check_states(
    nvml: Nvml, devices: Sequence[Device], config: settings.Settings
) -> Iterator[Finding]:
    for number, device in enumerate(devices):
        kind = find_kind(device, config.kinds, config.context)
        yield from check_gpu(nvml, f"GPU {number}", device, kind)


def check_devices(devices: Sequence[Device], config: settings.Settings) -> Iterator[Finding]:
    """Compare the node's GPUs with the settings."""
    if not devices:
        yield "wrong", "the driver shows no GPU"
    for number, device in enumerate(devices):
        kind = find_kind(device, config.kinds, config.context)
        text = f"GPU {number}: {device.name}, {device.memory // MIB} MiB, {device.uuid}"
        if kind is None:
            yield "wrong", f"{text}: no kind of the settings has about this memory"
            continue
        yield "ok", f"{text}: {kind.name or 'the only kind'}, {kind.shards} shards"
        yield from check_memory(f"GPU {number}", device, kind, config.context)
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
    ):
        has = word in config.get(name, "").lower()
        yield ("ok", f"{name} has {word}") if has else ("wrong", f"{name} lacks {word}: {why}")
    if "lua" in config.get("JobSubmitPlugins", ""):
        yield "note", "JobSubmitPlugins has lua: a submission takes longer the more jobs are queued"
    yield from _check_health(config)
    file = Path(config.get("SLURM_CONF", "/etc/slurm/slurm.conf")).with_name("plugstack.conf")
    if not config.get("PlugStackConfig", "(null)").startswith("(null)"):
        file = Path(config["PlugStackConfig"])
    if "spank_slipway" in _read_with_includes(file):
        yield "ok", f"{file} names spank_slipway"
    else:
        yield "wrong", f"{file} does not name spank_slipway.so: a task may start without its slice"


def _check_health(config: dict[str, str]) -> Iterator[Finding]:
    """Check the programs that drain unwatched nodes and free unkillable steps, and their times."""
    for name, why in (
        ("HealthCheckProgram", "nobody drains a node whose GPUs are not watched (health.sh)"),
        ("UnkillableStepProgram", "a step that cannot be killed drains its node (unkillable.sh)"),
    ):
        if config.get(name, "(null)").startswith("(null)"):
            yield "wrong", f"{name} is not set: {why}"
        else:
            yield "ok", f"{name} is {config[name]}"
    seconds = [
        int(config.get(name, "0").split()[0] or 0)
        for name in ("HealthCheckInterval", "UnkillableStepTimeout")
    ]
    if not 0 < seconds[0] <= seconds[1] // 2:
        yield (
            "wrong",
            f"HealthCheckInterval is {seconds[0]} s: at most half of UnkillableStepTimeout "
            f"({seconds[1]} s), or steps that cannot be killed drain the node before it looks",
        )


def _read_with_includes(file: Path) -> str:
    try:
        text = untrusted.read(file)
    except OSError:
        return ""
    for pattern in re.findall(r"^include\s+(\S+)", text, re.MULTILINE):
        for name in glob.glob(str(file.parent / pattern)):
            text += untrusted.read(Path(name))
    return text


def _check_json(text: str) -> Finding:
    try:
        json.loads(text)
    except ValueError:
        return "wrong", "scontrol prints no JSON, which Prolog reads (Slurm built without it?)"
    return "ok", "scontrol prints JSON"


def _scontrol(*words: str) -> str:
    try:
        return untrusted.run(["scontrol", *words], 20).stdout
    except untrusted.CommandError:
        return ""
