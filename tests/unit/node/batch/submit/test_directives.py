"""Our directives in scripts."""

from __future__ import annotations

import pytest

from portal.node.batch.options import OptionError
from portal.node.batch.submit import directives


def test_they_are_read_where_sbatch_reads_its_own() -> None:
    script = (
        b"#!/bin/sh\n#SBATCH -n 1\n\n# a comment\n#SLIPWAY --image=python/3.13 --shm '2g' # why\n"
        b'  \n#SLIPWAY --mount "a b"\necho\n#SLIPWAY --image=other\n'
    )
    assert directives.has_directives(script)
    assert directives.read(script) == [("image", "python/3.13"), ("shm", "2g"), ("mount", "a b")]


@pytest.mark.parametrize(
    "script",
    [
        b"",
        b"#!/bin/sh\necho\n#SLIPWAY --image=x\n",
        b"#!/bin/sh\n #SLIPWAY --image=x\n",
        b"#!/bin/sh\n##SLIPWAY --image=x\n",
        b"#!/bin/sh\n#SLIPWAYS --image=x\n",
        b"#!/bin/sh\n#slipway --image=x\n",
    ],
)
def test_other_lines_are_comments(script: bytes) -> None:
    assert not directives.has_directives(script)
    assert directives.read(script) == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("--partition=main", "'--partition=main' is not an option of Slipway; those of Slurm"),
        ("job.sh", "'job.sh' is not an option of Slipway"),
        ("--image", "--image: it needs a value"),
        ("--image 'x", "No closing quotation"),
    ],
)
def test_wrong_lines_are_named(line: str, text: str) -> None:
    with pytest.raises(OptionError, match=f"line 3 of the script: {text}"):
        directives.read(f"#!/bin/sh\n\n#SLIPWAY {line}\n".encode())
