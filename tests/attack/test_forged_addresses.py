"""Nobody but a proxy of the site says which address a client has: limits and logs need it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest

from tests.support.client_addresses import FORGED_ADDRESS, address_of, guess, refused_address
from tests.support.cluster import Cluster
from tests.support.portal_settings import SETTINGS, change_settings

PROXY, STRANGER = "n2", "n1"
"""Machines of the cluster; the first one stands for the site's load balancer."""


def first_line(address: str) -> bytes:
    """The PROXY protocol, version 1."""
    return f"PROXY TCP4 {address} 203.0.113.1 4444 443\r\n".encode()


def header_v2(address: str) -> bytes:
    """The PROXY protocol, version 2."""
    numbers = bytes(map(int, address.split("."))) + bytes([203, 0, 113, 1])
    ports = (4444).to_bytes(2, "big") + (443).to_bytes(2, "big")
    return b"\r\n\r\n\0\r\nQUIT\n" + bytes([0x21, 0x11, 0, 12]) + numbers + ports


Form = Callable[[str], bytes]
FORMS = pytest.mark.parametrize("form", [first_line, header_v2])
HEADERS = {
    "X-Forwarded-For": FORGED_ADDRESS,
    "Forwarded": f"for={FORGED_ADDRESS}",
    "X-Real-IP": FORGED_ADDRESS,
    "X-Slipway-Frontend": FORGED_ADDRESS,
    "X_Forwarded_For": FORGED_ADDRESS,
}


@pytest.fixture(scope="module")
def behind_a_proxy(cluster: Cluster) -> Iterator[None]:
    """The site's settings name a proxy; afterwards they are as before."""
    before = cluster.run("portal", "cat", SETTINGS)
    try:
        change_settings(cluster, f'trusted_proxies = ["{address_of(cluster, PROXY)}"]')
        cluster.take_settings(cluster.run("portal", "cat", SETTINGS))
        yield
    finally:
        cluster.take_settings(before)


def test_a_header_claims_nothing(cluster: Cluster) -> None:
    assert refused_address(cluster, STRANGER, headers=HEADERS) == address_of(cluster, STRANGER)


@FORMS
def test_without_proxies_nobody_speaks_for_others(cluster: Cluster, form: Form) -> None:
    said, account = guess(cluster, STRANGER, form(FORGED_ADDRESS), {})
    assert said in ("closed", "", "HTTP/1.1 400")
    assert account not in cluster.log_tail("portal")


@FORMS
@pytest.mark.timeout(600)
def test_strangers_do_not_speak_for_others(
    cluster: Cluster, behind_a_proxy: None, form: Form
) -> None:
    # As themselves, as the proxy, as somebody else.
    for claimed in (FORGED_ADDRESS, address_of(cluster, PROXY), "127.0.0.1"):
        said, account = guess(cluster, STRANGER, form(claimed), {})
        assert said in ("closed", "", "HTTP/1.1 400")
        assert account not in cluster.log_tail("portal")
    assert refused_address(cluster, STRANGER, headers=HEADERS) == address_of(cluster, STRANGER)


@FORMS
@pytest.mark.timeout(600)
def test_clients_behind_the_proxy_are_whom_it_names(
    cluster: Cluster, behind_a_proxy: None, form: Form
) -> None:
    """Their own headers, which a proxy for TCP passes on, claim nothing."""
    client = f"198.51.100.{secrets.randbelow(250) + 1}"
    assert refused_address(cluster, PROXY, form(client), HEADERS) == client


def test_the_proxy_itself_must_name_somebody(cluster: Cluster, behind_a_proxy: None) -> None:
    said, account = guess(cluster, PROXY, b"", {})
    assert said in ("closed", "", "HTTP/1.1 400")
    assert account not in cluster.log_tail("portal")
