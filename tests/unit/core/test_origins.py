"""Which port an app gets, and which addresses are an app's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from portal.core.origins import BAD_PORTS, Origins, PortUse, choose_port

SITE = Origins("http", "ports", "127.0.0.1", 8080, (10078, 10082), (10083, 10085))


def test_ports_that_browsers_refuse_are_left_out() -> None:
    assert SITE.usable("web") == [10078, 10079, 10081, 10082]
    assert SITE.label_at("127.0.0.1:10079") == "10079"
    assert SITE.label_at("127.0.0.1:10080") is None
    assert not SITE.fits("10080", "web")


def test_ssh_is_no_browser() -> None:
    site = replace(SITE, ports=(10083, 10085), ssh_ports=(10078, 10082))
    assert site.usable("ssh") == [10078, 10079, 10080, 10081, 10082]
    assert site.fits("10080", "ssh")


def test_names_have_no_ports() -> None:
    assert replace(SITE, mode="subdomains").usable("web") == []


def test_the_list_is_the_standards() -> None:
    # Those that a site would choose by chance: X11, SIP, IRC, Amanda.
    assert {6000, 5060, 5061, 6667, 6697, 10080} < BAD_PORTS
    assert len(BAD_PORTS) == 19
    assert min(BAD_PORTS) >= 1024
    assert not {8080, 8443, 8888, 10000, 10079, 10081} & BAD_PORTS


@pytest.mark.parametrize(
    ("taken", "memory", "preferred", "port"),
    [
        ([], {}, None, 1),
        ([], {}, 3, 3),
        ([3], {}, 3, 1),
        ([], {}, 9, 1),
        ([1], {2: "bob"}, None, 3),
        ([], {1: "bob", 2: "alice"}, None, 2),
        ([], {1: "bob", 2: "bob"}, 1, 1),
        ([2], {1: "bob", 3: "carol"}, None, 3),
        ([1, 2, 3], {}, 1, None),
    ],
)
def test_the_preferred_port_then_ones_own_then_the_one_unused_for_longest(
    taken: list[int], memory: dict[int, str], preferred: int | None, port: int | None
) -> None:
    uses = {
        number: PortUse(owner, datetime(2026, 11, 20 - number, tzinfo=UTC))
        for number, owner in memory.items()
    }
    assert choose_port([1, 2, 3], taken, uses, "alice", preferred, min) == port
