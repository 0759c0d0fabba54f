"""Checks that this image's Jupyter works in a session. Run in it by `slipway images test`.

Starts apps/jupyterlab/start.sh as the runner does, runs a cell over the server's unix socket, and
checks that no TCP port is open, since other users share the node. Another kernel than Python's is
checked with a cell of its own: jupyter.py KERNEL CELL EXPECTED.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid

import websocket

CELL = """
import multiprocessing
def child():
    print("printed by a child", flush=True)
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join()
print(6 * 7)
"""
HOST = "app.example.org"


def connect(path: str) -> socket.socket:
    """Connect to the server's socket."""
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(30)
    stream.connect(path)
    return stream


def request(
    path: str, method: str, address: str, body: bytes = b"", cookie: str = ""
) -> tuple[str, bytes]:
    """Send an HTTP request as the proxy forwards it; returns head and body."""
    token = cookie.partition("=")[2]
    head = (
        f"{method} {address} HTTP/1.1\r\nHost: {HOST}\r\nOrigin: https://{HOST}\r\n"
        f"X-Forwarded-Proto: https\r\nCookie: {cookie}\r\nX-XSRFToken: {token}\r\n"
        f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    response = b""
    with connect(path) as stream:
        stream.sendall(head.encode() + body)
        while data := stream.recv(65536):
            response += data
    head, _, body = response.partition(b"\r\n\r\n")
    return head.decode(), body


def wait_for(path: str, process: subprocess.Popen[bytes], seconds: float = 60) -> float:
    """Wait until the server answers; returns the seconds that it took."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if process.poll() is not None:
            sys.exit(f"Jupyter ended with {process.returncode}")
        try:
            if " 200 " in request(path, "GET", "/api")[0].split("\r\n")[0]:
                return time.monotonic() - began
        except OSError:
            time.sleep(0.05)
    sys.exit("Jupyter did not answer")


def run_cell(path: str, kernel: str, cookie: str, cell: str, awaited: set[str]) -> None:
    """Run `cell` and read until all of `awaited` is printed; fails after 30 seconds of silence."""
    channel = websocket.WebSocket()
    channel.connect(
        f"ws://{HOST}/api/kernels/{kernel}/channels",
        socket=connect(path),
        origin=f"https://{HOST}",
        cookie=cookie,
    )
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "version": "5.3"}
    header.update(username="test", session=uuid.uuid4().hex, date="")
    message = {"header": header, "parent_header": {}, "metadata": {}, "channel": "shell"}
    channel.send(json.dumps({**message, "content": {"code": cell, "silent": False}}))
    printed = ""
    while not all(text in printed for text in awaited):
        message = json.loads(channel.recv())
        if message["msg_type"] == "stream":
            printed += message["content"]["text"]
        if message["msg_type"] == "error":
            sys.exit("\n".join(message["content"]["traceback"]))
    channel.close()


def listening_ports() -> set[str]:
    """TCP ports on which a process of this container listens."""
    listening: dict[str, str] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(table):
            with open(table) as file:
                rows = [line.split() for line in file.readlines()[1:]]
            listening.update({row[9]: row[1] for row in rows if row[3] == "0A"})
    found: set[str] = set()
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
        found.update(address for inode, address in listening.items() if inode in inodes)
    return found


def permit_root(directory: str) -> str:
    """Write a setting with which Jupyter runs as root, as it does where root tests; the folder."""
    folder = f"{directory}/config"
    os.mkdir(folder)
    with open(f"{folder}/jupyter_server_config.json", "w") as file:
        json.dump({"ServerApp": {"allow_root": True}}, file)
    return folder


def main() -> None:
    """Start Jupyter, check it and end it; a failure exits with a message."""
    kernel, cell, *expected = sys.argv[1:] or ["python3", CELL, "42", "printed by a child"]
    directory = tempfile.mkdtemp(prefix="slipway-")
    path = f"{directory}/jupyterlab.sock"
    environment = {**os.environ, "SLIPWAY_SOCKET": path, "SLIPWAY_RUN": directory}
    environment.setdefault("SLIPWAY_TOOLKIT", "/opt/slipway")
    if os.geteuid() == 0:
        environment["JUPYTER_CONFIG_PATH"] = permit_root(directory)
    process = subprocess.Popen(["sh", "/apps/jupyterlab/start.sh"], env=environment)
    try:
        print(f"  Jupyter answered after {wait_for(path, process):.2f} s")
        for page in ("/lab", "/tree"):
            head, _ = request(path, "GET", page)
            if " 200 " not in head.split("\r\n")[0]:
                sys.exit(f"{page}: {head}")
        cookie = next(
            line.partition(": ")[2].partition(";")[0]
            for line in head.split("\r\n")
            if line.lower().startswith("set-cookie: _xsrf=")
        )
        body = json.dumps({"name": kernel}).encode()
        _, response = request(path, "POST", "/api/kernels", body, cookie)
        run_cell(path, json.loads(response)["id"], cookie, cell, set(expected))
        print(f"  the kernel {kernel} ran a cell")
        ports = listening_ports()
        if ports:
            sys.exit(f"TCP ports that other users on the node could reach: {ports}")
        print("  no TCP port is open")
    finally:
        process.terminate()
        process.wait(10)


main()
