"""The Ansible role: files that it names, its variables, and its block for sshd."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from portal.config import Settings
from tests.support.ansible_role import ADDRESS, ROLE, rendered, sshd_block
from tests.support.paths import ROOT


def test_settings_are_written_as_slipway_reads_them() -> None:
    kinds = [{"name": "a100", "title": "A100", "memory": "40g", "unit": 1.0}]
    given: dict[str, dict[str, Any]] = {
        "web": {"public_url": "https://slipway.example.org", "tls_certificate": "/etc/tls.pem",
                "apps": "subdomains", "apps_domain": "apps.example.net"},
        "slurm": {"admins": ["alice", "bob"]},
        "sessions": {"callback": "https://slipway.example.org:8443", "gateway_ports": [0, 0]},
        "gpu": {"margin_mb": 256, "kinds": kinds},
    }  # fmt: skip
    read = tomllib.loads(rendered("slipway.toml.j2", slipway_settings=given))
    assert read == given
    assert Settings.model_validate(read).slurm.admins == ["alice", "bob"]


def test_every_file_that_tasks_name_is_made_by_make_packages() -> None:
    tasks = "".join(file.read_text() for file in (ROLE / "tasks").iterdir())
    build = (ROOT / "deploy" / "packages" / "build.sh").read_text()
    assert "slipway-{{ slipway_version }}-login" in tasks
    assert '"$DIST/slipway-$VERSION-login"' in build
    assert "'slipway_' ~ slipway_version ~ '-1+deb'" in tasks
    assert '"$VERSION-1+deb13"' in build
    version = re.search(r"^slipway_version: (\S+)$", (ROLE / "defaults/main.yml").read_text(), re.M)
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert version is not None
    assert version[1] == pyproject["project"]["version"]


def test_every_variable_has_a_default() -> None:
    defaults = set(re.findall(r"^(slipway_\w+):", (ROLE / "defaults/main.yml").read_text(), re.M))
    files = [*ROLE.glob("tasks/*.yml"), *ROLE.glob("handlers/*.yml"), *ROLE.glob("templates/*")]
    text = "".join(file.read_text() for file in files)
    made = set(re.findall(r"register: (slipway_\w+)", text)) | {"slipway_package"}
    names = set(re.findall(r"\bslipway_\w+", text)) - {"slipway_user_ca", "slipway_revoked"}
    files_of_release = {"slipway_"}
    assert names - made - {"slipway_portal"} - files_of_release == defaults


def test_the_authority_is_trusted_from_the_portals_address_alone() -> None:
    lines = sshd_block().splitlines()
    assert lines[0] == f"Match Address {ADDRESS}"
    assert lines[-1] == "Match all"
    assert "    TrustedUserCAKeys /etc/ssh/slipway_user_ca.pub" in lines[1:-1]
    assert "    AllowGroups people slipway slipway-operator" in lines
    assert "AllowGroups" not in sshd_block(slipway_people_group="")
    assert "    AllowGroups people slipway" in sshd_block(slipway_operator="").splitlines()
