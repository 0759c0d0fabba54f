"""`slipway apply` where something else runs than what was applied last."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from tests.unit.cli.apply.site import Site

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")


def test_another_gunicorn_is_restarted(site: Site) -> None:
    """A reload would go on with the one that runs."""
    file = site.folder / "state" / "applied.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"gunicorn": "gunicorn 1.0"}))
    assert site.apply() == 0
    assert site.asked() == ["restart web"]
    assert site.apply() == 0
    assert site.asked() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="systemd obeys root")
@pytest.mark.parametrize("known", [True, False])
def test_another_unit_of_a_package_restarts_gunicorn(
    site: Site, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """Its units are not in service.units; nothing is known of a portal that systemd has started."""
    tools, file = site.folder / "tools", site.folder / "state" / "applied.json"
    tools.mkdir()
    (site.folder / "ctl").rename(tools / "systemctl")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    site.set("systemd")
    assert site.apply() == 0
    site.asked()
    site.set("systemd", contact="help@example.org")
    assert site.apply() == 0
    assert "reload-web" in site.asked()
    now = json.loads(file.read_text())
    if known:
        other = now["gunicorn"].rpartition(" ")[0] + " 0123456789abcdef"
        file.write_text(json.dumps(now | {"gunicorn": other}))
    else:
        file.unlink()
    assert site.apply() == 0
    assert "restart slipway-web" in site.asked()
    assert site.apply() == 0
    assert "restart slipway-web" not in site.asked()


def test_what_does_not_run_is_started(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    file = site.folder / "ctl"
    stopped = '[ "$1 $2" != "status web" ] || exit 3\n'
    file.write_text(file.read_text() + stopped)
    assert site.apply("--dry-run") == 0
    assert "slipway-web: start" in capsys.readouterr().out.splitlines()
    assert site.apply() == 0
    assert site.asked() == ["restart web"]
    site.control()
    assert site.apply() == 0
    assert site.asked() == []


def test_processes_that_were_started_since_are_taken_for_another_release(site: Site) -> None:
    """A rollback starts them with a release that writes nothing down."""
    file = site.folder / "ctl"
    plain = file.read_text()
    for number, asked in ((os.getpid(), True), (os.getpid(), False), (os.getppid(), True)):
        file.write_text(f'{plain}[ "$1" != pid ] || echo {number}\n')
        assert site.apply() == 0
        assert site.asked() == (["reload-web", "restart worker"] if asked else [])
