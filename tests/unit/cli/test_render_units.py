"""What the systemd units take away from the services, and what they leave to them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from portal.cli.main import main
from portal.cli.render import haproxy, systemd_units
from portal.config import Settings

SERVICES = ("slipway-web.service", "slipway-worker.service", "slipway-proxy.service")
HIGHEST = 40
"""The exposure that `systemd-analyze security` may see, in tenths."""
TAKEN = """\
NoNewPrivileges=yes
ProtectSystem=strict
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictNamespaces=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallFilter=@system-service
UMask=0077
"""


def lines(settings: Settings, name: str) -> list[str]:
    return systemd_units(settings)[name].splitlines()


def settings(**sections: dict[str, str]) -> Settings:
    return Settings.model_validate(sections)


@pytest.mark.parametrize("name", SERVICES)
def test_what_no_service_needs_is_taken_away(name: str) -> None:
    found = lines(Settings(), name)
    assert [line for line in TAKEN.splitlines() if line not in found] == []
    assert "User=slipway" in found


@pytest.mark.parametrize("name", SERVICES[:2])
def test_web_and_worker_have_no_capabilities(name: str) -> None:
    assert "CapabilityBoundingSet=" in lines(Settings(), name)
    assert "SystemCallFilter=~@privileged @resources" in lines(Settings(), name)


def test_gunicorn_may_set_the_owner_of_its_socket() -> None:
    found = lines(Settings(), "slipway-web.service")
    denied = found.index("SystemCallFilter=~@privileged @resources")
    assert found.index("SystemCallFilter=@chown") > denied


def test_the_proxy_may_bind_port_443_and_set_its_limits() -> None:
    found = lines(Settings(), "slipway-proxy.service")
    assert "AmbientCapabilities=CAP_NET_BIND_SERVICE" in found
    assert "CapabilityBoundingSet=CAP_NET_BIND_SERVICE" in found
    assert not any("@resources" in line or "MemoryDenyWriteExecute" in line for line in found)


@pytest.mark.parametrize("name", SERVICES)
def test_the_usual_folders_are_made_by_systemd(name: str) -> None:
    found = lines(Settings(), name)
    assert "RuntimeDirectory=slipway" in found
    assert "RuntimeDirectoryPreserve=yes" in found  # one service stops while others run
    assert ("StateDirectory=slipway" in found) == (name != "slipway-proxy.service")
    assert not any(line.startswith("ReadWritePaths") for line in found)


@pytest.mark.parametrize("name", SERVICES)
def test_other_folders_can_be_written(name: str) -> None:
    found = lines(settings(state={"directory": "/srv/portal", "run": "/srv/portal-run"}), name)
    written = {line for line in found if line.startswith("ReadWritePaths")}
    state = {"ReadWritePaths=/srv/portal"} if name != "slipway-proxy.service" else set()
    assert written == {"ReadWritePaths=/srv/portal-run", *state}
    assert not any(line.startswith(("StateDirectory", "RuntimeDirectory")) for line in found)


def test_folders_below_the_usual_ones_keep_their_names() -> None:
    found = lines(
        settings(state={"directory": "/var/lib/slipway/two", "run": "/run/slipway-two"}),
        "slipway-web.service",
    )
    assert "StateDirectory=slipway/two" in found
    assert "RuntimeDirectory=slipway-two" in found


def test_the_worker_may_write_the_settings_of_batch_jobs() -> None:
    site = settings(batch={"settings_file": "/shared/slipway/batch.json"})
    assert "ReadWritePaths=-/shared/slipway" in lines(site, "slipway-worker.service")
    assert "ReadWritePaths=-/shared/slipway" not in lines(site, "slipway-web.service")


def test_a_haproxy_beside_the_programs_is_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.cli.render.programs", lambda: tmp_path)
    assert haproxy() == "haproxy"
    (tmp_path / "haproxy").touch()
    assert haproxy() == str(tmp_path / "haproxy")
    assert f"ExecStart={tmp_path}/haproxy -Ws" in systemd_units(Settings())[SERVICES[2]]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
def test_systemd_calls_none_of_them_exposed(tmp_path: Path) -> None:
    config = tmp_path / "slipway.toml"
    config.write_text("")
    main(["--config", str(config), "render", "systemd", "--output", str(tmp_path / "units")])
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={HIGHEST}", "--no-pager",
         *(str(tmp_path / "units" / name) for name in SERVICES)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    levels = [line for line in done.stdout.splitlines() if "Overall exposure level" in line]
    assert len(levels) == len(SERVICES), done.stderr
    assert done.returncode == 0, levels
