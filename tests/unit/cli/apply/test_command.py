"""`slipway apply` with a real HAProxy; supervisorctl is a program that notes its arguments."""

from __future__ import annotations

import io
import json
import os
import shutil
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from portal.adapters.haproxy.map_files import CANARY
from portal.adapters.haproxy.runtime_api import Haproxy
from portal.cli.apply import command, files, processes
from portal.cli.apply.account import Done, run_as_owner
from portal.cli.main import main
from portal.config import Settings
from portal.errors import Unavailable
from tests.paths import ROOT
from tests.unit.web.front import free_ports

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

CONTROL = """\
#!/bin/sh
echo "$*" >> {notes}
case "$1 ${{2:-}}" in {fails}) echo "no such process"; exit 1 ;; esac
"""


class _Health(BaseHTTPRequestHandler):
    """Stands in for gunicorn."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def address_string(self) -> str:
        return "-"

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Web(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


@dataclass
class Site:
    """A portal's host: settings, a real HAProxy, and supervisord's command."""

    folder: Path
    port: int

    @property
    def config(self) -> Path:
        """The settings file."""
        return self.folder / "slipway.toml"

    @property
    def haproxy(self) -> Path:
        """HAProxy's configuration."""
        return self.folder / "haproxy.cfg"

    def set(self, supervisor: str = "supervisord", **web: object) -> None:
        """Write the settings."""
        first = self.port
        keys = {
            "public_url": f"http://localhost:{first}",
            "listen": f"127.0.0.1:{first}",
            "listen_runners": f"127.0.0.1:{first + 1}",
            "apps_ports": [first + 2, first + 3],
            "ssh_ports": [first + 4, first + 5],
        }
        lines = ["[web]", *(f"{key} = {json.dumps(it)}" for key, it in (keys | web).items())]
        place = {name: json.dumps(str(self.folder / name)) for name in ("state", "run", "ctl")}
        lines += [
            f"[state]\ndirectory = {place['state']}\nrun = {place['run']}",
            f"[sessions]\ntemplates = {json.dumps(str(ROOT / 'templates'))}",
            f"[service]\nsupervisor = '{supervisor}'\nsupervisorctl = {place['ctl']}",
            f"haproxy_config = {json.dumps(str(self.haproxy))}",
            f"units = {json.dumps(str(self.folder / 'units'))}",
        ]
        self.config.write_text("\n".join(lines) + "\n")

    def control(self, fails: str = "nothing") -> None:
        """Have supervisorctl fail for these words."""
        file = self.folder / "ctl"
        file.write_text(CONTROL.format(notes=self.folder / "notes", fails=fails))
        file.chmod(0o755)

    def apply(self, *options: str) -> int:
        """Run the command."""
        return main(["--config", str(self.config), "apply", *options])

    def asked(self) -> list[str]:
        """What supervisorctl was asked to change, once."""
        notes = self.folder / "notes"
        lines = notes.read_text().splitlines() if notes.exists() else []
        notes.unlink(missing_ok=True)
        return [line for line in lines if not line.startswith("status")]

    def run(self) -> None:
        """Note that gunicorn's workers are to be replaced."""
        with (self.folder / "notes").open("a") as notes:
            notes.write("reload-web\n")

    def process(self) -> str:
        """The newest process of HAProxy's."""
        return Haproxy(str(self.folder / "run")).newest().prefix


def in_process(_: Settings, argv: Sequence[str], env: Mapping[str, str] | None = None) -> Done:
    """Run a command of `slipway` here, which is quicker; the application is not tried."""
    if env is not None:
        return Done(0, "")
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        status = main([*argv[3:]])
    return Done(status, said.getvalue().strip())


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `slipway init` makes: state and run."""
    found = Site(tmp_path_factory.mktemp("site"), 20000)
    found.set()
    assert main(["--config", str(found.config), "init"]) == 0
    return found.folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, initialised: Path) -> Iterator[Site]:
    """A portal that runs as its settings say, and whose file of routes is complete."""
    monkeypatch.setattr(processes, "_LIVES", 0.0)
    for module in (command, processes):
        monkeypatch.setattr(module, "run_as_owner", in_process)
    found = Site(tmp_path, free_ports(6))
    # What listens as gunicorn is this process; test_reload_web.py has a real one.
    monkeypatch.setattr(command, "WebReload", lambda _: found)
    found.set()
    found.control()
    for name in ("state", "run"):
        shutil.copytree(initialised / name, tmp_path / name)
    render = ["render", "haproxy", "--output", str(found.haproxy)]
    assert main(["--config", str(found.config), *render]) == 0
    run = tmp_path / "run"
    (run / "routes.map").write_text(f"{CANARY} 1\n")
    web = _Web(str(run / "portal.sock"), _Health)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    argv = ["haproxy", "-W", "-db", "-q", "-S", str(run / "master.sock"), "-f", str(found.haproxy)]
    process = subprocess.Popen(argv)
    try:
        for _ in range(200):
            with suppress(Unavailable):
                found.process()
                break
            time.sleep(0.05)
        assert found.apply() == 0
        found.asked()
        yield found
    finally:
        process.terminate()
        process.wait()
        web.shutdown()
        web.server_close()


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

    monkeypatch.setattr(files, "_take_over", full)
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
