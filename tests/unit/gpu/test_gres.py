"""Slurm's configuration for a node's GPUs, and what `check` finds missing."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from portal.core.cluster.fgpu import MIB, GpuKind
from portal.gpu import check, gres, settings
from portal.gpu.nvml import Device, mig_files
from portal.gpu.watchdog.lock import lock
from tests.unit.gpu.node import A100, DEMO, MIG, FakeNvml, gpu, settings_file

CLUSTER = Path(__file__).parents[3] / "cluster" / "etc"

GOOD = """\
AccountingStorageTRES   = cpu,mem,energy,node,billing,gres/gpu,gres/shard
ConstrainDevices        = yes
Epilog[0]               = /etc/slurm/epilog.sh
GresTypes               = gpu,shard
JobSubmitPlugins        = lua
PlugStackConfig         = {plugstack}
Prolog[0]               = /etc/slurm/prolog.sh
TaskPlugin              = task/cgroup,task/affinity
"""


def test_lines_of_a_mixed_node() -> None:
    devices = [
        gpu(0, 81559, "NVIDIA A100-SXM4-80GB"),
        gpu(1, 81559, "NVIDIA A100-SXM4-80GB"),
        Device(
            "MIG-7",
            "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
            9728 * MIB,
            2,
            ("/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap66", "/dev/nvidia-caps/nvidia-cap67"),
            mig=True,
        ),
        gpu(3, 16384, "Tesla P100"),
    ]
    lines = list(gres.gres_conf("n7", devices, (A100, MIG)))
    assert [line for line in lines if not line.startswith("#")] == [
        "NodeName=n7 Name=gpu Type=a100 File=/dev/nvidia0",
        "NodeName=n7 Name=gpu Type=a100 File=/dev/nvidia1",
        "NodeName=n7 Name=gpu Type=1g.10gb MultipleFiles=/dev/nvidia2,"
        "/dev/nvidia-caps/nvidia-cap66,/dev/nvidia-caps/nvidia-cap67",
        "NodeName=n7 Name=gpu File=/dev/nvidia3",
        "NodeName=n7 Name=shard Count=8 File=/dev/nvidia0",
        "NodeName=n7 Name=shard Count=8 File=/dev/nvidia1",
    ]
    assert lines[-1].endswith("Gres=gpu:a100:2,shard:16,gpu:1g.10gb:1,gpu:1")
    assert "# Tesla P100, 16384 MiB: no kind in the settings; whole only" in lines


def test_kinds_of_one_size_are_distinguished_by_name() -> None:
    h100 = GpuKind("h100", "H100", 81920, Fraction(1, 4), Fraction(1, 2))
    assert gres.find_kind(gpu(0, 81559, "NVIDIA H100 PCIe"), (A100, h100)) == h100
    assert gres.find_kind(gpu(0, 81559, "NVIDIA A800"), (A100, h100)) is None


def test_files_of_a_mig_device() -> None:
    minors = "config 1\nmonitor 2\ngpu2/gi7/access 66\ngpu2/gi7/ci0/access 67\n"
    assert mig_files(minors, 2, 7, 0) == (
        "/dev/nvidia-caps/nvidia-cap66",
        "/dev/nvidia-caps/nvidia-cap67",
    )


def test_the_clusters_table_is_the_generated_one() -> None:
    kinds = settings.load(CLUSTER / "gpu.json").kinds
    assert (CLUSTER / "slurm" / "slipway_gpu.lua").read_text() == gres.lua_table(kinds)


def _findings(tmp_path: Path, nvml: FakeNvml, config: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"ok": [], "note": [], "wrong": []}
    file = settings_file(tmp_path, DEMO)

    def scontrol(*words: str) -> str:
        return config if words == ("show", "config") else "{}" if config else "not JSON"

    for mark, text in check.check(tmp_path / "jobs", file, nvml.connect, scontrol):
        found[mark].append(text)
    return found


def test_check_passes_on_a_complete_node(tmp_path: Path) -> None:
    plugstack = tmp_path / "plugstack.conf"
    plugstack.write_text("include plugstack.conf.d/*.conf\n")
    (tmp_path / "plugstack.conf.d").mkdir()
    (tmp_path / "plugstack.conf.d" / "x.conf").write_text("required spank_slipway.so\n")
    held = lock(tmp_path / "jobs")
    assert held is not None
    with held:
        found = _findings(tmp_path, FakeNvml(gpu(0)), GOOD.format(plugstack=plugstack))
    assert [text for text in found["wrong"] if "as root" not in text] == []
    assert any("shim and watchdog do (tier B)" in text for text in found["note"])


def test_check_reports_everything_missing(tmp_path: Path) -> None:
    config = "Prolog = (null)\nGresTypes = gpu\nTaskPlugin = task/affinity\n"
    wrong = "\n".join(_findings(tmp_path, FakeNvml(gpu(0, 24576)), config)["wrong"])
    for word in (
        "no kind of the settings has about this memory",
        "Prolog is not set",
        "Epilog is not set",
        "GresTypes lacks shard",
        "TaskPlugin lacks cgroup",
        "ConstrainDevices lacks yes",
        "AccountingStorageTRES lacks gres/shard",
        "JobSubmitPlugins lacks lua",
        "does not name spank_slipway.so",
        "the watchdog does not run",
    ):
        assert word in wrong
    broken = FakeNvml()
    broken.broken = {"driver"}
    wrong = "\n".join(_findings(tmp_path, broken, "")["wrong"])
    assert "the driver does not answer: driver is lost" in wrong
    assert "does slurmctld answer?" in wrong
    assert "scontrol prints no JSON" in wrong
