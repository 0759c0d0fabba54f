"""Wrong settings, one a row: each is named, with cause and remedy, and none ends in a traceback.

Those that cannot be loaded at all are in tests/unit/config/test_messages.py.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.unit.cli.checks.conftest import site
from tests.unit.cli.checks.site import Site

__all__ = ["site"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"login__host": "no-such-host.invalid"}, "there is no such name (DNS"),
        ({"login__port": 1}, "nothing listens there (connection refused)"),
        ({"login__known_hosts": "/nope/known_hosts"}, "/nope/known_hosts: No such file"),
        ({"sessions__images": "/srv/nope"}, "MISSING 0 images: there is no folder /srv/nope"),
        ({"sessions__apps": "/srv/nope"}, "MISSING sessions.apps: there is no folder /srv/nope"),
        ({"sessions__site_apps": "/srv/x"}, "MISSING sessions.site_apps: there is no folder"),
        ({"sessions__templates": "/srv/nope"}, "MISSING sessions.templates: there is no folder"),
        ({"sessions__toolkit": "/srv/nope"}, "MISSING sessions.toolkit /srv/nope: No such file"),
        ({"state__directory": "/var/tmp/nope"}, "run `slipway init`"),
        ({"state__database": "postgres://a:secret@b/c"}, "postgres:// is not known; write postg"),
        ({"state__database": "postgresql+pg8000://a:secret@b/c"}, "the driver pg8000 is not"),
        ({"state__database": "slipway.db"}, "state.database is not a database URL"),
        (
            {"state__database": "sqlite:////nope/slipway.db"},
            "/nope/slipway.db: there is no database yet",
        ),
        ({"web__tls_certificate": "/nope.pem"}, "web.tls_certificate /nope.pem: No such file"),
        (
            {"web__public_url": "https://localhost:8080", "web__apps_host": "127.0.0.1"},
            "WARNING public_url is https, but tls_certificate is not set",
        ),
        (
            {"sessions__callback": "https://no-such-host.invalid:8443"},
            "no-such-host.invalid is not known to this machine's name service",
        ),
        (
            {"sessions__callback": "https://no-such-host.invalid:8443"},
            "is for localhost, not for no-such-host.invalid",
        ),
        ({"sessions__callback": "https://localhost:9443"}, "callback has port 9443, web.listen_r"),
        ({"sessions__callback": "https://10.1.2.3:8443"}, "is for localhost, not for 10.1.2.3"),
        ({"sessions__callback": "https://localhost:8443"}, "is this machine's loopback"),
        ({"web__public_url": "localhost"}, "web.public_url: must begin with https://"),
    ],
)
def test_it_is_named(site: Site, changes: dict[str, object], words: str) -> None:
    said = site.check(**changes)
    assert words in said
    assert "secret" not in said


def test_only_the_first_failed_connection_is_reported(site: Site) -> None:
    said = site.check()
    assert said.count("does not answer") == 0
    assert said.rstrip().splitlines()[-1].startswith("MISSING")
    assert "squeue" not in said


def test_a_login_node_that_says_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.adapters.ssh.diagnosis.CONNECT_SECONDS", 0.2)
    monkeypatch.setattr("portal.adapters.ssh.connect.CONNECT_SECONDS", 0.2)
    monkeypatch.setattr("portal.adapters.ssh.diagnosis._SECONDS", 0.2)
    known = Path(str(site.settings["login"]["known_hosts"]))
    known.write_text(f"127.0.0.1 ssh-ed25519 {KEY}\n")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        said = site.check(login__port=silent.getsockname()[1])
    assert "what answers there does not speak SSH" in said


KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIJ9d0DXMYyJB1SoTzTHOYhPn4wdZUJe1DLb7e5CqPFHi"


def test_a_password_that_everybody_reads(site: Site) -> None:
    site.settings["state"]["database"] = "postgresql+psycopg://slipway:secret@db/slipway"
    site.write()
    site.file.chmod(0o644)
    assert f"chmod 640 {site.file}" in site.check()
    site.file.chmod(0o640)
    assert "chmod" not in site.check()


def test_run_as_root_and_as_another_account(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert "WARNING this runs as root" in site.check()
    monkeypatch.setattr(os, "getuid", lambda: 4321)
    assert "belongs to another account (UID" in site.check()


def test_a_run_folder_that_is_missing(site: Site) -> None:
    run = site.folder / "run"
    for name in run.iterdir():
        name.unlink()
    run.rmdir()
    assert f"{run} is not there: install -d -m 700" in site.check()


def test_unknown_keys_are_corrected(site: Site) -> None:
    assert "web.lissten: there is no such setting; did you mean listen?" in site.check(
        web__lissten=1
    )
