"""What `slipway-gpu check` finds missing on a node."""

from __future__ import annotations

from pathlib import Path

from portal.node.gpu import check
from portal.node.gpu.checks.driver import KernelPaths
from portal.node.gpu.watchdog.heartbeat import Heartbeat
from portal.node.gpu.watchdog.lock import lock
from tests.unit.node.gpu.node import DEMO, FakeNvml, Proc, gpu, settings_file

GOOD = """\
AccountingStorageTRES   = cpu,mem,energy,node,billing,gres/gpu,gres/shard
ConstrainDevices        = yes
Epilog[0]               = /etc/slurm/epilog.sh
HealthCheckInterval     = 20 sec
HealthCheckProgram      = /etc/slurm/health.sh
GresTypes               = gpu,shard
PlugStackConfig         = {plugstack}
Prolog[0]               = /etc/slurm/prolog.sh
TaskPlugin              = task/cgroup,task/affinity
UnkillableStepProgram   = /etc/slurm/unkillable.sh
UnkillableStepTimeout   = 60 sec
"""


def _findings(tmp_path: Path, nvml: FakeNvml, config: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"ok": [], "note": [], "wrong": []}
    file = settings_file(tmp_path, DEMO)

    def scontrol(*words: str) -> str:
        return config if words == ("show", "config") else "{}" if config else "not JSON"

    (tmp_path / "proc").mkdir(exist_ok=True)
    places = KernelPaths(tmp_path / "dev", tmp_path / "proc", tmp_path / "module")
    for mark, text in check.check(
        tmp_path / "jobs", file, nvml.connect, scontrol, places, [tmp_path / "apptainer"]
    ):
        found[mark].append(text)
    return found


def test_check_passes_on_a_complete_node(tmp_path: Path) -> None:
    plugstack = tmp_path / "plugstack.conf"
    plugstack.write_text("include plugstack.conf.d/*.conf\n")
    (tmp_path / "plugstack.conf.d").mkdir()
    (tmp_path / "plugstack.conf.d" / "x.conf").write_text("required spank_slipway.so\n")
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia-uvm", "nvidia-uvm-tools"):
        (tmp_path / "dev" / name).touch()
    held = lock(tmp_path / "jobs")
    assert held is not None
    Heartbeat(tmp_path / "jobs").start()
    with held:
        found = _findings(tmp_path, FakeNvml(gpu(0)), GOOD.format(plugstack=plugstack))
    assert [text for text in found["wrong"] if "as root" not in text] == []
    notes = ["driver 580.65 does not limit cgroups: shim and watchdog do (tier B)"]
    assert [text for text in found["note"] if "Apptainer" not in text] == notes
    assert any("8192 MiB can be divided" in text for text in found["ok"])


def test_a_margin_without_room_for_a_context(tmp_path: Path) -> None:
    file = settings_file(tmp_path, DEMO, margin_mb=256, context_mb=512)
    found = list(check.check(tmp_path / "jobs", file, FakeNvml(gpu(0)).connect, lambda *_: ""))
    assert any("gpu.margin_mb (256) is less than gpu.context_mb (512)" in text for _, text in found)


def test_check_reports_everything_missing(tmp_path: Path) -> None:
    config = "Prolog = (null)\nGresTypes = gpu\nTaskPlugin = task/affinity\n"
    wrong = "\n".join(_findings(tmp_path, FakeNvml(gpu(0, 24576)), config)["wrong"])
    for word in (
        "/dev/nvidia-uvm is missing",
        "/dev/nvidia0 is missing",
        "no kind of the settings has about this memory",
        "Prolog is not set",
        "Epilog is not set",
        "GresTypes lacks shard",
        "TaskPlugin lacks cgroup",
        "ConstrainDevices lacks yes",
        "AccountingStorageTRES lacks gres/shard",
        "does not name spank_slipway.so",
        "the GPU watchdog does not run",
        "HealthCheckProgram is not set",
        "UnkillableStepProgram is not set",
        "HealthCheckInterval is 0 s",
    ):
        assert word in wrong
    broken = FakeNvml()
    broken.broken = {"driver"}
    wrong = "\n".join(_findings(tmp_path, broken, "")["wrong"])
    assert "the driver does not answer: driver is lost" in wrong
    assert "does slurmctld answer?" in wrong
    assert "scontrol prints no JSON" in wrong


def test_lua_at_each_submission_is_noted() -> None:
    config = GOOD + "JobSubmitPlugins        = throttle,lua\n"
    assert any("JobSubmitPlugins has lua" in text for _, text in check.check_config(config))
    assert not any("JobSubmitPlugins" in text for _, text in check.check_config(GOOD))


def test_a_watchdog_that_does_not_measure_is_missing(tmp_path: Path) -> None:
    held = lock(tmp_path / "jobs")
    assert held is not None
    with held:
        wrong = _findings(tmp_path, FakeNvml(gpu(0)), GOOD)["wrong"]
    assert any("the GPU watchdog has made no complete measurement" in text for text in wrong)


def test_processes_without_a_slurmstepd_are_shown(tmp_path: Path) -> None:
    proc = Proc(tmp_path / "proc")
    proc.add(70, "job_12/step_0/user/task_0", uid=1001)
    proc.add(71, "job_13/step_0/user/task_0", uid=1001)
    proc.add(72, "job_13/step_0/slurm", uid=0)
    (note,) = check.check_lost(tmp_path / "proc")
    assert note[0] == "note"
    assert note[1].startswith("job 12 has 1 processes and no slurmstepd (the first is PID 70)")
