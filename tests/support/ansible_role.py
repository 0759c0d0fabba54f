"""Templates of the Ansible role, rendered."""

from __future__ import annotations

import json
from typing import Any

from jinja2 import Environment, FileSystemLoader

from tests.support.paths import ROOT

ROLE = ROOT / "deploy" / "ansible" / "roles" / "slipway"
ADDRESS = "192.0.2.10"


def rendered(template: str, **values: Any) -> str:
    """A template of the role, rendered as Ansible does."""
    environment = Environment(
        loader=FileSystemLoader(ROLE / "templates"),
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["to_json"] = json.dumps
    return environment.get_template(template).render(values)


def sshd_block(**values: Any) -> str:
    """The part of sshd_config that the role writes."""
    known = {
        "slipway_portal_address": ADDRESS,
        "slipway_people_group": "people",
        "slipway_reader": "slipway",
        "slipway_operator": "slipway-operator",
        "slipway_sshd_penalties": False,
    }
    return rendered("sshd_config.j2", **{**known, **values})
