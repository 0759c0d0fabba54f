"""`slipway check gpu` and `slipway render gpu`: settings against Slurm, and for nodes."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from portal.adapters.slurm.client import Slurm
from portal.cli.check import compare_gpus
from portal.cli.findings import Finding
from portal.cli.main import main
from portal.core.cluster.gpu_offers import Gpus
from portal.node.common.fgpu import GpuKind
from tests.support.clock import FakeClock
from tests.support.paths import ROOT
from tests.support.slurm import FakeSlurm

DEMO = GpuKind("demo", "Demo", 8192, Fraction(1, 2), Fraction(1, 2))
GOOD = {"n1": "gpu:demo:1,shard:demo:4"}


def findings(gres: dict[str, str], *kinds: GpuKind, tracked: str | None = None) -> list[Finding]:
    """The findings if Slurm has these GPUs."""
    slurm = FakeSlurm(FakeClock(), gres=gres)
    slurm.tracked = slurm.tracked if tracked is None else tracked
    scheduler = Slurm(slurm, "slipway", ".slipway", 20, "")
    return list(compare_gpus(Gpus(kinds or (DEMO,)), scheduler))


def missing(gres: dict[str, str], *kinds: GpuKind, tracked: str | None = None) -> list[str]:
    """The failed findings."""
    return [f.text for f in findings(gres, *kinds, tracked=tracked) if not f.ok]


def test_matching_settings_pass() -> None:
    assert findings(GOOD) == [
        Finding(True, "Demo (demo) on n1"),
        Finding(True, "AccountingStorageTRES has gres/gpu (slurm.conf)"),
        Finding(True, "AccountingStorageTRES has gres/shard (slurm.conf)"),
        Finding(True, "main offers Demo (demo): 0.5, 1, 1.5, 2 fGPU"),
        Finding(True, "to be run as root on n1: slipway-gpu check"),
    ]


@pytest.mark.parametrize(
    ("gres", "word"),
    [
        ({}, "no node in Slurm has Demo (demo): gres.conf, Type=demo"),
        ({"n1": "gpu:1,shard:4"}, "GPUs without a Type: not in the settings"),
        ({"n1": "gpu:demo:1"}, "n1 has 0 shards of Demo (demo), the settings divide its 1 GPUs"),
        ({"n1": "gpu:demo:2,shard:demo:4"}, "n1 has 4 shards of Demo (demo)"),
        ({"n1": "gpu:demo:1,shard:demo:4,gpu:x:1"}, "GPUs x: not in the settings"),
    ],
)
def test_settings_and_slurm_must_agree(gres: dict[str, str], word: str) -> None:
    assert any(text.startswith(word) for text in missing(gres))


def test_untracked_gres_are_reported() -> None:
    assert missing(GOOD, tracked="cpu,mem,gres/gpu") == [
        "AccountingStorageTRES has gres/shard (slurm.conf)"
    ]


def test_a_kind_without_a_name_stands_for_all() -> None:
    assert missing(GOOD, replace(DEMO, name="")) == []


def test_whole_gpus_need_no_shards() -> None:
    assert missing({"n1": "gpu:demo:2"}, replace(DEMO, sharing="whole")) == []


def test_a_silent_slurm_is_reported() -> None:
    slurm = FakeSlurm(FakeClock(), down=True)
    (found,) = compare_gpus(Gpus((DEMO,)), Slurm(slurm, "slipway", ".slipway", 20, ""))
    assert not found.ok
    assert "does not answer" in found.text


def test_a_drained_node_with_gpus_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Slurm(FakeSlurm(FakeClock(), gres=GOOD), "slipway", ".slipway", 20, "")
    nodes = [replace(node, usable=False) for node in scheduler.nodes()]
    monkeypatch.setattr(scheduler, "nodes", lambda: nodes)
    wrong = [one.text for one in compare_gpus(Gpus((DEMO,)), scheduler) if not one.ok]
    assert len(wrong) == 1 and wrong[0].startswith("n1 takes no jobs: sinfo -R says why")


def test_missing_gpus_or_keys_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "slipway.toml"
    file.write_text(f"[state]\ndirectory = '{tmp_path}'\n")
    assert main(["--config", str(file), "check", "gpu"]) == 1
    assert "MISSING the settings name no GPUs" in capsys.readouterr().out
    file.write_text(file.read_text() + "[[gpu.kinds]]\nmemory = '8g'\n")
    assert main(["--config", str(file), "check", "gpu"]) == 1
    assert "run `slipway init`" in capsys.readouterr().out


def test_the_demos_nodes_have_what_its_portal_renders(capsys: pytest.CaptureFixture[str]) -> None:
    etc = ROOT / "cluster" / "etc"
    assert main(["--config", str(etc / "slipway.toml"), "render", "gpu"]) == 0
    rendered = capsys.readouterr().out
    assert json.loads(rendered) == json.loads((etc / "gpu.json").read_text())
    assert json.loads(rendered)["kinds"][0]["unit"] == "1/2"
