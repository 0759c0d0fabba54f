"""The Singularity Image Format (SIF): its global header, its descriptors, its architectures."""

from __future__ import annotations

import struct

HEADER = struct.Struct("<32s10s3s3s16sqqqqqqqq")
"""Launch script, magic, version, architecture, id, times of creation and change, numbers of free
and of all descriptors, then offset and size of the table of descriptors and of the data."""
DESCRIPTOR = struct.Struct("<i?IIIqqqqqqq128s384s")
MAGIC = b"SIF_MAGIC"
MAGIC_OFFSET = 32
ID_OFFSET, ID_SIZE = 48, 16

_ARCHITECTURES = (
    ("01", "386", "i686"), ("02", "amd64", "x86_64"), ("03", "arm", "armv7l"),
    ("04", "arm64", "aarch64"), ("05", "ppc64", None), ("06", "ppc64le", "ppc64le"),
    ("07", "mips", None), ("08", "mipsle", None), ("09", "mips64", None), ("10", "mips64le", None),
    ("11", "s390x", "s390x"), ("12", "riscv64", "riscv64"),
)  # fmt: skip
"""The header's code, the name in Go and in registries, and uname's machine type if it is built for.
"""


class Header:
    """The global header of a SIF file, from its first HEADER.size bytes."""

    __slots__ = ("architecture", "data", "data_size", "descriptors", "id", "table", "table_size")

    def __init__(self, head: bytes) -> None:
        fields = HEADER.unpack_from(head)
        self.architecture = architecture_of_code(fields[3][:2].decode("latin-1"))
        """As registries name it; "" if the code is unknown."""
        self.id: bytes = fields[4]
        self.descriptors: int = fields[8]
        self.table, self.table_size, self.data, self.data_size = fields[9:]


def has_magic(head: bytes) -> bool:
    """Whether a file that begins with these bytes claims to be a SIF file."""
    return head.startswith(MAGIC, MAGIC_OFFSET)


def architecture_of_code(code: str) -> str:
    """The name of an architecture by its code in the header; "" if the code is unknown."""
    return next((name for number, name, _ in _ARCHITECTURES if number == code), "")


def architecture_of_machine(machine: str) -> str:
    """The name of an architecture by uname's machine type, which is the default."""
    return next((name for _, name, type in _ARCHITECTURES if type == machine), machine)


def code_of_machine(machine: str) -> str:
    """The code in the header by uname's machine type; "" if images are not built for it."""
    return next((code for code, _, type in _ARCHITECTURES if type == machine), "")
