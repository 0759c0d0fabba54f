"""The runners inside the jobs, reached through their gateways with the portal's certificate."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

from portal.core.access import gateway_name
from portal.core.session import Session
from portal.errors import Unavailable

SECONDS = 5.0


class GatewayRunners:
    """Runners over mutual TLS."""

    def __init__(self, ca_directory: Path) -> None:
        self._context = ssl.create_default_context(cafile=str(ca_directory / "gateway_ca.pem"))
        self._context.load_cert_chain(str(ca_directory / "client.pem"))

    def start_app(self, session: Session, order: Mapping[str, object]) -> None:
        """Ask for an app to be started; asking twice starts it once. Raises Unavailable."""
        status = self._request(session, "PUT", f"/apps/{order['name']}", json.dumps(order))
        if status >= 300:
            raise Unavailable(f"The session answered {status} to the order to start an app.")

    def stop_app(self, session: Session, app: str) -> None:
        """Stop an app, and return when it has ended. Raises Unavailable."""
        status = self._request(session, "DELETE", f"/apps/{app}", "")
        if status >= 300:
            raise Unavailable(f"The session answered {status} to the order to stop an app.")

    def _request(self, session: Session, method: str, path: str, body: str) -> int:
        if session.address is None or session.port is None:
            raise Unavailable("The session has not called back yet.")
        name = gateway_name("control", session.id)
        connection = http.client.HTTPConnection(name, timeout=SECONDS)
        try:
            plain = socket.create_connection((session.address, session.port), SECONDS)
            connection.sock = self._context.wrap_socket(plain, server_hostname=name)
            connection.request(method, path, body, {"Content-Type": "application/json"})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable("The session's compute node does not answer.") from error
        finally:
            connection.close()


def resolve(node: str) -> str:
    """IP address of a compute node, by the host's own name service."""
    try:
        return str(socket.getaddrinfo(node, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise Unavailable(f"The compute node {node} has no address.") from error
