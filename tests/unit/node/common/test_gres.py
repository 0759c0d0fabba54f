"""Lists of generic resources."""

from __future__ import annotations

import pytest

from portal.node.common.gres import Gres, parse_gres, split_gres


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("shard:2(2/4)", [Gres("shard", "", 2, ((2, 4),))]),
        ("shard:a100:2(0/8,2/8)", [Gres("shard", "a100", 2, ((2, 8),))]),
        ("shard:a100:4(2/8,2/8)", [Gres("shard", "a100", 4, ((2, 8), (2, 8)))]),
        ("gpu:a100:1(IDX:0)", [Gres("gpu", "a100", 1)]),
        ("gpu:3(IDX:0-1,3)", [Gres("gpu", "", 3)]),
        ("gpu:a100:2(S:0,2),shard:8(S:0-1)", [Gres("gpu", "a100", 2), Gres("shard", "", 8)]),
        ("gpu:1g.10gb:1(IDX:2)", [Gres("gpu", "1g.10gb", 1)]),
        (
            "gpu:h100:1(IDX:0),shard:1(1/4)",
            [Gres("gpu", "h100", 1), Gres("shard", "", 1, ((1, 4),))],
        ),
    ],
)
def test_forms_of_gres(text: str, found: list[Gres]) -> None:
    assert [parse_gres(entry) for entry in split_gres(text)] == found


@pytest.mark.parametrize(
    "entry", ["", "(null)", "shard=2", "gpu", "gpu:a100", "gpu:", "gpu:a:b:1", "gpu:1(", "gpu:4K"]
)
def test_an_unknown_form_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="unknown GRES format"):
        parse_gres(entry)


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("gpu", Gres("gpu", "", 1)),
        ("gpu:a100", Gres("gpu", "a100", 1)),
        ("gpu:3", Gres("gpu", "", 3)),
        ("gpu:a100:0", Gres("gpu", "a100", 0)),
    ],
)
def test_requests_may_leave_out_the_count(entry: str, found: Gres) -> None:
    assert parse_gres(entry, default=1) == found
