"""Apptainer: its commands, its output and its failures, with a program in its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.adapters.images.apptainer import EPOCH, Apptainer
from portal.core.images.names import ImageError
from tests.support.sif import sif

pytest.importorskip("spython")
PROGRAM = """#!/bin/sh
echo "$(basename "$0") $* in $PWD" >> {log}
env | grep -E '^(APPTAINER|SOURCE_DATE)' | sort > {log}.env
case "$1 $2" in
    "--version "*) echo "apptainer version 1.4.5" ;;
    "sif new") cp {log}.sif "$3" ;;
    "sif add") ;;
    *) {action} ;;
esac
"""


class Place:
    """A folder with a program named apptainer that notes how it was called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.shown: list[str] = []
        self.apptainer = Apptainer(self.shown.append, ids=False, site_ca=Path("/run/site/ca.crt"))

    def does(self, action: str) -> None:
        for name in ("apptainer", "mksquashfs", "unshare"):
            program = self.folder / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(PROGRAM.format(log=self.log, action=action))
            program.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return [c for c in self.log.read_text().splitlines() if "--version" not in c]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    for name in ("SOURCE_DATE_EPOCH", "APPTAINER_CACHEDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy.example.org:3128")
    return Place(tmp_path)


def test_a_definition_is_built_with_arguments_and_the_sites_environment(place: Place) -> None:
    place.does("echo building; echo warning >&2; mkdir -p image")
    work, recipe = place.folder, place.folder
    place.apptainer.unpack("x.def", work / "image", True, {"base": "/b", "gpu": "1"}, recipe)
    assert place.calls == [
        "apptainer build --warn-unused-build-args --fakeroot --build-arg base=/b --build-arg gpu=1 "
        f"--sandbox {work}/image x.def in {recipe}"
    ]
    assert sorted(place.shown) == ["building", "warning"]
    assert (work / "log.env").read_text().splitlines() == [
        "APPTAINERENV_PIP_CERT=/run/site/ca.crt",
        f"APPTAINERENV_SOURCE_DATE_EPOCH={EPOCH}",
        "APPTAINERENV_SSL_CERT_FILE=/run/site/ca.crt",
        "APPTAINERENV_http_proxy=http://proxy.example.org:3128",
        f"APPTAINER_CACHEDIR={work}/cache",
        f"APPTAINER_TMPDIR={work}",
        f"SOURCE_DATE_EPOCH={EPOCH}",
    ]


def test_addresses_get_readable_files(place: Place) -> None:
    place.does("mkdir -p image")
    address = "docker://registry.example.org/tool:1"
    place.apptainer.unpack(address, place.folder / "image", False, {}, place.folder)
    (call,) = place.calls
    assert call.startswith("apptainer build --fix-perms --sandbox")


def test_a_failure_has_the_last_words(place: Place) -> None:
    place.does("for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do echo l$n; done; exit 9")
    with pytest.raises(ImageError) as caught:
        place.apptainer.unpack("x", place.folder / "image", False, {}, place.folder)
    lines = str(caught.value).splitlines()
    assert lines[0] == "apptainer build failed with status 9:"
    assert [line.strip() for line in lines[1:]] == [f"l{number}" for number in range(2, 17)]


def test_no_image_is_a_failure(place: Place) -> None:
    place.does("true")
    with pytest.raises(ImageError, match="failed with status 0"):
        place.apptainer.unpack("x", place.folder / "image", False, {}, place.folder)


def test_a_file_is_packed_without_times(place: Place) -> None:
    place.does('touch "$2"')
    (place.folder / "log.sif").write_bytes(sif(b"data", id=b"1" * 16))
    root, file = place.folder / "image", place.folder / "image.sif"
    place.apptainer.pack(root, file, False, "-comp zstd -b 64K")
    first = file.read_bytes()
    (place.folder / "log.sif").write_bytes(sif(b"data", id=b"2" * 16, time=99))
    place.apptainer.pack(root, file, False, "-comp zstd -b 64K")
    assert file.read_bytes() == first
    mksquashfs = place.calls[0]
    assert "-noappend -no-progress -quiet -comp zstd -b 64K" in mksquashfs
    assert ("-all-root" in mksquashfs) == (os.geteuid() != 0)
    kinds = [call.split("--datatype ")[1][0] for call in place.calls if "--datatype" in call]
    assert kinds == ["1", "6", "4"] * 2


def test_a_test_runs_contained(place: Place) -> None:
    place.does("exit 3")
    home = place.folder
    binds = [f"{home}:/test.sh:ro"]
    assert place.apptainer.test(Path("/images/image.sif"), home, binds) == 3
    (call,) = place.calls
    assert call.startswith("apptainer --silent exec ")
    assert (
        f"--containall --home {home}:/home/test --pwd /home/test --bind {home}:/test.sh:ro" in call
    )
    assert call.endswith(f"/images/image.sif sh /test.sh in {home}")


def test_the_version(place: Place) -> None:
    place.does("true")
    assert place.apptainer.version() == "1.4.5"


def test_a_missing_program_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(place.folder))
    with pytest.raises(ImageError, match="apptainer: No such file"):
        place.apptainer.version()
