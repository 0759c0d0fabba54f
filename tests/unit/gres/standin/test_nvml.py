"""The stand-in NVML: what the driver keeps, samples in history, versions and modes."""

from __future__ import annotations

import subprocess

import pytest

from tests.unit.gres.conftest import MIB, Standin
from tests.unit.gres.nvml.sessions import ASK
from tests.unit.gres.programs import RESERVED, output


def asked(standin: Standin, text: str, **environment: str) -> str:
    """The output of a program on the host."""
    return output(
        standin, ASK.replace("sys.argv[2]", repr(str(standin.nvml))) + text, **environment
    )


def smi(standin: Standin, *words: str, **environment: str) -> str:
    command = [str(standin.smi), *words]
    environment["LD_LIBRARY_PATH"] = str(standin.directory)
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    ).stdout


def test_what_the_driver_keeps_is_nobodys(standin: Standin) -> None:
    """It is in NVML's total, not in CUDA's; the older form of NVML calls it used."""
    text = """
start(); total = size(); ok(d.cuMemGetInfo_v2(c.byref(size()), c.byref(total)))
g = handle(); second = Memory2(version(Memory2, 2))
ok(n.nvmlDeviceGetMemoryInfo_v2(g, c.byref(second)))
print(total.value, [second.total, second.reserved, second.free, second.used], memory(g))"""
    first = (8192 + 128, 128 + 64, 8192 - 64)
    total = 8192 * MIB
    second = [total + RESERVED, RESERVED, total - 64 * MIB, 64 * MIB]
    assert asked(standin, text) == f"{total} {second} {first}"


def test_samples_of_the_last_seconds(standin: Standin) -> None:
    """One for each second in which a process computed; a later look gets the newer ones only."""
    text = """
import time
start()
def busy(): run(200000); ok(d.cuCtxSynchronize())
busy(); time.sleep(1.3); busy(); time.sleep(0.15)
g, many, room = handle(), c.c_uint(64), (Sample * 64)()
ok(n.nvmlDeviceGetProcessUtilization(g, room, c.byref(many), u64(0)))
found = sorted((one.time, one.sm, one.pid) for one in room[: many.value])
assert [pid for _, _, pid in found] == [os.getpid()] * 2, found
assert 900000 <= found[1][0] - found[0][0] <= 1100000, found
assert abs(found[1][0] / 1e6 - time.time()) < 1
print([sm for _, sm, _ in found], samples(g, found[0][0]) == [(os.getpid(), found[1][1])])
kind, values = c.c_int(), (Value * 8)()
many = c.c_uint(8); ok(n.nvmlDeviceGetSamples(g, 1, u64(0), c.byref(kind), c.byref(many), values))
print([values[i].number for i in range(many.value)])"""
    assert asked(standin, text).splitlines() == ["[20, 20] True", "[0, 0, 20, 20]"]


@pytest.mark.parametrize(
    ("driver", "version"),
    [("535", "535.104.12"), ("550", "550.144.03"), ("565", "565.57.01"), ("580", "580.00.00")],
)
def test_version(standin: Standin, driver: str, version: str) -> None:
    fields = ("--query-gpu=driver_version", "--format=csv,noheader")
    assert smi(standin, *fields, STANDIN_DRIVER=driver) == f"{version}\n"
    subprocess.run([standin.directory / "standin", "set", f"driver={driver}"], check=True)
    assert smi(standin, *fields) == f"{version}\n"


def test_persistence_mode(standin: Standin) -> None:
    fields = ("--query-gpu=persistence_mode", "--format=csv,noheader")
    assert smi(standin, *fields) == "Enabled\n"
    subprocess.run([standin.directory / "standin", "set", "persistence=off"], check=True)
    assert smi(standin, *fields) == "Disabled\n"
    assert (
        subprocess.run([standin.directory / "standin", "set", "a=b"], check=False).returncode == 2
    )
