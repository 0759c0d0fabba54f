"""Large files through the browser's way against scp and nginx, on this host's loopback, in turns.

    python -m bench.files [--size 1024] [--rounds 3] [--folder /var/tmp]

needs haproxy, nginx, sshd, scp and curl. The routes:

- ours    curl, TLS, HAProxy, mutual TLS, the file server. Up: a tus upload, with the data on disk
  when it ends, which the others do not promise.
- scp     between the same hosts, with its default cipher.
- nginx   curl, TLS, one nginx that serves the file, or writes the body to a file and drops it.

Printed: MiB/s of each (median), the median of the ratios in each round, and the file server's
memory at its highest, after 20 uploads at once. All share the machine's processors.
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.browser.upload_site import UploadSite

MEBIBYTE = 1 << 20
AT_ONCE = 20

NGINX = """\
{user}
worker_processes auto;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    client_max_body_size 0;
    sendfile on;
    server {{
        listen 127.0.0.1:{tls} ssl;
        ssl_certificate {folder}/web.pem;
        ssl_certificate_key {folder}/web.pem;
        location / {{ root {folder}/home; }}
        location /sink {{
            client_body_in_file_only clean;
            proxy_pass http://127.0.0.1:{plain};
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
        }}
    }}
    server {{ listen 127.0.0.1:{plain}; location / {{ return 204; }} }}
}}
"""
SSHD = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
Subsystem sftp internal-sftp
"""


@dataclass(frozen=True)
class Route:
    """Commands that take a file of the given path there, and bring it back."""

    up: Callable[[Path], None]
    down: Callable[[], None]


def run(*words: str | Path) -> str:
    """Run a command to its end; returns its output."""
    return subprocess.run(
        [str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def curl(*words: str | Path) -> str:
    """Run curl; raises CalledProcessError for answers from 400 on."""
    return run("curl", "--silent", "--show-error", "--fail", "--insecure", *words)


def free_port() -> int:
    """A free port on loopback."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(port: int) -> None:
    """Wait until something listens; raises TimeoutError."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


def tus_upload(url: str, file: Path, path: str) -> None:
    """Upload a file as a browser does."""
    values = f"path {_coded(path)},on_conflict {_coded('replace')}"
    size = file.stat().st_size
    head = ["-H", "Tus-Resumable: 1.0.0"]
    quiet = ["-X", "POST", "-o", "/dev/null", "-w"]
    create = ["-H", f"Upload-Length: {size}", "-H", f"Upload-Metadata: {values}"]
    where = "%header{location}" if _new_curl() else "%{redirect_url}"
    made = curl(*head, *create, *quiet, where, url + "data/uploads/")
    address = url + made[made.index("data/") :]
    send = ["-H", "Upload-Offset: 0", "-H", "Content-Type: application/offset+octet-stream"]
    curl(*head, *send, "-X", "PATCH", "-T", file, address)


def _new_curl() -> bool:
    version = run("curl", "--version").split()[1].split(".")
    return (int(version[0]), int(version[1])) >= (7, 83)


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def ours(site: UploadSite, folder: Path) -> Route:
    """The way of a browser."""
    return Route(
        lambda file: tus_upload(site.url, file, "home/up"),
        lambda: _drop(curl("-o", folder / "got", site.url + "data/files/home/big")),
    )


def _drop(_output: str) -> None:
    pass


def nginx(folder: Path, started: list[subprocess.Popen[bytes]]) -> Route:
    """One web server without anything in front."""
    tls, plain = free_port(), free_port()
    user = "user root;" if os.getuid() == 0 else ""
    text = NGINX.format(folder=folder, tls=tls, plain=plain, user=user)
    (folder / "nginx.conf").write_text(text)
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    started.append(subprocess.Popen([program, "-c", str(folder / "nginx.conf")]))
    wait_for(tls)
    url = f"https://127.0.0.1:{tls}/"
    return Route(
        lambda file: _drop(curl("-X", "POST", "-T", file, url + "sink")),
        lambda: _drop(curl("-o", folder / "got", url + "big")),
    )


def scp(folder: Path, started: list[subprocess.Popen[bytes]]) -> Route:
    """OpenSSH on the same host."""
    port = free_port()
    for name in ("host_key", "key"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name)
    (folder / "sshd.conf").write_text(SSHD.format(folder=folder, port=port))
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    started.append(subprocess.Popen([program, "-D", "-f", str(folder / "sshd.conf")]))
    wait_for(port)
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
    command = ["scp", "-q", "-P", str(port), "-i", str(folder / "key")]
    for option in options:
        command += ["-o", option]
    there = "127.0.0.1:" + str(folder / "home")
    return Route(
        lambda file: _drop(run(*command, file, there + "/scp")),
        lambda: _drop(run(*command, there + "/big", folder / "got")),
    )


def measure(size: int, work: Callable[[], None]) -> float:
    """MiB/s of a transfer."""
    start = time.monotonic()
    work()
    return size / (time.monotonic() - start)


def rounds(routes: dict[str, Route], file: Path, size: int, count: int) -> None:
    """Measure all routes in turns, and print."""
    found: dict[tuple[str, str], list[float]] = {}
    names = list(routes)
    for turn in range(count):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            route = routes[name]
            for way, work in (("up", lambda: route.up(file)), ("down", route.down)):  # noqa: B023
                found.setdefault((name, way), []).append(measure(size, work))
    for way in ("up", "down"):
        for name in names:
            rates = found[name, way]
            ratios = [ours / rate for ours, rate in zip(found["ours", way], rates, strict=True)]
            print(
                f"{way:5}{name:7}{statistics.median(rates):7.0f} MiB/s   ours is "
                f"{statistics.median(ratios):.2f} times as fast"
            )


def many_at_once(site: UploadSite, file: Path) -> None:
    """Upload twenty files at once, and print the memory that the file server had at most."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [pool.submit(tus_upload, site.url, file, f"home/{n}") for n in range(AT_ONCE)]
        for job in jobs:
            job.result()
    status = Path(f"/proc/{site.pid}/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) // 1024
    print(f"the file server's memory after {AT_ONCE} uploads at once: at most {peak} MiB")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--size", type=int, default=1024, help="MiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default="/var/tmp")
    options = parser.parse_args()
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        site = UploadSite(folder, tls=True)
        try:
            for path, size in ((site.home / "big", options.size), (folder / "small", 50)):
                with path.open("wb") as file:
                    for _ in range(size):
                        file.write(os.urandom(MEBIBYTE))
            routes = {
                "ours": ours(site, folder),
                "scp": scp(folder, started),
                "nginx": nginx(folder, started),
            }
            rounds(routes, site.home / "big", options.size, options.rounds)
            many_at_once(site, folder / "small")
        finally:
            site.close()
            for process in started:
                process.terminate()
                process.wait()


if __name__ == "__main__":
    main()
