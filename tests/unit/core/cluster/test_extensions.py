"""By how much a session can be extended."""

from __future__ import annotations

import pytest

from portal.core.cluster.extensions import Extensions, extensions

LIMIT = "sessions here may run 8 h at most"


@pytest.mark.parametrize(
    ("room", "offered"),
    [
        (None, [("60", 60), ("240", 240)]),
        (600, [("60", 60), ("240", 240), ("max", 600)]),
        (240, [("60", 60), ("max", 240)]),
        (60, [("max", 60)]),
        (1, [("max", 1)]),
    ],
)
def test_what_fits_is_offered(room: int | None, offered: list[tuple[str, int]]) -> None:
    found = extensions(room, LIMIT)
    assert [(offer.value, offer.minutes) for offer in found.offers] == offered
    assert found.why == ""


@pytest.mark.parametrize("room", [0, -30])
def test_without_room_the_reason_is_said(room: int) -> None:
    assert extensions(room, LIMIT) == Extensions(why=f"It cannot be extended: {LIMIT}.")
