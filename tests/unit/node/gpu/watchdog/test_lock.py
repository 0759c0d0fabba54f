"""One watchdog on a node, whatever users lock."""

from __future__ import annotations

import fcntl
import stat
from pathlib import Path
from threading import Timer

from portal.node.gpu.watchdog.lock import is_running, lock


def test_there_is_one_watchdog(tmp_path: Path) -> None:
    jobs = tmp_path / "gpu" / "jobs"
    assert not is_running(jobs)
    first = lock(jobs)
    assert first is not None
    assert is_running(jobs)
    first.close()
    assert not is_running(jobs)


def test_a_watchdog_waits_while_a_check_looks_for_it(tmp_path: Path) -> None:
    """Before, a node's check could end a watchdog that was just starting."""
    jobs = tmp_path / "gpu" / "jobs"
    looking = lock(jobs)
    assert looking is not None
    assert lock(jobs) is None
    Timer(0.2, looking.close).start()
    held = lock(jobs, seconds=20)
    assert held is not None
    held.close()


def test_only_root_can_open_the_lock(tmp_path: Path) -> None:
    """M3: every user could open it, and so lock it."""
    jobs = tmp_path / "gpu" / "jobs"
    held = lock(jobs)
    assert held is not None
    folder = jobs.parent / "watch"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "lock")]
    assert modes == [0o700, 0o600]
    held.close()


def test_user_locks_do_not_stop_the_watchdog(tmp_path: Path) -> None:
    """M3: the lock of an earlier version, and one in a folder with access for all."""
    jobs = tmp_path / "gpu" / "jobs"
    folder = jobs.parent / "watch"
    folder.mkdir(parents=True, mode=0o755)
    folder.chmod(0o755)
    for path in (jobs.parent / "watch.lock", folder / "lock"):
        path.touch(0o644)
    with (jobs.parent / "watch.lock").open() as one, (folder / "lock").open() as two:
        fcntl.flock(one, fcntl.LOCK_EX)
        fcntl.flock(two, fcntl.LOCK_EX)
        held = lock(jobs)
        assert held is not None
        assert is_running(jobs)
        held.close()
    assert [path.name for path in jobs.parent.iterdir()] == ["watch"]
