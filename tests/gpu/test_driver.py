"""The shim on a real GPU through CUDA's driver API alone, without any framework."""

from __future__ import annotations

import pytest

from tests.gpu.session import Session

GIB = 1 << 30


@pytest.mark.parametrize("kind", ["plain", "async", "managed"])
def test_a_program_gets_its_slice_and_no_more(
    session: Session, cap: int, kind: str, figures: dict[str, str]
) -> None:
    before = session.gpu.used()
    with session.start("driver", "fill", kind) as program:
        seen = program.next_message()
        outside = session.gpu.used() - before - cap
        program.end()
    assert seen["refused"]
    assert cap - min(GIB, cap // 8) <= seen["held"] <= cap
    figures[f"Filled ({kind})"] = f"{seen['held'] / cap:.3f} of the slice"
    if kind == "plain":
        figures["Beyond the slice, by the driver (context)"] = f"{max(0, outside) >> 20} MiB"


def test_two_processes_share_one_slice(session: Session) -> None:
    with session.start("driver", "hold", 0.6) as first:
        assert first.next_message()["got"]
        assert not session.run("driver", "hold", 0.6)["got"]
        first.end()
    assert session.run("driver", "hold", 0.6)["got"]


@pytest.mark.parametrize("kind", ["plain", "managed"])
def test_a_thousand_cycles_leave_nothing(session: Session, kind: str) -> None:
    seen = session.run("driver", "cycles", kind)
    assert seen["after"] == seen["before"]


def test_all_interfaces_report_the_slice(session: Session, cap: int) -> None:
    assert session.run("driver", "memory")["total"] == cap
    assert int(session.smi("memory.total")[0]) == pytest.approx(cap >> 20, rel=0.01)


def test_two_sessions_do_not_affect_each_other(session: Session, neighbour: Session) -> None:
    with session.start("driver", "hold", 0.9) as one, neighbour.start("driver", "hold", 0.9) as two:
        assert one.next_message()["got"]
        assert two.next_message()["got"]
        assert one.end()["got"]
        assert two.end()["got"]


def test_memory_of_a_killed_program_is_freed(session: Session, cap: int) -> None:
    with session.start("driver", "hold", 0.9) as program:
        assert program.next_message()["got"]
        program.kill()
    assert session.run("driver", "memory")["free"] == cap
    with session.start("driver", "killed") as program:
        program.next_message()
        with pytest.raises(AssertionError):
            program.end()
    assert session.run("driver", "memory")["free"] == cap


def test_every_lookup_finds_the_shim(session: Session) -> None:
    seen = session.run("driver", "pointers")
    assert len(seen) >= 4
    assert all(seen.values()), seen
