"""`slipway apply` with a real HAProxy; supervisorctl is a program that notes its arguments."""

from __future__ import annotations

import os
import shutil
import socketserver

import pytest

from portal.cli.apply import command, files, processes
from portal.cli.apply.account import run_as_owner
from portal.cli.main import main
from tests.unit.cli.apply.site import Site
from tests.unit.web.front import free_ports

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")


def test_only_what_must_be_is_restarted(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    running = site.process()
    assert site.apply() == 0
    assert "runs as the settings say" in capsys.readouterr().out
    assert (site.asked(), site.process()) == ([], running)

    site.set(contact="help@example.org")  # nothing of HAProxy's
    assert site.apply("--dry-run") == 0
    assert "slipway-web: reload" in capsys.readouterr().out
    assert site.asked() == []
    assert site.apply() == 0
    assert site.asked() == ["reload-web", "restart worker"]
    assert site.process() == running

    before = site.haproxy.read_text()
    site.set(contact="help@example.org", requests_at_once=321)
    assert site.apply() == 0
    shown = capsys.readouterr().out
    assert "sc0_conn_cur gt 321" in shown
    assert "slipway-proxy: reload" in shown
    assert site.asked() == ["reload-web", "restart worker"]
    assert site.process() != running
    assert (site.folder / "haproxy.cfg.previous").read_text() == before
    assert site.haproxy.stat().st_mode & 0o777 == 0o644
    assert site.apply() == 0
    assert site.asked() == []


def test_each_command_runs_as_the_portals_account_in_a_process_of_its_own(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (command, processes):
        monkeypatch.setattr(module, "run_as_owner", run_as_owner)
    key = site.folder / "state" / "secret_key"
    key.unlink()
    key.mkdir()  # the application cannot start
    running = site.process()
    site.set(requests_at_once=321)
    assert site.apply() == 1
    assert "does not start with these settings" in capsys.readouterr().err
    assert site.process() == running
    assert "gt 321" not in site.haproxy.read_text()


def test_a_renewed_certificate_reloads_haproxy_alone(site: Site) -> None:
    running = site.process()
    server = site.folder / "state" / "ca" / "server.pem"
    server.write_bytes(server.read_bytes() + b"\n")
    assert site.apply() == 0
    assert site.asked() == []
    assert site.process() != running


@pytest.mark.parametrize(
    ("web", "status", "words"),
    [
        ({"lissten": "x"}, 2, "lissten"),
        ({"tls_certificate": "/nowhere.pem"}, 1, "/nowhere.pem"),
        ({"listen": "127.0.0.1:99999"}, 1, "HAProxy refuses"),
    ],
)
def test_what_is_wrong_changes_nothing(
    site: Site, capsys: pytest.CaptureFixture[str], web: dict[str, str], status: int, words: str
) -> None:
    running, before = site.process(), site.haproxy.read_text()
    site.set(**web)
    assert site.apply() == status
    assert words in capsys.readouterr().err
    assert (site.asked(), site.process(), site.haproxy.read_text()) == ([], running, before)
    assert not (site.folder / "haproxy.cfg.previous").exists()


def test_a_port_that_another_program_has_leaves_the_old_process(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """`haproxy -c` does not notice; the reload does, and the files are as they were."""
    running, before = site.process(), site.haproxy.read_text()
    taken = socketserver.TCPServer(("127.0.0.1", free_ports(1)), socketserver.BaseRequestHandler)
    with taken:
        site.set(listen_runners=f"127.0.0.1:{taken.server_address[1]}")
        assert site.apply() == 1
    assert "everything runs as before" in capsys.readouterr().err
    assert site.haproxy.read_text() == before
    assert (site.asked(), site.process()) == ([], running)
    site.set(contact="help@example.org", requests_at_once=321)
    assert site.apply() == 0, "and it can be reloaded again"
    assert site.process() != running


def test_a_process_that_does_not_follow_is_named_and_tried_again(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.set(site_name="Campus")
    site.control('"restart worker"')
    assert site.apply() == 3
    assert "slipway-worker: no such process" in capsys.readouterr().err
    assert site.asked() == ["reload-web", "restart worker"]
    site.control()
    assert site.apply() == 0
    assert site.asked() == ["restart worker"]


def test_a_file_that_cannot_be_written_changes_nothing(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = site.haproxy.read_text()
    site.set(requests_at_once=321)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_copy_owner", full)
    assert site.apply() == 1
    assert "No space left" in capsys.readouterr().err
    monkeypatch.undo()
    assert site.haproxy.read_text() == before
    assert site.asked() == []
    assert not list(site.folder.glob(".haproxy*"))


def test_without_a_supervisor_it_says_what_to_do(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.set("none", requests_at_once=321)
    assert site.apply() == 0
    said = capsys.readouterr().out
    assert "slipway reload-proxy\n    slipway reload-web" in said
    assert "gt 321" in site.haproxy.read_text()
    assert site.asked() == []
    running = site.process()
    assert main(["--config", str(site.config), "reload-proxy"]) == 0
    assert site.process() != running


def test_systemd_gets_its_units_and_keeps_haproxy(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    units, tools = site.folder / "units", site.folder / "tools"
    units.mkdir()
    tools.mkdir()
    for name in ("slipway-web.service", "slipway-proxy.service"):
        (units / name).write_text("[Unit]\n")
    (site.folder / "ctl").rename(tools / "systemctl")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    site.set("systemd")
    assert site.apply("--dry-run") == 0
    assert "slipway-web.service" in capsys.readouterr().out
    status = site.apply()
    if os.geteuid() != 0:
        assert status == 1
        assert "as root" in capsys.readouterr().err
        return
    assert status == 0
    assert [line for line in site.asked() if not line.startswith(("show", "is-active"))] == [
        "daemon-reload",
        "restart slipway-web",
        "restart slipway-worker",
    ]
    assert "holds from its next start" in capsys.readouterr().out
    assert sorted(file.name for file in units.iterdir()) == [
        "slipway-proxy.service",
        "slipway-proxy.service.previous",
        "slipway-web.service",
        "slipway-web.service.previous",
    ]
