"""A session's own image on the node: the container's instructions, its start-up, its end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from portal.node.batch.execute import session
from portal.node.batch.execute.session import IMAGE_WORD, read_words, run
from portal.node.batch.image import ImageError
from portal.node.batch.image.site import SiteFile
from tests.support.paths import ROOT
from tests.support.registries import MANIFEST, blob, registry
from tests.unit.node.batch.image.conftest import make_sif

SPEC = {
    "session": "s1",
    "token": "t" * 20,
    "callback": "https://127.0.0.1:1",
    "callback_ca": "",
    "registry": {"user": "team", "password": "s3cret"},
}
READ = ["sh", "-c", 'cat > "$0"; head -c 32 "$1"; exit 7', "spec", IMAGE_WORD]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.sif").write_bytes(make_sif())
    return tmp_path


def start(
    home: Path,
    command: list[str],
    file: str = "a.sif",
    start_seconds: str = "20",
    more: dict[str, object] | None = None,
) -> subprocess.Popen[str]:
    words = ["--folder", "images", "--file", file, "--max-mb", "1"]
    return start_with(home, [*words, "--start-seconds", start_seconds], command, more)


def start_with(
    home: Path, options: list[str], command: list[str], more: dict[str, object] | None = None
) -> subprocess.Popen[str]:
    words = [*options, "--", *command]
    code = "import ssl; ssl.create_default_context = lambda **_: ssl._create_unverified_context()"
    code += "; from portal.node.batch.main import main; main()"
    child = subprocess.Popen(
        [sys.executable, "-c", code, "node-session", *words],
        cwd=home,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps({**SPEC, **(more or {})}))
    child.stdin.close()
    child.stdin = None
    return child


def test_the_container_gets_its_instructions_without_the_login(home: Path) -> None:
    child = start(home, READ)
    out, error = child.communicate(timeout=30)
    assert (child.returncode, error) == (7, "")
    assert out.startswith("#!/usr/bin/env run-singularity")
    spec = json.loads((home / "spec").read_text())
    assert spec == {name: value for name, value in SPEC.items() if name != "registry"}


def test_a_wrong_image_is_named_and_nothing_started(home: Path) -> None:
    child = start(home, READ, "none.sif")
    assert child.communicate(timeout=30)[1] == "Slipway: there is no file images/none.sif\n"
    assert child.returncode == 70
    assert not (home / "spec").exists()


def test_an_image_of_the_sites_that_the_owner_may_not_start(home: Path) -> None:
    shutil.copyfile(home / "images" / "a.sif", home / "images" / "copy.sif")
    (home / "images" / "link.sif").symlink_to("a.sif")
    id, path = (b"i" * 16).hex(), str(home / "images" / "a.sif")
    reason = "it is not offered to you"
    for name, refused in (
        ("a.sif", [path, "", reason]),
        ("link.sif", [path, "", reason]),
        ("copy.sif", ["/nowhere/image.sif", id, reason]),
    ):
        child = start(home, READ, name, more={"refused_images": [refused]})
        text = f"Slipway: images/{name} is one of the site's images: {reason}\n"
        assert child.communicate(timeout=30)[1] == text
        assert child.returncode == 70
        assert not (home / "spec").exists()


def test_what_is_refused_is_no_instruction_of_the_container(home: Path) -> None:
    refused = [["/nowhere/image.sif", "00" * 16, "it is not offered to you"]]
    child = start(home, READ, more={"refused_images": refused})
    child.communicate(timeout=30)
    assert child.returncode == 7
    assert "refused_images" not in json.loads((home / "spec").read_text())


def test_a_file_in_the_place_of_a_pulled_image_is_looked_at(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = os.open(home / "images" / "a.sif", os.O_RDONLY)
    monkeypatch.setattr(session, "image_of", lambda *_: (image, os.dup(image)))
    options = {"--reference": "docker://registry.example.org/a:1", "--max-mb": "1"}
    options |= {"--cache": "images", "--cache-mb": "1"}
    refused = [SiteFile("/nowhere", (b"i" * 16).hex(), "it is not offered to you")]
    tell: Any = None
    with pytest.raises(ImageError, match="a:1 is one of the site's images: it is not offered"):
        session._image(options, None, refused, "apptainer", tell)


LIES: dict[str, tuple[Any, str]] = {
    "sizes": ({"config": {}, "layers": [{"size": -5}]}, "config.size is not a number of bytes"),
    "nothing": ({"manifests": None}, "manifests is not a list"),
    "deep": (b"[" * 100_000, "it is nested too deeply"),
    "signs": (
        {"manifests": [{**blob(b""), "platform": {"architecture": "x\n\x1b[2J"}}]},
        "manifests[0].platform.architecture has characters",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_odd_answer_of_a_registry_is_one_sentence_of_the_log(home: Path, lie: str) -> None:
    data, words = LIES[lie]
    with registry() as server:
        server.put(MANIFEST, data)
        options = ["--reference", f"docker://{server.host}/team/tool:1", "--insecure", server.host]
        options += ["--max-mb", "1", "--cache", str(home / "cache"), "--cache-mb", "1"]
        child = start_with(home, [*options, "--start-seconds", "20"], READ)
        _, error = child.communicate(timeout=60)
    assert child.returncode == 70
    assert error.startswith(f"Slipway: {server.host} did not answer as a registry does: {words}")
    assert error.removesuffix("\n").isprintable()


def test_a_start_up_that_never_reads_is_ended(home: Path) -> None:
    child = start(home, ["sleep", "1000"], start_seconds="0.5")
    begun = time.monotonic()
    error = child.communicate(timeout=30)[1]
    assert child.returncode == 70
    assert error.startswith("Slipway: the image's own start-up did not end within")
    assert time.monotonic() - begun < 25


def test_a_signal_reaches_the_container(home: Path) -> None:
    script = (
        'trap "echo asked; exit 0" TERM; cat > /dev/null; echo ready; '
        "while ((SECONDS < 90)); do sleep 0.1; done"
    )
    child = start(home, ["bash", "-c", script])
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    assert child.communicate(timeout=30)[0] == "asked\n"
    assert child.returncode == 0


def test_a_signal_during_the_start_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    class Popen(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            os.kill(os.getpid(), signal.SIGTERM)

    handled = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_IGN) for number in handled]
    monkeypatch.setattr(subprocess, "Popen", Popen)
    try:
        assert run(["sleep", "60"], 0, {}, 20) == -signal.SIGTERM
    finally:
        for number, handler in zip(handled, before, strict=True):
            signal.signal(number, handler)


@pytest.mark.parametrize(
    "words", [["--", "x"][:1], ["--what", "1", "--", "x"], ["--max-mb", "--", "x"], ["x"]]
)
def test_words_of_another_version_are_refused(words: list[str]) -> None:
    with pytest.raises(ValueError, match=r"versions of Slipway|is not in list"):
        read_words(words)
