"""Forms and menus of the launch pages."""

from __future__ import annotations

import html
import re

from portal.core.cluster.limits import Association, Limits, Qos
from portal.core.launch.templates import Template
from tests.support.fakes import World

LAUNCH_FORM = {
    "environment": "python",
    "version": "3.13",
    "resources.cpus": "1",
    "resources.memory": "600 MB",
    "confirmed": "yes",
}


def two_accounts(world: World) -> None:
    """Alice has two accounts, one of them with two QOS."""
    read_slurm(world)
    world.status.save_limits(
        Limits(
            enforced=("associations", "limits", "qos"),
            default_accounts={"alice": "research"},
            associations=(
                Association(account="research"),
                Association(account="crystals", description="Crystal growth"),
                Association("research", "alice", qos=("normal",), default_qos="normal"),
                Association(
                    "crystals", "alice", qos=("urgent", "spare"), default_qos="urgent", minutes=60
                ),
            ),
            qos=(Qos("normal"), Qos("urgent"), Qos("spare", description="What others leave")),
        )
    )


def menu_values(page: str, name: str) -> list[str]:
    """The values of a menu's lines; none if there is no such menu."""
    found = re.search(rf'<select[^>]*name="{name}".*?</select>', page, re.DOTALL)
    return re.findall(r'<option value="([^"]*)"', found[0]) if found else []


WIZARD_FORM = {
    "image": "python/3.12",
    "resources.cpus": "1",
    "resources.memory": "600 MB",
    "confirmed": "yes",
}
HTMX = {"HX-Request": "true"}
SMALL_TEMPLATE = Template(name="small", title="Small", cpus=2, memory_mb=1024, time_limit=30)
HUGE_TEMPLATE = Template(name="huge", title="Huge", cpus=64, memory_mb=1024)


def read_slurm(world: World) -> None:
    """The worker's readings of Slurm."""
    world.status.save_partitions(world.scheduler.partitions())
    world.status.save_limits(world.scheduler.limits())


def ticked_values(text: str, name: str) -> list[str]:
    """The values of the selected boxes or buttons of this name."""
    inputs = re.findall(rf'<input[^>]*name="{name}"[^>]*>', text)
    return [re.findall(r'value="([^"]*)"', i)[0] for i in inputs if " checked" in i]


def field_value(text: str, name: str) -> str:
    """The value of a field."""
    found = next(i for i in re.findall(r"<input[^>]*>", text) if f'name="{name}"' in i)
    return html.unescape(re.findall(r'value="([^"]*)"', found)[0])
