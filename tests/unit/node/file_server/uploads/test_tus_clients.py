"""tuspy and tus-js-client, through HAProxy."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tusclient.client import TusClient
from tusclient.exceptions import TusCommunicationError

from tests.support.paths import ROOT
from tests.unit.node.file_server.uploads.conftest import Tus, parts

FOLDER = ROOT / "tests" / "clients"
BODY = os.urandom(1_000_001)
needs_node = pytest.mark.skipif(
    not (FOLDER / "node_modules" / "tus-js-client").exists(),
    reason="needs tus-js-client: npm ci in tests/clients",
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "body.bin"
    path.write_bytes(BODY)
    return path


def test_tuspy_in_chunks_with_checksums(proxy: str, file: Path, home: Path) -> None:
    client = TusClient(f"{proxy}/data/uploads/")
    metadata = {"path": "home/new/a%20b.bin", "modified": "1500000000"}
    with open(file, "rb") as body:
        client.uploader(
            file_stream=body, chunk_size=300_000, metadata=metadata, upload_checksum=True
        ).upload()
    assert (home / "new/a b.bin").read_bytes() == BODY
    assert (home / "new/a b.bin").stat().st_mtime == 1500000000


def test_tuspy_resumes(proxy: str, file: Path, home: Path) -> None:
    client = TusClient(f"{proxy}/data/uploads/")
    with open(file, "rb") as body:
        first = client.uploader(
            file_stream=body, chunk_size=300_000, metadata={"path": "home/new/a"}
        )
        first.upload(stop_at=300_000)
        assert len(parts(home / "new")) == 1
        again = client.uploader(file_stream=body, chunk_size=300_000, url=first.url)
        assert again.offset == 300_000
        again.upload()
        assert (home / "new/a").read_bytes() == BODY
        assert client.uploader(file_stream=body, url=first.url).offset == len(BODY)


def test_tuspy_without_a_path_is_told(proxy: str, file: Path) -> None:
    client = TusClient(f"{proxy}/data/uploads/")
    with open(file, "rb") as body, pytest.raises(TusCommunicationError) as found:
        client.uploader(file_stream=body).upload()
    assert found.value.status_code == 422
    assert b'"field": "path"' in found.value.response_content


def upload(proxy: str, file: Path, abort_after: int = 2**40, **options: Any) -> str:
    """Upload with tus-js-client; returns the upload's URL."""
    options = {"metadata": {"path": "home/new/a"}, **options}
    done = subprocess.run(
        ["node", "tus.mjs", f"{proxy}/data/uploads/", file, json.dumps(options), str(abort_after)],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


CHUNKS: dict[str, Any] = {"chunkSize": 100_000}


@needs_node
@pytest.mark.parametrize(
    "options",
    [
        {},
        CHUNKS,
        {"uploadDataDuringCreation": True},
        {"uploadDataDuringCreation": True, **CHUNKS},
        {"overridePatchMethod": True, **CHUNKS},
        # With smaller chunks, 4.3.1 does not end its own stream, whatever the server answers.
        {"stream": True, "uploadLengthDeferred": True, "chunkSize": 2_000_000},
        {"parallelUploads": 2},
        {"parallelUploads": 5, **CHUNKS},
        {"parallelUploads": 2, "metadataForPartialUploads": {"path": "home/storage/data/a"}},
        {"parallelUploads": 2, "uploadDataDuringCreation": True, "overridePatchMethod": True},
    ],
    ids=lambda options: "-".join(options) or "default",
)
def test_tus_js_client(
    proxy: str, file: Path, home: Path, tus: Tus, options: dict[str, Any]
) -> None:
    url = upload(proxy, file, **options)
    assert (home / "new/a").read_bytes() == BODY
    assert parts(home) == []
    found = tus.head(url.removeprefix(proxy))
    assert found.headers["Upload-Offset"] == found.headers["Upload-Length"] == str(len(BODY))


@needs_node
@pytest.mark.parametrize("parallel", [1, 3])
def test_tus_js_client_goes_on_after_an_abort(
    proxy: str, file: Path, home: Path, parallel: int
) -> None:
    upload(proxy, file, 300_000, parallelUploads=parallel, **CHUNKS)
    assert (home / "new/a").read_bytes() == BODY
    assert parts(home) == []


@needs_node
@pytest.mark.parametrize("size", [0, 1, 2])
def test_tus_js_client_with_more_parts_than_bytes(
    proxy: str, tmp_path: Path, home: Path, size: int
) -> None:
    (tmp_path / "small").write_bytes(b"xy"[:size])
    upload(proxy, tmp_path / "small", parallelUploads=3)
    assert (home / "new/a").read_bytes() == b"xy"[:size]
