"""A client of tus."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.node.file_server.conftest import Answer, Client

TUS = {"Tus-Resumable": "1.0.0"}
CHUNK = {**TUS, "Content-Type": "application/offset+octet-stream"}


def metadata(**values: str) -> str:
    """The header Upload-Metadata."""
    return ",".join(f"{k} {base64.b64encode(v.encode()).decode()}" for k, v in values.items())


def hyphened(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


class Tus:
    """Uploads over one connection."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def post(self, data: bytes | None = None, /, **headers: str) -> Answer:
        """Request a new upload; underscores in names of headers become hyphens."""
        kind = CHUNK if data is not None else TUS
        return self.client("POST", "/data/uploads/", data, {**kind, **hyphened(headers)})

    def create(self, path: str, length: int, **values: str) -> Answer:
        return self.post(Upload_Length=str(length), Upload_Metadata=metadata(path=path, **values))

    def begin(self, path: str, length: int, **values: str) -> str:
        """The address of a new upload."""
        found = self.create(path, length, **values)
        assert found.status == 201, found.body
        return found.headers["Location"]

    def partial(self, data: bytes, **headers: str) -> str:
        """The address of a partial upload that is complete."""
        found = self.post(Upload_Concat="partial", Upload_Length=str(len(data)), **headers)
        assert found.status == 201, found.body
        url = found.headers["Location"]
        assert self.patch(url, 0, data).status == 204
        return url

    def final(self, urls: list[str], path: str, **values: str) -> Answer:
        """Join partial uploads."""
        concat = f"final;{' '.join(urls)}"
        return self.post(Upload_Concat=concat, Upload_Metadata=metadata(path=path, **values))

    def patch(self, url: str, offset: int, data: bytes, **headers: str) -> Answer:
        more = {"Upload-Offset": str(offset), **hyphened(headers)}
        return self.client("PATCH", url, data, {**CHUNK, **more})

    def head(self, url: str) -> Answer:
        return self.client("HEAD", url, headers=TUS)

    def delete(self, url: str) -> Answer:
        return self.client("DELETE", url, headers=TUS)


@pytest.fixture
def tus(data: Client) -> Tus:
    return Tus(data)


@pytest.fixture
def small_disk(home: Path) -> Iterator[Path]:
    """A file system of 4 MB at home/storage/data; needs root."""
    folder = home / "storage/data"
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(command, check=False).returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def parts(folder: Path) -> list[Path]:
    """What is being written below a folder."""
    return sorted(folder.rglob(".slipway-*"))


def problem(found: Answer) -> tuple[int, Any]:
    return found.status, found.json["code"]
