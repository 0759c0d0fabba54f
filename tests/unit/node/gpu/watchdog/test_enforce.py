"""Whom the watchdog ends: greedy processes, also those that hide, and never an honest one's."""

from __future__ import annotations

from portal.node.common.fgpu import MIB
from portal.node.gpu.slices import JobSlice, Part
from portal.node.gpu.watchdog.judge import LONGEST_DEATH
from portal.node.gpu.watchdog.processes import Processes
from tests.unit.node.gpu.watchdog.conftest import Node, killed

CONTEXT = 200
"""MiB, less than the margin of 256."""


def test_the_margin_is_allowed_and_a_byte_more_is_not(node: Node) -> None:
    node.job(12)
    child = node.process(12, 2048 + 256)
    node.look(3)
    assert not killed(child)
    node.nvml.held["GPU-0"][child.pid] += 1
    node.look(2)
    assert killed(child)
    assert "ended python3" in node.logged[0]
    node.look(3)  # the driver shows it a moment longer
    assert node.usage(12)["kills"] == 1
    assert len(node.logged) == 1


def test_one_look_over_the_limit_ends_nobody(node: Node) -> None:
    node.job(12)
    child = node.process(12, 4000)
    node.look(1)
    assert not killed(child)
    node.nvml.held["GPU-0"][child.pid] = 2000 * MIB
    node.look(1)
    node.nvml.held["GPU-0"][child.pid] = 4000 * MIB
    node.look(1)
    assert not killed(child)
    node.look(1)
    assert killed(child)


def test_memory_that_is_freed_at_every_second_look_ends_at_the_third_excess(node: Node) -> None:
    node.job(12)
    child = node.process(12, 4000)
    for _ in range(2):
        node.nvml.held["GPU-0"][child.pid] = 4000 * MIB
        node.look(1)
        node.nvml.held["GPU-0"][child.pid] = 100 * MIB
        node.look(1)
    assert not killed(child)
    node.nvml.held["GPU-0"][child.pid] = 4000 * MIB
    node.look(1)
    assert killed(child)


def test_a_new_watchdog_looks_twice_again(node: Node) -> None:
    node.job(12)
    child = node.process(12, 4000)
    node.look(1)
    node.watch = node.watchdog()
    node.look(1)
    assert not killed(child)
    node.look(1)
    assert killed(child)


def test_a_failed_look_is_not_one_of_two(node: Node) -> None:
    node.job(12)
    child = node.process(12, 4000)
    for broken in ("GPU-0", "driver"):
        node.look(1)
        node.nvml.broken = {"GPU-0", broken}
        node.look(2)
        node.nvml.broken = set()
    node.look(1)
    assert not killed(child)


def test_a_requeued_job_is_a_new_one(node: Node) -> None:
    node.job(12)
    child = node.process(12, 4000)
    node.look(1)
    node.job(12)
    node.look(1)
    assert not killed(child)


def test_a_full_slice_has_room_for_the_contexts_of_all_processes(node: Node) -> None:
    """Two notebooks and workers of a DataLoader, as of one library each."""
    node.job(12)
    children = [node.process(12, 2048 + CONTEXT)]
    children += [node.process(12, CONTEXT) for _ in range(5)]
    node.look(4)
    assert not any(map(killed, children))
    assert node.logged == []


def test_idle_processes_give_others_no_room(node: Node) -> None:
    node.job(12)
    idle = [node.process(12, 1) for _ in range(20)]
    greedy = node.process(12, 2048 + 256 + 1)
    node.look(2)
    assert killed(greedy)
    assert not any(map(killed, idle))


def test_hundreds_of_processes_hold_two_slices_at_most(node: Node) -> None:
    node.job(12)
    children = [node.process(12, 256) for _ in range(20)]
    node.look(2)
    ended = [child for child in children if killed(child)]
    assert len(ended) == 4  # of 5120 MiB, 4096 are left


def test_the_largest_process_is_ended_first_and_the_neighbour_stays(node: Node) -> None:
    node.job(12)
    node.job(13)
    small, greedy = node.process(12, 300), node.process(12, 4000)
    neighbour = node.process(13, 2048)
    node.look(2)
    assert killed(greedy)
    assert not killed(small)
    assert not killed(neighbour)
    assert (node.usage(12)["kills"], node.usage(13)["kills"]) == (1, 0)


def test_whole_gpus_have_no_limit(node: Node) -> None:
    node.job(12, JobSlice("none", (Part("GPU-0", 0, 100),)))
    child = node.process(12, 8000)
    node.look(3)
    assert not killed(child)


def test_a_reused_pid_is_not_ended(node: Node) -> None:
    node.job(12)
    child = node.process(12, 4000)
    processes = node.watch._processes
    name = processes.name

    def reused(pid: int) -> str:
        node.move(pid, 77)
        return name(pid)

    processes.name = reused  # type: ignore[method-assign]
    node.look(2)
    assert not killed(child)
    assert node.logged == []


# The dead


def test_a_dying_process_is_not_counted_with_its_successor(node: Node) -> None:
    """It took the memory of 100 GiB seconds to be free; the successor was the larger one."""
    node.job(12)
    old = node.process(12, 2048)
    node.threads(old.pid, exiting=[True, True])
    new = node.process(12, 2100)
    node.look(10)
    assert not killed(new)
    assert node.logged == []


def test_a_process_that_dies_for_ever_is_counted_again(node: Node) -> None:
    """Its end may wait for a file system that its user controls."""
    node.job(12)
    old = node.process(12, 2048)
    node.threads(old.pid, exiting=[True])
    new = node.process(12, 2100)
    node.look(int(LONGEST_DEATH))
    assert not killed(new)
    node.look(3)
    assert killed(new)


