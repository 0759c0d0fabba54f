"""Which FUSE connections a process may wait for."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from portal.node.gpu.cgroups import Step
from portal.node.gpu.health.fuse import Fuse
from portal.node.gpu.health.members import Member
from tests.unit.node.gpu.node import Proc

ME = pwd.getpwuid(os.getuid())


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (f"{ME.pw_name}:500:10\n", {7}),
        (f"{ME.pw_uid}:500:10\n", {7}),
        (f"{ME.pw_name}:500:5\n", set()),
        (f"{ME.pw_name}:-500:1000\n{ME.pw_name}:500\n{ME.pw_name}:500:x\n", set()),
        (f"x{ME.pw_name}:500:10\n", set()),
        (None, set()),
    ],
)
def test_subordinate_uids_are_their_owners(
    tmp_path: Path, text: str | None, hidden: set[int]
) -> None:
    subuid = tmp_path / "subuid"
    if text is not None:
        subuid.write_text(text)
    proc = Proc(tmp_path / "proc")
    proc.add(70, "", ME.pw_uid)
    one = Member(70, "70@1", ME.pw_uid, Step(12, "0"), True)
    assert Fuse(tmp_path, proc.folder, subuid).hidden_from(one, {7: 505}) == hidden
