"""Usage, from sample trees of cgroup v1 and v2."""

from __future__ import annotations

from pathlib import Path

from portal.node.runner.usage import read_usage


def write(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


def test_v2(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "memory.current": "300000000\n",
            "memory.max": "629145600\n",
            "memory.stat": "anon 200000000\nfile 90000000\ninactive_file 80000000\n",
            "memory.events": "low 0\nmax 3\noom 2\noom_kill 1\n",
            "cpu.stat": "usage_usec 2500000\nuser_usec 2000000\n",
        },
    )
    assert read_usage(root) == {
        "cpu_seconds": 2.5,
        "memory_bytes": 220000000,
        "memory_limit": 629145600,
        "oom_kills": 1,
    }


def test_v2_without_limit(tmp_path: Path) -> None:
    root = write(tmp_path, {"memory.current": "1000\n", "memory.max": "max\n"})
    assert read_usage(root)["memory_limit"] is None


def test_v1_counts_kills_of_the_levels_below(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "memory/memory.usage_in_bytes": "300000000\n",
            "memory/memory.limit_in_bytes": "629145600\n",
            "memory/memory.stat": "cache 1\ninactive_file 1\ntotal_inactive_file 80000000\n",
            "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
            "memory/task_0/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
            "cpuacct/cpuacct.usage": "1500000000\n",
        },
    )
    assert read_usage(root) == {
        "cpu_seconds": 1.5,
        "memory_bytes": 220000000,
        "memory_limit": 629145600,
        "oom_kills": 2,
    }


def test_v1_without_limit(tmp_path: Path) -> None:
    root = write(tmp_path, {"memory/memory.limit_in_bytes": "9223372036854771712\n"})
    assert read_usage(root)["memory_limit"] is None


def test_without_cgroup_only_the_processes_are_counted(tmp_path: Path) -> None:
    stat = "7 (a (b) c) S 1 7 7 0 -1 0 0 0 0 0 {} {} 0 0 20 0 1 0 5 0 0"
    proc = write(
        tmp_path / "proc",
        {"7/stat": stat.format(150, 50), "8/stat": stat.format(100, 0), "self/stat": "x"},
    )
    usage = read_usage(str(tmp_path / "nothing"), proc)
    assert usage == {
        "cpu_seconds": 3.0,
        "memory_bytes": None,
        "memory_limit": None,
        "oom_kills": None,
    }
