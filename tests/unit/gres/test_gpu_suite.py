"""The suite for a real GPU works before it meets one: its cases run on the stand-in driver.

What needs a framework is not run there, except one case with a made-up PyTorch, which shows that a
failure says whose it is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from bench.gpu import costs, shares
from bench.gpu.table import NO_TIME
from tests.gpu import machine, prepare, runner
from tests.gpu.case import Case, all_cases
from tests.gpu.machine import ROOT
from tests.gpu.program import Program
from tests.gpu.steps import MOST, STEPS, cases_of
from tests.unit.gres.conftest import UUID, Shim, Standin

PLAIN = [one for one in all_cases() if not one.frameworks]
NOT_HERE = {
    "watchdog-managed": "the stand-in driver maps no managed memory",
    "mps": "missing: the program nvidia-cuda-mps-control",
    "cuda-gdb": "missing: the program cuda-gdb",
    "sanitizer": "missing: the program compute-sanitizer",
}
"""What the stand-in driver and most machines lack."""
TORCH = """
import ctypes, os
from types import SimpleNamespace

{before}

_driver, _gpu, _context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()

def _call(name, *words):
    if code := getattr(_driver, name)(*words):
        raise (OutOfMemoryError if code == 2 else RuntimeError)(f"{{name}} answered {{code}}")

class OutOfMemoryError(RuntimeError):
    pass

class empty:
    def __init__(self, size, dtype, device):
        self._at = ctypes.c_uint64()
        _call("cuMemAlloc_v2", ctypes.byref(self._at), ctypes.c_size_t(size))

    def __del__(self):
        if self._at:
            _call("cuMemFree_v2", self._at)

def _memory():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value

def _properties(number):
    size = ctypes.c_size_t()
    _call("cuDeviceTotalMem_v2", ctypes.byref(size), _gpu)
    return SimpleNamespace(total_memory=size.value, name="made up", multi_processor_count=1)

_call("cuInit", 0)
_call("cuDeviceGet", ctypes.byref(_gpu), 0)
_call("cuDevicePrimaryCtxRetain", ctypes.byref(_context), _gpu)
_call("cuCtxSetCurrent", _context)
uint8 = None
cuda = SimpleNamespace(
    OutOfMemoryError=OutOfMemoryError,
    device_count=lambda: 1,
    empty_cache=lambda: None,
    get_device_properties=_properties,
    mem_get_info=_memory,
)
"""
"""As much of PyTorch as programs/torch_memory.py needs, by the driver."""
MADE_UP = ("torch-fill", "torch-two-processes", "torch-cycles", "torch-told")


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the suite builds: once for all of its cases."""
    return tmp_path_factory.mktemp("suite")


@pytest.fixture
def settings(standin: Standin, work: Path, tmp_path: Path) -> dict[str, str]:
    """The environment in which the suite runs on the stand-in driver."""
    return {
        **os.environ,
        "SLIPWAY_GPU_DRIVER": str(standin.directory),
        "SLIPWAY_GPU_WORK": str(work),
        "OUT": str(tmp_path),
        "PYTHON": sys.executable,
    }


def run(settings: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """The suite as run.sh starts it."""
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )


def result(settings: dict[str, str], name: str) -> dict[str, Any]:
    """What became of a case."""
    done = run(settings, "tests.gpu", name)
    file = Path(settings["OUT"]) / "step-some.json"
    assert file.exists(), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(file.read_text())["cases"][0]
    assert done.returncode == int(found["status"] != "passed"), done.stdout
    return found


@pytest.mark.parametrize("one", PLAIN, ids=lambda one: one.name)
def test_a_case_on_the_stand_in_driver(settings: dict[str, str], one: Case) -> None:
    found = result(settings, one.name)
    if found["status"] == "not run" and one.name in NOT_HERE:
        assert found["why"].startswith(NOT_HERE[one.name])
        return
    assert found["status"] == "passed", found["why"] + found["output"]
    assert found["output"].count("  ok ") or one.name == "heap"


def test_a_framework_that_is_not_installed_is_named(settings: dict[str, str]) -> None:
    found = result(settings, "torch-told")
    assert (found["status"], found["why"]) == ("not run", "missing: the Python module torch")


