"""The format of SIF files."""

from __future__ import annotations

import pytest

from portal.node.common.sif import (
    DESCRIPTOR,
    HEADER,
    ID_OFFSET,
    ID_SIZE,
    Header,
    architecture_of_code,
    architecture_of_machine,
    code_of_machine,
    has_magic,
)
from tests.support.sif import START, sif


def test_the_header_of_a_file() -> None:
    content = sif(b"data", id=b"0123456789abcdef")
    header = Header(content)
    assert has_magic(content)
    assert content[ID_OFFSET : ID_OFFSET + ID_SIZE] == header.id == b"0123456789abcdef"
    assert (header.architecture, header.descriptors, header.table) == ("amd64", 2, START)
    assert (header.table_size, header.data_size) == (2 * DESCRIPTOR.size, 4)
    assert content[header.data :] == b"data"


@pytest.mark.parametrize("head", [b"", b"SIF_MAGIC", b"x" * HEADER.size])
def test_other_files_have_no_magic(head: bytes) -> None:
    assert not has_magic(head)


@pytest.mark.parametrize(
    ("machine", "code", "name"),
    [
        ("i686", "01", "386"),
        ("x86_64", "02", "amd64"),
        ("armv7l", "03", "arm"),
        ("aarch64", "04", "arm64"),
        ("ppc64le", "06", "ppc64le"),
        ("s390x", "11", "s390x"),
        ("riscv64", "12", "riscv64"),
    ],
)
def test_architectures(machine: str, code: str, name: str) -> None:
    assert architecture_of_machine(machine) == architecture_of_code(code) == name
    assert code_of_machine(machine) == code


@pytest.mark.parametrize("machine", ["", "vax", "mips64"])
def test_machines_that_images_are_not_built_for(machine: str) -> None:
    assert (architecture_of_machine(machine), code_of_machine(machine)) == (machine, "")


def test_architectures_that_are_only_read() -> None:
    assert [architecture_of_code(code) for code in ("05", "10", "99")] == ["ppc64", "mips64le", ""]
