"""The names of hosts in certificates (subject alternative names)."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Sequence

from cryptography import x509


def alternative_names(hosts: Sequence[str]) -> x509.SubjectAlternativeName:
    """The extension for these hosts: addresses as IP addresses, others as DNS names."""
    return x509.SubjectAlternativeName([_general(host) for host in hosts])


def _general(host: str) -> x509.GeneralName:
    with contextlib.suppress(ValueError):
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    return x509.DNSName(host)


def names_of(certificate: x509.Certificate) -> list[str]:
    """The names and addresses that a certificate is valid for."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    addresses = map(str, extension.value.get_values_for_type(x509.IPAddress))
    return [*extension.value.get_values_for_type(x509.DNSName), *addresses]
