"""A portal as seen by a runner: HTTPS callbacks, certificates signed on request.

Also a program for trying the runner by hand, see `main`. Needs the openssl command.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from portal.core.session_job.runner_protocol import fingerprint
from tests.support.paths import ROOT

TOKEN = "a-secret-of-this-session"
SESSION = "0123456789abcdef0123456789abcdef"


def openssl(*arguments: str, stdin: str | None = None) -> str:
    """Run openssl and return its output."""
    done = subprocess.run(
        ["openssl", *arguments], input=stdin, capture_output=True, text=True, check=True
    )
    return done.stdout


class Authority:
    """A CA in its own folder."""

    def __init__(self, directory: Path, name: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.certificate = directory / f"{name}.pem"
        self.key = directory / f"{name}.key"
        openssl(
            *("req", "-x509", "-new", "-nodes", "-newkey", "ec", "-days", "2"),
            *("-pkeyopt", "ec_paramgen_curve:P-256", "-subj", f"/CN={name}"),
            *("-keyout", str(self.key), "-out", str(self.certificate)),
        )

    def sign(self, request: str, names: str, usage: str) -> str:
        """Sign a request for the given subjectAltName and extended key usage."""
        extensions = self.directory / f"ext-{threading.get_ident()}-{usage}"
        extensions.write_text(f"subjectAltName={names}\nextendedKeyUsage={usage}\n")
        return openssl(
            *("x509", "-req", "-days", "2", "-extfile", str(extensions)),
            *("-CA", str(self.certificate), "-CAkey", str(self.key), "-CAcreateserial"),
            stdin=request,
        )

    def issue(self, name: str, names: str, usage: str) -> Path:
        """Issue a key and a certificate in one PEM file."""
        key = self.directory / f"{name}.key"
        request = openssl(
            *("req", "-new", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-subj", f"/CN={name}", "-keyout", str(key)),
        )
        pem = self.directory / f"{name}.both.pem"
        pem.write_text(self.sign(request, names, usage) + key.read_text())
        return pem


class FakePortal:
    """Responds to the runner and records its reports; `status` forces every response."""

    def __init__(self, directory: Path, host: str = "localhost", port: int = 0) -> None:
        self.directory = directory
        self.host = host
        self.web = Authority(directory / "web", "web-ca")
        self.gateway = Authority(directory / "gateway", "gateway-ca")
        self.client = Authority(directory / "client", "client-ca")
        self.client_pem = self.client.issue("portal", "DNS:portal", "clientAuth")
        kind = "IP" if host.replace(".", "").isdecimal() else "DNS"
        self._web_pem = self.web.issue("server", f"{kind}:{host}", "serverAuth")
        self.authorities = ""
        """The hash in answers to heartbeats, if there is to be one."""
        self.callback_ca = self.web.certificate.read_text()
        self.start: list[dict[str, object]] = []
        self.status: int | None = None
        self.text: str | None = None
        """The body of every response, if it is not what it usually is."""
        self.lost = False
        """Whether it does not know the session."""
        self.adopts = True
        """Whether it takes it in then."""
        self.reports: list[tuple[float, str, dict[str, Any]]] = []
        self.connections = 0
        self.open: set[socket.socket] = set()
        self._news = threading.Condition()
        self._server: ThreadingHTTPServer | None = None
        self.port = port

    def up(self) -> FakePortal:
        """Listen, on the same port as the last time."""
        portal = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 20

            def setup(self) -> None:
                super().setup()
                portal.connections += 1
                portal.open.add(self.connection)

            def finish(self) -> None:
                portal.open.discard(self.connection)
                super().finish()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, answer = portal.answer(
                    self.path, self.headers.get("Authorization", ""), json.loads(body)
                )
                data = (json.dumps(answer) if portal.text is None else portal.text).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        address = "127.0.0.1" if self.host == "localhost" else self.host
        server = ThreadingHTTPServer((address, self.port), Handler)
        server.daemon_threads = True
        server.block_on_close = False
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._web_pem)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.port = server.server_address[1]
        self._server = server
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def reset(self) -> None:
        """Reset: no reports, no forced status."""
        self.reports, self.status, self.start, self.connections = [], None, [], 0
        self.text, self.lost, self.adopts = None, False, True

    def down(self) -> None:
        """Stop listening; open connections stay."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def drop_connections(self) -> None:
        """Cut every connection, as a restart does."""
        for connection in list(self.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def request(self) -> str:
        """A certificate request as created by a runner."""
        argv = ("req", "-new", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
        return openssl(*argv, "-subj", "/CN=x", "-keyout", str(self.directory / "x.key"))

    def answer(
        self, path: str, authorization: str, message: dict[str, Any]
    ) -> tuple[int, dict[str, object]]:
        """The response to a report."""
        with self._news:
            self.reports.append((time.monotonic(), path, message))
            self._news.notify_all()
        if self.status is not None:
            return self.status, {"code": "session_ended"} if self.status == 410 else {}
        if self.lost and not (path.endswith("/adopt") and self.adopts):
            return 404, {"code": "session_unknown"}
        self.lost = False
        if authorization != f"Bearer {TOKEN}":
            return 401, {}
        if not path.startswith(f"/runner/v1/sessions/{SESSION}/"):
            return 404, {}
        if path.endswith("/ready"):
            certificate = self.gateway.sign(
                message["csr"], f"DNS:*.{SESSION}.slipway", "serverAuth"
            )
            return 200, {"certificate": certificate, "start": self.start}
        if path.endswith("/authorities"):
            name, client = f"DNS:*.{SESSION}.slipway", self.client.certificate.read_text()
            certificate = self.gateway.sign(message["csr"], name, "serverAuth")
            found = {"certificate": certificate, "callback_ca": self.callback_ca}
            return 200, {**found, "client_ca": client}
        return 200, {"authorities": self.authorities} if self.authorities else {}

    def rotate(self, number: int) -> None:
        """Replace the authorities of gateways and clients, and tell the runners so."""
        self.gateway = Authority(self.directory / f"gateway{number}", "gateway-ca")
        self.client = Authority(self.directory / f"client{number}", "client-ca")
        self.client_pem = self.client.issue("portal", "DNS:portal", "clientAuth")
        self.authorities = fingerprint(self.callback_ca, self.client.certificate.read_text())

    def wait_for(self, what: str, seconds: float = 10, **values: object) -> dict[str, Any]:
        """Wait for a report whose path ends in `what` and that contains these values."""

        def found() -> dict[str, Any] | None:
            for _, path, message in self.reports:
                if path.endswith(what) and all(message.get(k) == v for k, v in values.items()):
                    return message
            return None

        with self._news:
            assert self._news.wait_for(lambda: found() is not None, seconds), (what, self.reports)
            message = found()
        assert message is not None
        return message

    def spec(self, **changes: object) -> dict[str, object]:
        """The spec of a session of this portal."""
        return {
            "session": SESSION,
            "token": TOKEN,
            "callback": f"https://{self.host}:{self.port}",
            "callback_ca": self.web.certificate.read_text(),
            "client_ca": self.client.certificate.read_text(),
            "ports": [0, 0],
            "heartbeat_seconds": 10,
            "apps": ["jupyterlab", "terminal"],
            **changes,
        }


def spec_text(portal: FakePortal, **changes: object) -> str:
    """The spec as passed on the runner's standard input."""
    return json.dumps(portal.spec(**changes)) + "\n"


def main() -> None:
    """Write spec.json, serve until interrupted and print every report with its time."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--host", default="localhost")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--start", nargs="*", default=["jupyterlab", "terminal"])
    options = parser.parse_args()
    portal = FakePortal(options.directory, options.host, options.port).up()
    apps = ROOT / "apps"
    ready = {"jupyterlab": "/api", "terminal": "/token"}
    portal.start = [
        {
            "name": name,
            "script": (apps / name / "start.sh").read_text(),
            "ready": ready[name],
            "timeout": 60,
        }
        for name in options.start
    ]
    (options.directory / "spec.json").write_text(spec_text(portal))
    (options.directory / "start.json").write_text(json.dumps(portal.start))
    seen = 0
    while True:
        time.sleep(0.05)
        while seen < len(portal.reports):
            _, path, message = portal.reports[seen]
            shown = {key: value for key, value in message.items() if key != "csr"}
            print(
                f"{time.time():.3f} {path.rpartition(SESSION)[2]} {json.dumps(shown)}", flush=True
            )
            seen += 1


if __name__ == "__main__":
    main()
