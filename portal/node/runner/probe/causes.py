"""Explain why the portal cannot be reached from a node."""

from __future__ import annotations

import errno
import socket
import ssl

# OpenSSL's verify results (x509_vfy.h).
NOT_YET_VALID, EXPIRED = 9, 10
OTHER_NAME, OTHER_ADDRESS = 62, 64
CLOCK = "its certificate is not valid at this time: look at the clocks of node and portal"
NO_TLS = "what answers there does not speak TLS; it is another service, or plain http"


def explain(error: OSError, host: str, port: int) -> str:
    """Describe the cause of a failed connection to an administrator."""
    address = f"{host}, port {port}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{address}: {_certificate(error, host)}"
    if isinstance(error, ssl.SSLError):
        # Any other failure of the handshake is the portal's answer, in OpenSSL's words.
        reason = getattr(error, "reason", None) or str(error)
        plain = any(word in reason for word in ("WRONG_VERSION", "HTTP_REQUEST", "RECORD_LAYER"))
        return f"{address}: {NO_TLS if plain else f'TLS failed ({reason})'}"
    if isinstance(error, socket.gaierror):
        return f"the node knows no address of {host} (DNS, /etc/hosts)"
    if isinstance(error, ConnectionRefusedError):
        return f"nothing listens on {address} (connection refused)"
    if isinstance(error, TimeoutError):
        return f"{address}, does not answer in time; a firewall may drop it"
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return f"the node has no route to {address}"
    return f"{address}: {error.strerror or error}"


def _certificate(error: ssl.SSLCertVerificationError, host: str) -> str:
    if error.verify_code in (OTHER_NAME, OTHER_ADDRESS):
        return f"the portal's certificate is not for {host}; `slipway init` renews it"
    if error.verify_code in (NOT_YET_VALID, EXPIRED):
        return CLOCK
    return (
        "its certificate is not of the portal's authority; another portal, or a proxy in between "
        f"({error.verify_message})"
    )
