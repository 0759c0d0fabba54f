"""Create the terminal's page: ttyd's own, with our styles, hints and script.

Usage: make_page.py TTYD OUT.html
"""

import base64
import http.client
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
ICON = HERE.parents[2] / "portal" / "web" / "static" / "favicon.svg"


class OverSocket(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self) -> None:
        """Connect to the socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def built_in_page(ttyd: str) -> str:
    """The page that is compiled into ttyd."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/ttyd.sock"
        server = subprocess.Popen([ttyd, "-i", path, "-d", "1", "true"])
        try:
            return fetch(path)
        finally:
            server.terminate()
            server.wait()


def fetch(path: str) -> str:
    """Load the page, as soon as the server is up."""
    for _ in range(100):
        connection = OverSocket(path)
        try:
            connection.request("GET", "/")
            return connection.getresponse().read().decode()
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.05)
        finally:
            connection.close()
    sys.exit("make_page.py: ttyd does not answer")


def ours(page: str) -> str:
    """Insert our parts; our script comes first, so that it sees the terminal's creation."""
    css, html, touch, script = (
        (HERE / name).read_text(encoding="utf-8")
        for name in ("page.css", "page.html", "touch.js", "page.js")
    )
    icon = base64.b64encode(ICON.read_bytes()).decode()
    for mark, inserted in (
        ('href="favicon.png"', f'href="data:image/svg+xml;base64,{icon}"'),
        ("</head>", f"<style>\n{css}</style></head>"),
        ("<body>", f"<body>\n{html}<script>\n{touch}{script}</script>"),
    ):
        if mark not in page:
            sys.exit(f"make_page.py: the page of this ttyd has no {mark}")
        page = page.replace(mark, inserted, 1)
    return page


if __name__ == "__main__":
    pathlib.Path(sys.argv[2]).write_text(ours(built_in_page(sys.argv[1])), encoding="utf-8")
