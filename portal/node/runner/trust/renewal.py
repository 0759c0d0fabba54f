"""Follow a rotation of the portal's CAs, or the session would lose its connection."""

from __future__ import annotations

import hashlib

from ..callback import Callback, Refused, Unreachable
from ..gateway import Gateway, GatewayFailed
from ..log import say


def fingerprint(callback_ca: str, client_ca: str) -> str:
    """A short hash of the authorities; core/session_job/runner_protocol.py computes the same."""
    text = "".join(f"{callback_ca}{client_ca}".split())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Renewal:
    """Compares the authorities of each answer with those that the session trusts.

    New ones arrive on a connection that the current ones verify. Failures are retried after the
    next heartbeat, and until then the session works as before.
    """

    def __init__(self, callback: Callback, callback_ca: str, client_ca: str) -> None:
        self._callback = callback
        self._fingerprint = fingerprint(callback_ca, client_ca)
        self._gateway: Gateway | None = None
        self._request = ""
        self._problem = ""

    def serve(self, gateway: Gateway, request: str) -> None:
        """Set the gateway to renew, and its CSR."""
        self._gateway, self._request = gateway, request

    def answered(self, answer: dict[str, object]) -> None:
        """Handle the portal's answer to a heartbeat; raises SessionOver."""
        current = answer.get("authorities")
        if not isinstance(current, str) or current == self._fingerprint or self._gateway is None:
            return
        try:
            self._renew(self._gateway)
        except (Refused, Unreachable, GatewayFailed, ValueError) as error:
            if str(error) != self._problem:
                say(f"The portal's new certificates are not used yet: {error}")
            self._problem = str(error)

    def _renew(self, gateway: Gateway) -> None:
        answer = self._callback.post("authorities", {"csr": self._request})
        callback_ca, client_ca = _pem(answer, "callback_ca"), _pem(answer, "client_ca")
        certificate = _pem(answer, "certificate")
        # The callback first: a renewed gateway shows the portal that everything is renewed.
        if not self._callback.trust(callback_ca):
            raise ValueError("the portal itself does not use them yet")
        gateway.renew(certificate, client_ca)
        self._fingerprint = fingerprint(callback_ca, client_ca)
        say("The session uses the portal's new certificates")


def _pem(answer: dict[str, object], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str) or "-----BEGIN CERTIFICATE-----" not in value:
        raise ValueError(f"the portal sent no {name}")
    return value
