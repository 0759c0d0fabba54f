"""Which processes are stuck, and which are lost."""

from __future__ import annotations

from portal.node.gpu.cgroups import Step
from portal.node.gpu.health.members import orphans, stuck
from tests.unit.node.gpu.health.conftest import Machine


def test_a_step_is_over_when_all_of_it_is_killed(machine: Machine) -> None:
    proc = machine.proc
    proc.add(70, "job_12/step_0/user/task_0", killed=True)
    proc.add(71, "job_12/step_0/slurm", uid=0)
    proc.add(72, "job_12/step_1/user/task_0", killed=True)
    proc.add(73, "job_12/step_1/user/task_0")  # its daemon may live
    proc.add(74, "", killed=True)
    assert [(one.pid, one.step) for one in stuck(machine.look())] == [(70, Step(12, "0"))]


def test_lost_processes_have_no_slurmstepd(machine: Machine) -> None:
    proc = machine.proc
    proc.add(70, "job_12/step_0/user/task_0")
    proc.add(71, "job_13/step_0/user/task_0")
    proc.add(72, "job_13/step_extern/slurm", uid=0)
    proc.add(73, "job_14/step_0/user/task_0", killed=True)
    proc.add(74, "", uid=1001)
    assert [one.pid for one in orphans(machine.look())] == [70]


def test_a_process_whose_user_cannot_be_told_is_nobodys(machine: Machine) -> None:
    machine.proc.add(70, "job_12/step_0/user/task_0")
    machine.proc.add(71, "job_12/step_0/user/task_1")
    (machine.proc.folder / "71" / "status").write_text("Name:\tx\n")
    assert [one.uid for one in machine.look()] == [1001, None]
    assert orphans(machine.look()) == []  # it may be slurmstepd


def test_names_of_any_bytes_change_nothing(machine: Machine) -> None:
    for number in range(1, 256):
        name = bytes([number]) + b"Uid:\t0\t0\t0\t0"
        machine.proc.add(1000 + number, "job_12/step_0/user/task_0", name=name[:15])
    assert {one.uid for one in machine.look()} == {1001}
    assert len(orphans(machine.look())) == 255
