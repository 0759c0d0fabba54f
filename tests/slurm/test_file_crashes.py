"""Everything on the way of files is killed in the middle of twenty uploads: all of them go on."""

from __future__ import annotations

import base64
import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for
from tests.support.cluster_file_servers import send_request
from tests.support.open_apps import Killer

UPLOADS = 20
SIZE = 6 << 20
PIECE = 192 << 10
"""So small that an upload takes longer than all kills."""
PATIENCE = 90.0
FOLDER = "storage/crashes"


@dataclass
class Upload:
    """One upload by tus 1.0, as tus-js-client does it: after each error it asks for the offset."""

    api: Api
    name: str
    data: bytes
    retries: int = 0
    failure: str = ""
    url: str = field(default="")

    def run(self) -> None:
        """Upload it; a failure is noted."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                self.url = self.url or self._create()
                if self._go_on():
                    return
            except requests.RequestException:
                pass
            self.retries += 1
            time.sleep(0.3)
        self.failure = "it did not go on in time"

    def _send(self, method: str, url: str, **options: Any) -> requests.Response:
        headers = {"Tus-Resumable": "1.0.0", **options.pop("headers", {})}
        return send_request(self.api, method, url, headers=headers, **options)

    def _create(self) -> str:
        where = base64.b64encode(f"{FOLDER}/{self.name}".encode()).decode()
        headers = {"Upload-Length": str(len(self.data)), "Upload-Metadata": f"path {where}"}
        answer = self._send("POST", "/data/uploads/", headers=headers)
        answer.raise_for_status()
        return answer.headers["Location"]

    def _go_on(self) -> bool:
        answer = self._send("HEAD", self.url)
        if answer.status_code == 404:  # the end was reached, and its answer was lost
            return True
        answer.raise_for_status()
        offset = int(answer.headers["Upload-Offset"])
        while offset < len(self.data):
            piece = self.data[offset : offset + PIECE]
            answer = self._send(
                "PATCH",
                self.url,
                data=piece,
                headers={
                    "Upload-Offset": str(offset),
                    "Content-Type": "application/offset+octet-stream",
                },
            )
            answer.raise_for_status()
            offset = int(answer.headers["Upload-Offset"])
            time.sleep(0.25)  # a slow line, so that kills meet them in the middle
        return True


@pytest.fixture
def folder(cluster: Cluster) -> Iterator[str]:
    """A storage folder of alice's."""
    cluster.shell("login", f"mkdir -p ~/{FOLDER}", user="alice")
    yield f"/home/alice/{FOLDER}"
    cluster.shell("login", f"rm -rf ~/{FOLDER}", user="alice")


def sums(cluster: Cluster, folder: str) -> dict[str, str]:
    """SHA-256 of every file under a final name."""
    script = f"cd {folder} && find . -type f ! -name '.slipway-*' -exec sha256sum {{}} +"
    lines = cluster.shell("login", script, user="alice").splitlines()
    return {
        name.removeprefix("./"): digest for digest, name in (line.split(None, 1) for line in lines)
    }


def test_twenty_uploads_survive_kills_of_everything(
    cluster: Cluster, alice: Api, folder: str
) -> None:
    chance = random.Random(16)
    uploads = [Upload(alice, f"{number}.bin", chance.randbytes(SIZE)) for number in range(UPLOADS)]
    assert send_request(alice, "GET", "/data/files/home/.profile").status_code in (200, 404)
    whole = {one.name: hashlib.sha256(one.data).hexdigest() for one in uploads}
    threads = [threading.Thread(target=one.run) for one in uploads]
    kills: list[tuple[str, Callable[[], object]]] = [
        ("portal", Killer(cluster, "web").strike),
        ("HAProxy", Killer(cluster, "haproxy").strike),
        ("file server", lambda: cluster.shell(
            "login", "pkill -9 -u alice -f '[f]ile-server'", user="alice")),
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for what, kill in kills:
        time.sleep(1.5)
        kill()
        early = sums(cluster, folder)
        assert early.items() <= whole.items(), f"a half file after a kill of {what}"
    for thread in threads:
        thread.join(PATIENCE)
    assert [one.failure for one in uploads if one.failure] == []
    assert sum(one.retries for one in uploads) >= UPLOADS, "the kills met uploads"
    wait_for("all files", lambda: sums(cluster, folder) == whole, 20)
    left = cluster.shell("login", f"find {folder} -name '.slipway-*'", user="alice")
    assert left == "", "nothing half-done is left over"
