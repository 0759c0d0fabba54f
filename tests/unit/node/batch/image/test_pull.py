"""Pulling by Apptainer: what it is given, what is said when it fails, what is left afterwards."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from portal.node.batch.image import ImageError
from portal.node.batch.image.pull import Limits, image_of, saved_login
from portal.node.batch.image.registry import Login
from portal.node.common.reference import parse
from tests.support.registries import FakeRegistry
from tests.unit.node.batch.image.conftest import make_sif

LOGIN = Login("team", "s3cret: $x")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("APPTAINER_BIND", "/etc")
    return tmp_path


def apptainer(home: Path, body: str) -> list[str]:
    """A program in the place of Apptainer; $target is the file that it is to create."""
    program = home / "apptainer"
    text = f"#!/bin/sh\nfor word; do target=$source; source=$word; done\n{body}\n"
    program.write_text(text)
    program.chmod(0o755)
    (home / "good.sif").write_bytes(make_sif())
    return [str(program)]


def pull(
    server: FakeRegistry, home: Path, body: str, *, login: Login | None = None, max_mb: int = 1
) -> tuple[bytes, list[str]]:
    """The image that was pulled, and what was told meanwhile."""
    told: list[str] = []
    limits = Limits(str(home / "cache"), max_mb, 10, [server.host])
    wanted = parse(f"docker://{server.host}/team/tool:1")
    image, lock = image_of(wanted, login, limits, apptainer(home, body), told.append)
    found = os.pread(image, 1 << 20, 0)
    os.close(image)
    os.close(lock)
    return found, told


def refusal(server: FakeRegistry, home: Path, body: str, max_mb: int = 1) -> str:
    with pytest.raises(ImageError) as error:
        pull(server, home, body, max_mb=max_mb)
    left = [path.name for path in (home / "cache").glob("[!.]*")]
    assert left == []
    return str(error.value).replace(server.host, "HOST")


GOOD = 'cp "$HOME/good.sif" "$target"'


def test_it_is_pulled_by_its_digest_and_kept(server: FakeRegistry, home: Path) -> None:
    digest = server.image("1")
    show = 'echo "$@" > "$HOME/words"; env > "$HOME/env"; '
    found, told = pull(server, home, show + GOOD)
    assert found == make_sif()
    assert told[0] == f"Asking {server.host} for team/tool"
    assert told[1] == f"Pulling docker://{server.host}/team/tool:1"
    words = (home / "words").read_text().split()
    assert words[:2] == ["pull", "--no-https"]
    assert words[-1] == f"docker://{server.host}/team/tool@{digest}"
    assert "APPTAINER_BIND" not in (home / "env").read_text()
    assert pull(server, home, "exit 1")[0] == make_sif()


def test_a_login_is_in_a_file_only_and_deleted_with_it(server: FakeRegistry, home: Path) -> None:
    server.image("1")
    show = 'cat "$APPTAINER_CONFIGDIR/docker-config.json" > "$HOME/seen"; env > "$HOME/env"; '
    pull(server, home, show + 'echo "$@" >> "$HOME/env"; ' + GOOD, login=LOGIN)
    auth = json.loads((home / "seen").read_text())["auths"][server.host]["auth"]
    assert base64.b64decode(auth).decode() == "team:s3cret: $x"
    shown = (home / "env").read_text()
    assert "s3cret" not in shown and auth not in shown
    (home / "seen").unlink()
    kept = [path for path in (home / "cache").rglob("*") if path.is_file()]
    assert not any(auth.encode() in path.read_bytes() for path in kept)


def test_what_apptainer_says_is_said_in_its_words(server: FakeRegistry, home: Path) -> None:
    server.image("1")
    text = refusal(server, home, 'echo "FATAL:   While pulling: no such thing" >&2; exit 255')
    name = "docker://HOST/team/tool:1"
    assert text == f"Apptainer could not pull {name}: While pulling: no such thing"
    text = refusal(server, home, 'echo "write x: disk quota exceeded" >&2; exit 255')
    assert text.endswith("your home directory may be full")
    assert refusal(server, home, "exit 3").endswith("it gave no reason")


def test_sizes_are_bounded_before_and_while_pulling(server: FakeRegistry, home: Path) -> None:
    server.image("1", size=3 << 20)
    text = refusal(server, home, GOOD, max_mb=2)
    assert text.startswith("docker://HOST/team/tool:1 has 3 MiB compressed")
    server.image("1")
    bomb = (
        'head -c 3000000 /dev/zero > "$target" 2> "$HOME/error"; code=$?; cat "$HOME/error" >&2; '
    )
    text = refusal(server, home, bomb + "exit $code", max_mb=2)
    assert "MiB permitted here" in text or "could not pull" in text


def test_what_is_no_image_in_the_end_is_not_kept(server: FakeRegistry, home: Path) -> None:
    server.image("1")
    assert "is not an Apptainer image" in refusal(server, home, 'echo x > "$target"')


def test_a_login_of_apptainers_own_is_used(home: Path) -> None:
    assert saved_login("registry.example.org") is None
    (home / ".apptainer").mkdir()
    content = {"auths": {"registry.example.org": {"auth": Login("a", "b:c").basic}}}
    (home / ".apptainer" / "docker-config.json").write_text(json.dumps(content))
    found = saved_login("registry.example.org")
    assert found is not None
    assert (found.user, found.password) == ("a", "b:c")
    (home / ".apptainer" / "docker-config.json").write_text('{"auths": []}')
    assert saved_login("registry.example.org") is None
