"""Follows a rotation of the portal's authorities, without which the session would be cut off."""

from __future__ import annotations

import hashlib

from ..callback import Callback, Refused, Unreachable
from ..gateway import Gateway, GatewayFailed
from ..log import say


def fingerprint(callback_ca: str, client_ca: str) -> str:
    """A short hash of the authorities; core/job/runner_protocol.py computes the same."""
    text = "".join(f"{callback_ca}{client_ca}".split())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Renewal:
    """Compares the authorities of each answer with those that the session trusts.

    New ones arrive on a connection that the known ones prove. Whatever fails is tried again after
    the next heartbeat, and until then the session works as before.
    """

    def __init__(self, callback: Callback, callback_ca: str, client_ca: str) -> None:
        self._callback = callback
        self._known = fingerprint(callback_ca, client_ca)
        self._gateway: Gateway | None = None
        self._request = ""
        self._problem = ""

    def serve(self, gateway: Gateway, request: str) -> None:
        """From now on renew this gateway, whose CSR this is."""
        self._gateway, self._request = gateway, request

    def answered(self, answer: dict[str, object]) -> None:
        """Handle the portal's answer to a heartbeat; raises SessionOver."""
        current = answer.get("authorities")
        if not isinstance(current, str) or current == self._known or self._gateway is None:
            return
        try:
            self._renew(self._gateway)
        except (Refused, Unreachable, GatewayFailed, ValueError) as error:
            if str(error) != self._problem:
                say(f"The portal's new certificates are not used yet: {error}")
            self._problem = str(error)

    def _renew(self, served: Gateway) -> None:
        answer = self._callback.post("authorities", {"csr": self._request})
        callback_ca, client_ca = _pem(answer, "callback_ca"), _pem(answer, "client_ca")
        certificate = _pem(answer, "certificate")
        # The call-back first: a gateway that has been renewed proves to the portal that all is.
        if not self._callback.trust(callback_ca):
            raise ValueError("the portal itself does not use them yet")
        served.renew(certificate, client_ca)
        self._known = fingerprint(callback_ca, client_ca)
        say("The session uses the portal's new certificates")


def _pem(answer: dict[str, object], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str) or "-----BEGIN CERTIFICATE-----" not in value:
        raise ValueError(f"the portal sent no {name}")
    return value
