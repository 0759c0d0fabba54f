"""The conversion: every amount is a whole number of shards, and all slices fit into the GPU."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.node.common.fgpu import (
    MIB,
    GpuKind,
    Slice,
    kind_from_json,
    kinds_as_json,
    parse_ratio,
    percent_of,
    share_of,
    to_number,
)


def kind(unit: str = "1/2", step: str = "1/2", memory_mb: int = 8192, **more: str) -> GpuKind:
    """A kind of GPU; by default the demo's."""
    return GpuKind("", "GPU", memory_mb, Fraction(unit), Fraction(step), **more)  # type: ignore[arg-type]


RATIOS = st.sampled_from(["1", "1/2", "1/3", "1/4", "1/5", "1/7", "1/10", "3/4", "2", "3/2"])
KINDS = st.builds(
    kind,
    unit=RATIOS,
    step=RATIOS,
    memory_mb=st.integers(1, 200_000),
    sharing=st.sampled_from(["shared", "whole", "mig"]),
)


def test_the_example_of_the_guide() -> None:
    """An 8 GB GPU is 2 fGPU; a request for a half gets 2 GB."""
    found = kind().grant(0.5)
    assert found == Slice("", Fraction(1, 2), 1, 0, 2048, 25)
    assert found.gres == "shard:1"
    assert [to_number(one.fgpu) for one in kind().amounts()] == [0.5, 1, 1.5, 2]
    assert kind().shards == 4


def test_beyond_one_gpu_only_whole_gpus_are_granted() -> None:
    assert [one.gres for one in kind().amounts(3)][3:] == ["shard:4", "gpu:2", "gpu:3"]
    two = kind(memory_mb=80_000).grant(2.5, gpus=2)
    assert two == Slice("", Fraction(4), 0, 2, 160_000, 100)
    assert kind().grant(2.5) is None
    assert kind().grant(0.5, gpus=0) is None


@pytest.mark.parametrize(
    ("unit", "step", "asked", "shards", "memory"),
    [("1/5", "1", 1, 1, 1638), ("1/3", "1", 1, 1, 2730), ("1/3", "1", 0.9, 1, 2730),
     ("1", "1/4", 0.3, 2, 4096), ("2/5", "1", 2, 4, 6553), ("2/5", "1", 2.1, 5, 8192),
     ("1/2", "3", 0.1, 2, 8192)],
)  # fmt: skip
def test_other_ratios(unit: str, step: str, asked: float, shards: int, memory: int) -> None:
    found = kind(unit, step).grant(asked)
    assert found is not None
    assert (found.shards, found.memory_mb) == (shards, memory)


def test_whole_gpus_and_mig_devices_are_not_shared() -> None:
    whole = kind(unit="1", sharing="whole")
    assert [one.gres for one in whole.amounts(2)] == ["gpu:1", "gpu:2"]
    mig = GpuKind("1g.18gb", "MIG", 18_000, Fraction(8), Fraction(1), "mig")
    assert [one.gres for one in mig.amounts(7)] == ["gpu:1g.18gb:1"]
    assert mig.grant(0.1) == Slice("1g.18gb", Fraction(1, 8), 0, 1, 18_000, 100)


def test_a_type_is_named_if_present() -> None:
    typed = GpuKind("a100", "A100", 40_960, Fraction(1), Fraction(1, 4))
    assert [one.gres for one in typed.amounts(2)][2:] == [
        "shard:a100:3", "shard:a100:4", "gpu:a100:2",
    ]  # fmt: skip


@given(KINDS, st.integers(1, 4))
def test_every_amount_is_whole_shards_in_ascending_order(kind: GpuKind, gpus: int) -> None:
    found = list(kind.amounts(gpus))
    assert [one.fgpu for one in found] == sorted({one.fgpu for one in found})
    for one in found:
        assert (one.shards > 0) != (one.gpus > 0)
        assert one.shards <= kind.shards and one.gpus <= gpus
        assert kind.fgpu(one.shards, one.gpus) == one.fgpu
        assert one.shards in (0, kind.shards) or (one.fgpu / kind.step).denominator == 1


@given(KINDS)
def test_slices_of_all_shards_never_exceed_the_gpu(kind: GpuKind) -> None:
    for one in kind.amounts():
        if one.shards:
            fit = kind.shards // one.shards
            assert fit * one.memory_mb <= kind.memory_mb
            assert fit * one.sm_percent <= max(100, fit)


@given(KINDS, st.floats(0.001, 20), st.floats(0.001, 20), st.integers(1, 4))
def test_a_grant_is_the_smallest_sufficient_amount(
    kind: GpuKind, asked: float, other: float, gpus: int
) -> None:
    less, more = (kind.grant(amount, gpus) for amount in sorted((asked, other)))
    if less is not None:
        below = [one for one in kind.amounts(gpus) if one.fgpu < less.fgpu]
        assert all(to_number(one.fgpu) < round(min(asked, other), 3) for one in below)
    if more is not None:
        assert less is not None and less.fgpu <= more.fgpu


@settings(max_examples=30)  # all pairs of amounts: slow for some kinds
@given(KINDS, st.integers(1, 4))
def test_a_granted_amount_is_granted_unchanged(kind: GpuKind, gpus: int) -> None:
    for one in kind.amounts(gpus):
        assert kind.grant(to_number(one.fgpu), gpus) == one


@given(st.integers(1, 200_000 * MIB), st.integers(1, 64))
def test_shares_are_whole_mebibytes(total: int, of: int) -> None:
    assert share_of(total, of, of) == total // MIB * MIB
    assert of * share_of(total, 1, of) <= total
    assert percent_of(1, of) >= 1


@given(KINDS)
def test_the_nodes_can_read_the_portals_file(kind: GpuKind) -> None:
    (written,) = kinds_as_json((kind,))
    assert kind_from_json(written) == kind  # type: ignore[arg-type]


def test_files_of_earlier_versions_have_no_policy() -> None:
    (written,) = kinds_as_json((kind(policy="fair"),))
    assert kind_from_json(written).policy == "fair"  # type: ignore[arg-type]
    del written["policy"]
    assert kind_from_json(written).policy == "strict"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sharing", "lent"),
        ("compute", "hope"),
        ("policy", "kind"),
        ("unit", "much"),
        ("memory_mb", ""),
    ],
)
def test_an_inconsistent_kind_is_refused(field: str, value: str) -> None:
    (written,) = kinds_as_json((kind(),))
    with pytest.raises(ValueError, match=r"sharing mode|policy|literal"):
        kind_from_json(written | {field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("written", "ratio"), [(1, "1"), (0.2, "1/5"), ("1/3", "1/3")])
def test_accepted_spellings_of_ratios(written: object, ratio: str) -> None:
    assert parse_ratio(written) == Fraction(ratio)


@pytest.mark.parametrize("written", [True, None, "a third", "1/0", [1, 3]])
def test_invalid_ratios(written: object) -> None:
    with pytest.raises(ValueError, match="1/3"):
        parse_ratio(written)
