"""The files that packages are made of, and what their scripts do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PACKAGES = ROOT / "deploy" / "packages"
SCRIPTS = [
    *sorted(PACKAGES.glob("*.sh")),
    *(PACKAGES / name for name in ("system/configure", "system/stop", "container/start")),
    *(PACKAGES / "debian" / name for name in ("postinst", "prerm", "postrm")),
    *sorted((ROOT / "tests" / "packages").glob("*.sh")),
]
PROGRAMS = ("systemd-sysusers", "systemd-tmpfiles", "systemctl", "chown", "slipway")
PROGRAM = """\
#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
case "$(basename "$0") $1" in
    "slipway config") echo "# every key" ;;
    "slipway apply") exit "${APPLY:-0}" ;;
    "systemctl is-active") [ "$3" != "${STOPPED:-}" ] || exit 3 ;;
esac
"""


@dataclass(frozen=True)
class Machine:
    """A folder that the scripts take for the root, and a log of the programs that they start."""

    root: Path

    def run(self, script: Path, *arguments: str, **variables: str) -> str:
        """Run a script; what it prints."""
        text = re.sub(r"(?<![\w/])/(etc|var|run)/", rf"{self.root}/\1/", script.read_text())
        text = text.replace("/usr/lib/slipway/", f"{self.root}/usr/lib/slipway/")
        copy = self.root / "script"
        copy.write_text(text)
        path = f"{self.root}/bin:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", str(copy), *arguments],
            env={"PATH": path, "LOG": str(self.root / "log"), **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def started(self) -> list[str]:
        """The command lines that the scripts started so far."""
        log = self.root / "log"
        return log.read_text().replace(str(self.root), "").splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """With programs that only write down how they were started, and with systemd."""
    for folder in ("bin", "run/systemd/system", "usr/lib/slipway", "etc", "var/lib"):
        (tmp_path / folder).mkdir(parents=True)
    for name in PROGRAMS:
        (tmp_path / "bin" / name).write_text(PROGRAM)
        (tmp_path / "bin" / name).chmod(0o755)
    return Machine(tmp_path)


def configure(machine: Machine, *arguments: str, **variables: str) -> str:
    return machine.run(PACKAGES / "system" / "configure", *arguments, **variables)


def test_an_installation_makes_the_account_before_its_folders_and_starts_nothing(
    machine: Machine,
) -> None:
    configure(machine)
    started = machine.started()
    assert started[:2] == [
        "systemd-sysusers slipway.conf",
        "systemd-tmpfiles --create slipway.conf",
    ]
    assert [line for line in started if line.startswith("systemctl")] == ["systemctl daemon-reload"]


def test_settings_are_made_for_the_account_alone(machine: Machine) -> None:
    configure(machine)
    settings = machine.root / "etc/slipway/slipway.toml"
    assert settings.read_text() == "# every key\n"
    assert settings.stat().st_mode & 0o777 == 0o640
    assert "chown root:slipway /etc/slipway/slipway.toml.new" in machine.started()


@pytest.mark.parametrize("upgrade", [[], ["upgrade"]])
def test_settings_that_are_there_are_kept(machine: Machine, upgrade: list[str]) -> None:
    settings = machine.root / "etc/slipway/slipway.toml"
    settings.parent.mkdir()
    settings.write_text("[web]\n")
    configure(machine, *upgrade)
    assert settings.read_text() == "[web]\n"
    assert not any(line.startswith("slipway config") for line in machine.started())


def test_an_upgrade_takes_the_release_into_service(machine: Machine) -> None:
    assert configure(machine, "upgrade") == ""
    started = machine.started()
    assert started[-1] == "slipway apply"
    assert started.index("systemctl daemon-reload") < started.index("slipway apply")


@pytest.mark.parametrize("stopped", ["slipway-web.service", "slipway-worker.service"])
def test_an_upgrade_starts_nothing_that_was_stopped(machine: Machine, stopped: str) -> None:
    """A rollback restores the database before the earlier release starts."""
    assert "nothing was started" in configure(machine, "upgrade", STOPPED=stopped)
    assert "slipway apply" not in machine.started()


@pytest.mark.parametrize("status", ["1", "2", "3"])
def test_a_release_that_is_not_taken_over_is_installed_all_the_same(
    machine: Machine, status: str
) -> None:
    assert "run as root: slipway apply" in configure(machine, "upgrade", APPLY=status)
    assert not any("restart" in line for line in machine.started())


def test_without_systemd_nothing_is_restarted(machine: Machine) -> None:
    shutil.rmtree(machine.root / "run")
    configure(machine, "upgrade")
    assert not any(line.startswith("systemctl") for line in machine.started())


def test_purge_keeps_keys_and_database_and_says_so(machine: Machine) -> None:
    key = machine.root / "var/lib/slipway/ca/user_ca"
    key.parent.mkdir(parents=True)
    key.write_text("key")
    configure(machine)
    said = machine.run(PACKAGES / "debian" / "postrm", "purge")
    assert "kept in" in said
    assert "/var/lib/slipway" in said
    assert key.read_text() == "key"
    assert not (machine.root / "etc/slipway").exists()


@pytest.mark.parametrize("action", ["remove", "upgrade"])
def test_other_removals_keep_the_settings(machine: Machine, action: str) -> None:
    configure(machine)
    assert machine.run(PACKAGES / "debian" / "postrm", action) == ""
    assert (machine.root / "etc/slipway/slipway.toml").exists()


def test_a_removal_stops_the_services(machine: Machine) -> None:
    machine.run(PACKAGES / "system" / "stop")
    stopped = [line.split()[-1] for line in machine.started()]
    assert stopped[0] == "slipway.target"
    assert set(stopped[1:]) == {f"slipway-{name}.service" for name in ("web", "worker", "proxy")}


def test_every_placeholder_of_the_control_file_is_filled_in() -> None:
    wanted = set(re.findall(r"@(\w+)@", (PACKAGES / "debian" / "control.in").read_text()))
    assert wanted == set(re.findall(r"@(\w+)@", (PACKAGES / "debian.sh").read_text()))


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck on this machine")
def test_shellcheck_accepts_the_scripts() -> None:
    done = subprocess.run(
        ["shellcheck", *map(str, SCRIPTS)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout


def test_scripts_can_be_run() -> None:
    assert [file.name for file in SCRIPTS if file.parent.name != "packages"
            and not os.access(file, os.X_OK)] == []  # fmt: skip
