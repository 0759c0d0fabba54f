"""A client of tus."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.unit.node.file_server.conftest import Answer, Client

TUS = {"Tus-Resumable": "1.0.0"}
CHUNK = {**TUS, "Content-Type": "application/offset+octet-stream"}


def metadata(**values: str) -> str:
    """The header Upload-Metadata."""
    return ",".join(f"{k} {base64.b64encode(v.encode()).decode()}" for k, v in values.items())


class Tus:
    """Uploads over one connection."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def create(self, path: str, length: int, **values: str) -> Answer:
        head = {"Upload-Length": str(length), "Upload-Metadata": metadata(path=path, **values)}
        return self.client("POST", "/data/uploads/", headers={**TUS, **head})

    def begin(self, path: str, length: int, **values: str) -> str:
        """The address of a new upload."""
        found = self.create(path, length, **values)
        assert found.status == 201, found.body
        return found.headers["Location"]

    def patch(self, url: str, offset: int, data: bytes, **headers: str) -> Answer:
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client("PATCH", url, data, {**CHUNK, "Upload-Offset": str(offset), **more})

    def head(self, url: str) -> Answer:
        return self.client("HEAD", url, headers=TUS)

    def delete(self, url: str) -> Answer:
        return self.client("DELETE", url, headers=TUS)


@pytest.fixture
def tus(data: Client) -> Tus:
    return Tus(data)


def parts(folder: Path) -> list[Path]:
    """What is being written below a folder."""
    return sorted(folder.rglob(".slipway-*"))


def problem(found: Answer) -> tuple[int, Any]:
    return found.status, found.json["code"]
