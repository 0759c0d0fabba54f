"""The reach of a network address, which limits where a registry's answers may lead."""

from __future__ import annotations

import enum
import ipaddress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Union

    Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class Reach(enum.IntEnum):
    """Reach of an address, from near to far."""

    LOCAL = 0
    """This machine or its link."""
    PRIVATE = 1
    """A private network, such as the site's."""
    PUBLIC = 2


def reach_of(text: str) -> Reach:
    """The reach of an address; raises ValueError for a name."""
    address = _inner(ipaddress.ip_address(text.partition("%")[0]))
    # Connecting to 0.0.0.0 or :: reaches this machine.
    if address.is_loopback or address.is_link_local or address.is_unspecified:
        return Reach.LOCAL
    if address.is_multicast or not address.is_global:
        return Reach.PRIVATE
    return Reach.PUBLIC


def _inner(address: Address) -> Address:
    """Return the IPv4 address that is embedded in an IPv6 address, if any."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)
