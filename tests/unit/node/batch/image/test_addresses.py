"""How near an address is, also in the forms that stand for another one."""

from __future__ import annotations

import pytest

from portal.node.batch.image.addresses import Reach, reach_of

ADDRESSES = {
    "127.0.0.1": Reach.LOCAL,
    "127.255.0.9": Reach.LOCAL,
    "0.0.0.0": Reach.LOCAL,
    "169.254.169.254": Reach.LOCAL,
    "::1": Reach.LOCAL,
    "::": Reach.LOCAL,
    "fe80::1": Reach.LOCAL,
    "fe80::1%eth0": Reach.LOCAL,
    "::ffff:127.0.0.1": Reach.LOCAL,
    "64:ff9b::7f00:1": Reach.LOCAL,
    "2002:7f00:1::": Reach.LOCAL,
    "10.0.0.1": Reach.PRIVATE,
    "172.16.0.1": Reach.PRIVATE,
    "192.168.255.1": Reach.PRIVATE,
    "100.64.0.1": Reach.PRIVATE,
    "224.0.0.1": Reach.PRIVATE,
    "255.255.255.255": Reach.PRIVATE,
    "240.0.0.1": Reach.PRIVATE,
    "fd00::1": Reach.PRIVATE,
    "ff02::1": Reach.PRIVATE,
    "::ffff:10.0.0.1": Reach.PRIVATE,
    "64:ff9b::a00:1": Reach.PRIVATE,
    "2001:db8::1": Reach.PRIVATE,
    "9.9.9.9": Reach.PUBLIC,
    "2620:fe::fe": Reach.PUBLIC,
    "::ffff:9.9.9.9": Reach.PUBLIC,
}


@pytest.mark.parametrize("text", ADDRESSES)
def test_reach(text: str) -> None:
    assert reach_of(text) is ADDRESSES[text]


@pytest.mark.parametrize("name", ["registry.example.org", "localhost", "127.1", "2130706433", ""])
def test_names_have_none(name: str) -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        reach_of(name)
