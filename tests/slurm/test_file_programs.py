"""Programs that know nothing of the portal use files whose server has ended, or ends meanwhile."""

from __future__ import annotations

import hashlib
import io
import itertools
import random
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from tests.support.client import Api
from tests.support.cluster import Cluster, authority, wait_for
from tests.support.cluster_file_servers import end_file_servers, send_request

FOLDER = "storage/programs"
NIGHTS = 3
SIZE = 3 << 20
KILLS = 12
PAUSES = (0.3, 1.5)
"""Seconds between two kills."""


@pytest.fixture
def folder(cluster: Cluster) -> Iterator[str]:
    """A storage folder of alice's."""
    cluster.shell("login", f"mkdir -p ~/{FOLDER}", user="alice")
    yield f"/home/alice/{FOLDER}"
    cluster.shell("login", f"rm -rf ~/{FOLDER}", user="alice")


def sum_of(cluster: Cluster, path: str) -> str:
    return cluster.shell("login", f"sha256sum {path}", user="alice").split()[0]


@pytest.mark.parametrize("login", ["bearer", "basic"])
def test_a_nightly_upload_finds_its_file_server_ended(
    cluster: Cluster, alice: Api, folder: str, tmp_path: Path, login: str
) -> None:
    """curl -f -T, which follows no redirect and tries once; a password needs TLS or loopback."""
    token = str(alice.http.headers["Authorization"]).split()[1]
    words = ["-u", f"alice:{token}"] if login == "basic" else ["--oauth2-bearer", token]
    if ca := authority():
        words += ["--cacert", str(ca)]
    chance = random.Random(login)
    for night in range(NIGHTS):
        end_file_servers(cluster, "alice")
        file = tmp_path / "night.bin"
        file.write_bytes(chance.randbytes(SIZE))
        url = f"{cluster.url}/data/files/{FOLDER}/night.bin"
        done = subprocess.run(
            ["curl", "-sS", "-f", "-T", file, *words, url],
            capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (night, done.stderr)
        expected = hashlib.sha256(file.read_bytes()).hexdigest()
        assert sum_of(cluster, f"{folder}/night.bin") == expected, night


# The server is killed while files are saved, copied and unpacked


def contents(number: int) -> bytes:
    """The n-th version of a file."""
    return random.Random(number).randbytes(400_000) + number.to_bytes(4, "big")


def archive() -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name in ("tree/one", "tree/deep/two", "tree/three"):
            member = tarfile.TarInfo(name)
            member.size = len(contents(0))
            tar.addfile(member, io.BytesIO(contents(0)))
    return written.getvalue()


class Actors:
    """Programs that go on whatever happens to the server."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.ended = threading.Event()
        self.saved = {"saved": 0, "linked": 0}
        """The versions of files that were acknowledged last."""
        self.counts = dict.fromkeys(("saves", "copies", "archives"), 0)

    def save(self, name: str) -> None:
        for number in itertools.count(1):
            if self.ended.is_set():
                return
            if self._is_done("PUT", f"/data/files/{FOLDER}/{name}", data=contents(number)):
                self.saved[name] = number
                self.counts["saves"] += 1

    def copy(self) -> None:
        self._operate("copies", f"{FOLDER}/saved", f"{FOLDER}/copies", "copy", "replace")

    def unpack(self) -> None:
        self._operate("archives", f"{FOLDER}/tree.tar", f"{FOLDER}/trees", "unpack", "rename")

    def _operate(self, what: str, item: str, to: str, kind: str, conflict: str) -> None:
        order = {"kind": kind, "items": [item], "to": to, "on_conflict": conflict}
        while not self.ended.is_set():
            if self._is_done("POST", "/api/v1/files/operations", json=order):
                self.counts[what] += 1

    def _is_done(self, method: str, path: str, **body: object) -> bool:
        with suppress(requests.RequestException):
            if send_request(self._api, method, path, **body).status_code < 300:
                return True
        time.sleep(0.1)
        return False


_LOOK = """
cd {folder} && sha256sum saved linked linked.too copies/saved
for tree in trees/*; do echo $(cat $tree/one $tree/deep/two $tree/three | sha256sum) $tree; done
"""


def test_kills_leave_no_half_file_and_lose_none(cluster: Cluster, alice: Api, folder: str) -> None:
    """One file is replaced, the other one has two names and is written in place."""
    script = f"cd {folder} && mkdir copies trees && touch linked && ln linked linked.too"
    cluster.shell("login", script, user="alice")
    actors = Actors(alice)
    for name in ("saved", "linked", "copies/saved"):
        url = f"/data/files/{FOLDER}/{name}"
        assert send_request(alice, "PUT", url, data=contents(0)).status_code < 300
    url = f"/data/files/{FOLDER}/tree.tar"
    assert send_request(alice, "PUT", url, data=archive()).status_code == 201
    work: list[Callable[[], None]] = [
        lambda: actors.save("saved"), lambda: actors.save("linked"), actors.copy, actors.unpack,
    ]  # fmt: skip
    chance = random.Random(7)
    with ThreadPoolExecutor(len(work)) as threads:
        running = [threads.submit(each) for each in work]
        for _ in range(KILLS):
            time.sleep(chance.uniform(*PAUSES))
            end_file_servers(cluster, "alice")
        actors.ended.set()
    for each in running:
        each.result()
    assert send_request(alice, "GET", f"/data/files/{FOLDER}/saved").status_code == 200
    assert all(count > 3 for count in actors.counts.values()), actors.counts
    check(cluster, folder, actors)


def check(cluster: Cluster, folder: str, actors: Actors) -> None:
    highest = max(actors.saved.values()) + KILLS + 2
    versions = {hashlib.sha256(contents(n)).hexdigest(): n for n in range(highest)}
    tree = hashlib.sha256(contents(0) * 3).hexdigest()

    def no_parts() -> bool:
        script = f"find {folder} -name '.slipway-*.part' -size +8M -o -name '.slipway-*-*'"
        return cluster.shell("login", script, user="alice") == ""

    wait_for("parts are removed", no_parts, 30)
    lines = cluster.shell("login", _LOOK.format(folder=folder), user="alice").splitlines()
    sums = {path: digest for digest, *_, path in map(str.split, lines)}
    trees = {path: digest for path, digest in sums.items() if path.startswith("trees/")}
    assert set(trees.values()) == {tree}, trees
    assert sums["linked"] == sums["linked.too"], "both names have the same file"
    for name, number in actors.saved.items():
        assert versions.get(sums[name], -1) >= number, f"{name} has lost what was acknowledged"
    assert sums["copies/saved"] in versions
