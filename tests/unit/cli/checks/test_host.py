"""HAProxy's version and its opinion of the rendered configuration."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from portal.cli.checks.host import check_haproxy, check_hub
from portal.config import Settings

REFUSES = """\
#!/bin/sh
[ "$1" = -v ] && { echo "HAProxy version 3.0.11 2026/11/18"; exit; }
echo "[NOTICE]   (1) : haproxy version is 3.0.11" >&2
echo "[ALERT]    (1) : config : parsing [$3:7] : cannot open the file '/nope.pem'." >&2
exit 1
"""


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("#!/bin/sh\necho 'HAProxy version 2.4.22 2023/02/14'\n", "version 2.4.22; 3.0 or newer"),
        ("#!/bin/sh\necho nonsense\n", "an unknown version"),
        (REFUSES, "[haproxy.cfg:7] : cannot open the file '/nope.pem'"),
        ("", "not installed on this machine"),
    ],
)
def test_what_is_said_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, words: str
) -> None:
    if program:
        (tmp_path / "haproxy").write_text(program)
        (tmp_path / "haproxy").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin" if program else str(tmp_path))
    found = list(check_haproxy(Settings()))
    assert not found[-1].ok
    assert words in found[-1].text


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="no HAProxy on this machine")
def test_the_real_one_refuses_a_missing_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.cli.checks.host.OLDEST_HAPROXY", (1, 0))
    web = {"public_url": "https://localhost:8080", "tls_certificate": "/nope.pem"}
    found = list(check_haproxy(Settings.model_validate({"web": web})))
    assert not found[-1].ok
    assert "HAProxy refuses the rendered configuration: " in found[-1].text


@pytest.mark.parametrize(
    ("hub", "oidc", "words"),
    [
        ({}, {}, ""),
        ({"listen": ":8090"}, {}, "WARNING hub.front_end_token_file is not set"),
        ({"listen": ":8090"}, {"issuer": "https://id.example.org", "password": False}, ""),
        ({"listen": ":8090", "front_end_token_file": "{folder}/token"}, {}, ""),
        (
            {"front_end_token_file": "{folder}/shown"},
            {},
            "MISSING hub.front_end_token_file {folder}",
        ),
        ({"front_end_token_file": "{folder}/gone"}, {}, "{folder}/gone: No such file"),
    ],
)
def test_what_is_said_of_jupyterhubs_proof(
    tmp_path: Path, hub: dict[str, str], oidc: Mapping[str, object], words: str
) -> None:
    for name, mode in (("token", 0o400), ("shown", 0o440)):
        (tmp_path / name).write_text(f"{'a' * 64}\n")
        (tmp_path / name).chmod(mode)
    named = {name: value.format(folder=tmp_path) for name, value in hub.items()}
    client = {"client_id": "x"} if oidc else {}
    settings = Settings.model_validate({"hub": named, "oidc": {**oidc, **client}})
    found = "\n".join(f"{one.word} {one.text}" for one in check_hub(settings))
    assert words.format(folder=tmp_path) in found
    assert bool(found) is bool(words)
