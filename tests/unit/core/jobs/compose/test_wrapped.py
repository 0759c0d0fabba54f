"""What is read from the script that `slipway sbatch` submits."""

from __future__ import annotations

import pytest

from portal.core.jobs.compose.wrapped import WrappedJob, unwrap
from portal.node.batch.request import Request
from portal.node.batch.submit import wrapped as batch

SCRIPT = b"#!/bin/sh\ncat <<'SLIPWAY-x'\n{}\n1\nSLIPWAY-x\n"


def a_request() -> Request:
    """A request for an image."""
    request = Request()
    request.name, request.binds = "python/3.13", [["/a b", "rw"]]
    return request


@pytest.mark.parametrize("make", [batch.batch_script, batch.wrap_text])
def test_the_users_own_script_is_in_it(make: object) -> None:
    assert callable(make)
    found = unwrap(make(SCRIPT, a_request()))
    assert found is not None
    assert SCRIPT in found.script
    assert (found.image, found.shared_memory) == ("python/3.13", "")
    assert found.options == ["--mount=/a b"]


def test_other_scripts_are_none_of_ours() -> None:
    assert unwrap(SCRIPT) is None
    assert unwrap(b"") is None


@pytest.mark.parametrize(
    "request_text",
    [
        "{}",
        '{"binds": 1}',
        '{"binds": [[]]}',
        '{"binds": [], "shm_mb": "x"}',
        '{"binds": [[1, "rw", "x"]], "shm_mb": 0, "name": ""}',
        '{"binds": [], "shm_mb": 1e999, "name": ""}',
        '{"a":' * 99999 + "}",
    ],
)
def test_a_forged_request_is_no_fault(request_text: str) -> None:
    text = f"exec 9<<'SLIPWAY-{'0' * 24}'\n{request_text}\n2\nab\n"
    assert unwrap(text.encode()) == WrappedJob(b"ab")
