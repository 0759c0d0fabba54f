"""Archives."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.node.file_server.operations.conftest import Operate

Unpack = Callable[..., dict[str, Any]]
HOUR = 1_500_000_000


def info(name: str, type: bytes = tarfile.REGTYPE, **fields: Any) -> tarfile.TarInfo:
    """A header of a tar file."""
    made = tarfile.TarInfo(name)
    made.type, made.mtime = type, HOUR
    for key, value in fields.items():
        setattr(made, key, value)
    return made


def make_tar(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> None:
    with tarfile.open(path, mode, format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        for header, data in members:
            header.size = len(data)
            tar.addfile(header, io.BytesIO(data))


def make_zip(path: Path, **files: str) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)


@pytest.fixture
def unpack(operate: Operate) -> Unpack:
    """Unpack one archive in the home."""

    def run(name: str, to: str = "", **more: str) -> dict[str, Any]:
        return operate("unpack", [f"home/{name}"], to, **more)

    return run


def tree(folder: Path) -> dict[str, str]:
    """The files and links below a folder, by path."""
    return {
        str(path.relative_to(folder)): f"-> {path.readlink()}"
        if path.is_symlink()
        else path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def problems(found: dict[str, Any]) -> dict[str, str]:
    return {problem["name"]: problem["detail"] for problem in found["problems"]}