@pytest.fixture
def torch(settings: dict[str, str], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Runs a case with a made-up PyTorch that executes something first."""

    def attempt(before: str, name: str = "torch-told") -> dict[str, Any]:
        (tmp_path / "modules").mkdir()
        (tmp_path / "modules" / "torch.py").write_text(TORCH.format(before=before))
        settings["PYTHONPATH"] = f"{tmp_path}/modules"
        return result(settings, name)

    return attempt


@pytest.mark.parametrize("name", MADE_UP)
def test_a_framework_in_a_session(torch: Callable[..., dict[str, Any]], name: str) -> None:
    found = torch("", name)
    assert found["status"] == "passed", found["why"]
    assert "(session 1)" in found["output"]
    assert "(without the shim)" in found["output"] or name == "torch-two-processes"


def test_what_fails_bare_says_so(torch: Callable[..., dict[str, Any]]) -> None:
    found = torch("raise SystemExit('broken here')")
    assert found["status"] == "fails bare too"
    assert "broken here" in found["why"]


def test_what_fails_in_the_session_only_says_so(torch: Callable[..., dict[str, Any]]) -> None:
    found = torch("if os.environ.get('SLIPWAY_GPU_JOB'): raise SystemExit('not with a shim')")
    assert found["status"] == "failed"
    assert found["why"].startswith("in the session: ")
    assert "not with a shim" in found["why"]


@pytest.mark.parametrize("name", ["torch-fill", "torch-told"])
def test_a_shim_that_does_nothing_fails(
    torch: Callable[..., dict[str, Any]], settings: dict[str, str], name: str
) -> None:
    """A program that loads the driver itself holds and sees more than its slice."""
    driver = f"{settings['SLIPWAY_GPU_DRIVER']}/libcuda.so.1"
    before = f"_load = ctypes.CDLL\nctypes.CDLL = lambda name: _load({driver!r})"
    found = torch(before, name)
    assert found["status"] == "failed"
    assert "must be: " in found["why"]


def test_a_case_that_hangs_is_killed_with_its_programs_and_fails_alone(
    settings: dict[str, str], standin: Standin, monkeypatch: pytest.MonkeyPatch, work: Path
) -> None:
    assert run(settings, "tests.gpu", "told").returncode == 0  # builds
    for name in ("LOGS", "WORK"):
        monkeypatch.setattr(runner, name, work)
    found = runner.run_limited("watchdog-spares", 3, settings)
    assert found.status == "failed"
    assert found.why.startswith("killed after 3 s; last seen: ")
    until = time.monotonic() + 5
    while standin.used() and time.monotonic() < until:  # what the dead held is free after a moment
        time.sleep(0.1)
    assert standin.used() == 0
    assert not marked("watchdog-spares")


def marked(name: str) -> list[str]:
    """Processes that a case has left."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{runner.MARK}={name}".encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("step", STEPS)
def test_a_step_ends_within_ten_minutes(step: str) -> None:
    limits = [one.limit for one in cases_of(step)]
    assert limits
    assert prepare.LIMIT + sum(limits) + runner.RESERVE <= MOST


def test_each_case_has_a_name_of_its_own_and_says_what_must_be_seen() -> None:
    names = Counter(one.name for one in all_cases())
    assert set(names.values()) == {1}
    assert all(one.must and one.step in STEPS for one in all_cases())


def test_without_a_driver_it_says_what_is_missing(settings: dict[str, str], tmp_path: Path) -> None:
    settings["SLIPWAY_GPU_DRIVER"] = str(tmp_path)
    done = run(settings, "tests.gpu", "1")
    assert done.returncode == 1
    assert "needs an NVIDIA GPU" in done.stderr


def test_an_unknown_case_is_named(settings: dict[str, str]) -> None:
    done = run(settings, "tests.gpu", "nonsense")
    assert done.returncode == 2
    assert "'nonsense'" in done.stderr


@pytest.mark.parametrize(("part", "lines"), [("launches", 20), ("kernels of 1 ms", 2)], ids=str)
def test_the_bench_on_the_stand_in_driver(settings: dict[str, str], part: str, lines: int) -> None:
    """Its figures mean nothing here; that each is measured does."""
    done = run(settings, "bench.gpu", "--budget", "60", "--sessions", "2", "--only", part)
    seen = json.loads((Path(settings["OUT"]) / "step-3.json").read_text())
    assert len(seen["lines"]) == lines, done.stdout + done.stderr
    assert all(line["bare"] and line["inside"] for line in seen["lines"])
    table = run(settings, "bench.gpu", "--table").stdout
    assert "these figures mean nothing" in table
    assert table.count("\n| ") == lines + 1


def test_without_time_the_bench_says_what_it_has_not_measured(settings: dict[str, str]) -> None:
    run(settings, "bench.gpu", "--budget", "0", "--sessions", "1")
    seen = json.loads((Path(settings["OUT"]) / "step-3.json").read_text())
    assert [line["inside"] for line in seen["lines"]] == [NO_TIME] * 4


@pytest.mark.parametrize("us", shares.KERNELS.values())
@pytest.mark.parametrize("layout", shares.LAYOUTS, ids=str)
def test_a_short_budget_still_measures_ten_kernels(layout: shares.Layout, us: int) -> None:
    assert layout.measured(1.0, us) >= 10 * us / 1e6 * 100 / layout.percent
    assert layout.needs(1.0, us) > 2 * layout.measured(1.0, us)
    assert layout.needs(5.0, us) < costs.LIMIT


def test_a_layout_that_lacks_the_time_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 200 ms: eight sessions take a minute, the others less than half."""
    measured: list[float] = []

    def rates(_gpu: object, chosen: list[object], words: list[Any]) -> list[float]:
        measured.append(words[2])
        return [5.0] * len(chosen)

    monkeypatch.setattr(shares, "rates", rates)
    until = time.monotonic() + 40
    lines = list(shares.kernels(Mock(), [Mock() for _ in range(8)], 1.0, until, "200 ms"))
    assert [line.inside == NO_TIME for line in lines] == [False, False, False, True]
    assert lines[-1].good is None
    assert measured == [1.0, 1.0, 8.0, 4.0, 8.0]


def test_sessions_need_not_have_what_the_gpu_loses_by_taking_turns() -> None:
    """On an H200, programs with kernels of 20 us get 87 % of what one gets, without the shim."""
    two = shares.LAYOUTS[1]
    assert [two.good([43.5, 43.4], part) for part in (0.87, 1.0)] == [True, False]


@pytest.fixture
def sessions(shim: Callable[..., Shim]) -> list[Shim]:
    both = [shim("session"), shim("neighbour")]
    for session in both:
        session.grant((UUID.format(0), 1 << 30, 25))
    return both


def busy(standin: Standin, sessions: list[Shim], us: int) -> float:
    """The GPU's busy time, by its own clock, while each session is fully loaded."""
    with ExitStack() as stack:
        programs = [
            stack.enter_context(
                Program("launches", ("busy", 2, us), {"LD_LIBRARY_PATH": str(session.libraries)})
            )
            for session in sessions
        ]
        for program in programs:
            assert program.next_message()["ready"]
        before = standin.show()
        for program in programs:
            program.go_on()
        for program in programs:
            assert program.end()["rate"]
        after = standin.show()
    used = after["gpus"][0]["busy_ns"] - before["gpus"][0]["busy_ns"]
    return float(used / (after["now_ns"] - before["now_ns"]))


@pytest.mark.parametrize("us", [1000, 50_000])
def test_two_busy_sessions_keep_to_their_shares(
    standin: Standin, sessions: list[Shim], us: int
) -> None:
    """25 % each. In real time, so only an excess is wrong: a slow machine lowers it."""
    assert 0.02 < busy(standin, sessions, us) < 0.6


def test_without_a_limit_the_same_program_takes_all(standin: Standin, sessions: list[Shim]) -> None:
    sessions[0].grant((UUID.format(0), 1 << 30, 100))
    assert busy(standin, sessions[:1], 50_000) > 0.4


def test_a_driver_beside_the_usual_folders_is_found(
    standin: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on machines where it is a mount that ldconfig does not know; a stub is no driver."""
    (tmp_path / "stubs").mkdir()
    (tmp_path / "stubs" / "libcuda.so.1").touch()
    monkeypatch.delenv("SLIPWAY_GPU_DRIVER", raising=False)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}/stubs:{tmp_path}")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(machine, "FOLDERS", (str(standin.directory),))
    monkeypatch.setattr(machine, "PROGRAM_FOLDERS", (str(standin.directory),))
    driver = machine.Driver.find()
    assert driver.libraries["libcuda.so.1"] == standin.cuda.resolve()
    assert driver.environment == {"LD_LIBRARY_PATH": f"{tmp_path}:{standin.directory}"}
    assert machine.ask_smi(driver, "name") == ["Slipway Stand-in 8GB"]