def test_a_program_whose_first_thread_has_ended_is_counted(node: Node) -> None:
    node.job(12)
    child = node.process(12, 4000)
    node.threads(child.pid, exiting=[True, False])
    node.look(2)
    assert killed(child)


def test_the_successor_is_not_ended_for_what_another_process_did(node: Node) -> None:
    node.job(12)
    old = node.process(12, 4000)
    node.look(1)
    del node.nvml.held["GPU-0"][old.pid]
    new = node.process(12, 4000)
    node.look(1)
    assert not killed(new)  # seen once
    node.look(1)
    assert killed(new)


def test_processes_that_never_live_for_two_looks_do_not_escape(node: Node) -> None:
    node.job(12)
    ended = []
    for _ in range(4):
        node.nvml.held["GPU-0"] = {}
        child = node.process(12, 4000)
        node.look(1)
        ended.append(killed(child))
    assert ended == [False, False, True, False]
    assert node.usage(12)["kills"] == 1


# Memory that two processes share


def test_imported_memory_that_the_driver_counts_twice(node: Node) -> None:
    """vLLM and Ray share by CUDA IPC; whether NVML counts an importer is not documented."""
    node.job(12)
    node.job(13)
    exporter, importer = node.process(12, 2048 + 100), node.process(12, 2048)
    node.nvml.in_use["GPU-0"] = (2048 + 200) * MIB
    node.look(4)
    assert not killed(exporter)
    assert not killed(importer)
    # Without a sign of sharing, the same figures are too much.
    node.nvml.in_use["GPU-0"] = (2 * 2048 + 100) * MIB
    node.look(2)
    assert killed(exporter)


def test_a_neighbours_sharing_does_not_excuse_one_process(node: Node) -> None:
    node.job(12)
    node.job(13)
    greedy = node.process(12, 4000)
    for _ in range(3):
        node.process(13, 1000)
    node.nvml.in_use["GPU-0"] = 5000 * MIB
    node.look(2)
    assert killed(greedy)


# Managed memory past the shim


def _managed(node: Node, job: int, plain: int, managed: int, on_gpu: int) -> int:
    """A process with managed memory, of which a part is on the GPU; its PID."""
    child = node.process(job, plain)
    node.map_managed(child.pid, managed)
    held = node.nvml.in_use.get("GPU-0", 0)
    node.nvml.in_use["GPU-0"] = held + (plain + on_gpu) * MIB
    return child.pid


def _ended(node: Node) -> set[int]:
    return {child.pid for child in node.running if killed(child)}


def test_managed_memory_past_the_shim_is_found(node: Node) -> None:
    node.job(12)
    node.job(13)
    thief = _managed(node, 12, 100, 6000, 5000)
    _managed(node, 13, 200, 1800, 1800)
    node.look(1)
    assert _ended(node) == set()
    node.look(1)
    assert _ended(node) == {thief}
    assert "managed memory" in node.logged[0]
    assert node.usage(12)["kills"] == 1


def test_managed_memory_behind_the_shim_is_not_blamed(node: Node) -> None:
    """Two sessions with full slices of it, and a plain one."""
    for job in (12, 13):
        node.job(job)
        _managed(node, job, CONTEXT, 2048, 2048)
    node.job(14)
    _managed(node, 14, 2048 + CONTEXT, 0, 0)
    node.look(5)
    assert _ended(node) == set()
    assert node.logged == []


def test_managed_memory_that_is_on_the_host_is_not_blamed(node: Node) -> None:
    """A plain job of Slurm may map more than its slice, as long as the GPU holds no more."""
    node.job(12)
    node.job(13)
    _managed(node, 12, 100, 60000, 1500)
    _managed(node, 13, 100, 1900, 1900)
    node.look(5)
    assert _ended(node) == set()


def test_who_cannot_be_told_is_not_ended(node: Node) -> None:
    """Pages of the heap (HMM) are mapped by nobody."""
    node.job(12)
    node.job(13)
    _managed(node, 12, 100, 0, 5000)
    _managed(node, 13, 100, 0, 0)
    node.look(5)
    assert _ended(node) == set()
    assert len(node.logged) == 1
    assert "5000 MiB of GPU-0 are in use by no process" in node.logged[0]
    assert "nobody is ended" in node.logged[0]


def test_the_memory_of_others_is_not_a_jobs(node: Node) -> None:
    """A service of root's, outside of all jobs, with managed memory of its own."""
    node.job(12)
    _managed(node, 12, 100, 2048, 500)
    _managed(node, 99, 100, 5000, 5000)
    node.look(5)
    assert _ended(node) == set()


def test_unreadable_mappings_or_figures_blame_nobody(node: Node) -> None:
    node.job(12)
    thief = _managed(node, 12, 100, 6000, 5000)
    maps = node.proc / str(thief) / "maps"
    text = maps.read_text()
    maps.unlink()
    node.look(3)
    assert _ended(node) == set()
    assert node.logged == []
    maps.write_text(text)
    node.process(99, 0)  # a process whose memory the driver does not know
    node.look(3)
    assert _ended(node) == set()


def test_drivers_without_a_figure_for_all_memory(node: Node) -> None:
    node.job(12)
    child = node.process(12, 4000)
    node.nvml.used = lambda uuid: None  # type: ignore[method-assign]
    node.look(2)
    assert killed(child)


def test_a_vanished_process_is_nobody(node: Node) -> None:
    processes = Processes(node.proc)
    assert (processes.mark(1), processes.is_dying(1), processes.managed(1)) == ("", False, None)
