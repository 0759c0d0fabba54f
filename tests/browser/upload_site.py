"""A page with the upload queue alone, HAProxy, and a file server in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from tests.support.paths import ROOT

ID = "fedcba9876543210"
STATIC = ROOT / "portal/web/static"
PAGE = """<!doctype html><title>Uploads</title><input type=file multiple>
<script src=/queue.js></script>"""
CONFIG = """\
global
    {buffer}
    stats socket {folder}/admin level admin
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend browsers
    bind {bind}
{pages}    default_backend files
backend files
    server files 127.0.0.1:1 ssl crt {folder}/ca/client.pem ca-file {folder}/ca/gateway_ca.pem \
verify required sni str(files.{id}.slipway)
"""


BUFFER = """tune.bufsize 65536
    ssl-default-server-ciphersuites TLS_AES_128_GCM_SHA256"""
"""As in the portal's own configuration."""
PAGES = """\
    http-request return content-type text/html file {folder}/page.html if {{ path / }}
    http-request return content-type text/javascript file {static}/built/tests/uploads.js \
if {{ path /queue.js }}
"""


class UploadSite:
    """HAProxy and the file server; `url` is the page."""

    def __init__(self, folder: Path, *, tls: bool = False) -> None:
        """`tls`: no page, only the server at https, with a certificate that nobody trusts."""
        self.home = folder / "home"
        self.home.mkdir()
        (folder / "ca").mkdir()
        prepare_authorities(folder / "ca", "portal")
        self._folder = folder
        authority = CertificateAuthority(folder / "ca")
        self._order = {
            "id": ID,
            "certificate": authority.issue_gateway(ID),
            "client_ca": authority.client_ca(),
            "roots": {"home": str(self.home)},
        }
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/"
        if tls:
            (folder / "web.pem").write_text(authority.issue_gateway("web"))
        self._haproxy = self._start_haproxy(port, tls=tls)
        self.pid = 0
        self.starts = 0
        self.start_server()

    def _start_haproxy(self, port: int, *, tls: bool) -> subprocess.Popen[bytes]:
        (self._folder / "page.html").write_text(PAGE)
        config = self._folder / "haproxy.cfg"
        bind = f"127.0.0.1:{port}" + (f" ssl crt {self._folder}/web.pem" if tls else "")
        pages = "" if tls else PAGES.format(folder=self._folder, static=STATIC)
        buffer = BUFFER if tls else "tune.bufsize 262144"  # it answers with files of that size
        config.write_text(
            CONFIG.format(folder=self._folder, pages=pages, bind=bind, buffer=buffer, id=ID)
        )
        haproxy = shutil.which("haproxy") or "/usr/sbin/haproxy"
        running = subprocess.Popen([haproxy, "-db", "-q", "-f", str(config)])
        deadline = time.monotonic() + 10
        while not (self._folder / "admin").exists():
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return running

    def start_server(self) -> None:
        """Start the file server, as the portal does, unless it is running."""
        if _lives(self.pid):
            return
        done = subprocess.run(
            [sys.executable, "-c", "from portal.node.file_server.daemon import main; main()"],
            input=json.dumps(self._order),
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        port = json.loads(done.stdout.lstrip("\0"))["port"]
        self.pid = _listener(port)
        self.starts += 1
        with socket.socket(socket.AF_UNIX) as admin:
            admin.connect(str(self._folder / "admin"))
            admin.sendall(b"set server files/files addr 127.0.0.1 port %d\n" % port)
            admin.recv(1000)

    def kill_server(self) -> None:
        """As if the host had run out of memory."""
        os.kill(self.pid, signal.SIGKILL)
        while _lives(self.pid):
            time.sleep(0.01)

    def close(self) -> None:
        """End both."""
        self._haproxy.kill()
        self._haproxy.wait()
        if _lives(self.pid):
            self.kill_server()


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _listener(port: int) -> int:
    """The process that listens on a port."""
    inodes = set()
    for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]:
        words = line.split()
        if words[1].endswith(f":{port:04X}") and words[3] == "0A":
            inodes.add(f"socket:[{words[9]}]")
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) in inodes:
                return int(link.parts[2])
        except OSError:
            continue
    raise AssertionError("no process listens")
