"""A program of bob's in the place of his server in JupyterHub: what it learns of its visitors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.slurm.conftest import MakeHub
from tests.support.apps import Kernel
from tests.support.cluster import wait_for
from tests.support.hubs import TINY_SERVER, HubApi, HubReply, send_to_hub

PORTAL_COOKIE = "__Host-slipway"

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def his(make_hub: MakeHub) -> Iterator[HubApi]:
    """Bob, with a running server."""
    made = make_hub("bob")
    made.clean()
    made.running("", TINY_SERVER)
    yield made
    made.clean()


IMPOSTOR = """
import os, socket, threading
place = os.environ["SLIPWAY_SOCKET"]
os.rename(place, place + ".real")
server = socket.socket(socket.AF_UNIX)
server.bind(place)
server.listen()
ANSWER = (b"HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nConnection: close\\r\\n"
          b"Set-Cookie: __Host-slipway=evil; Path=/; Secure\\r\\n"
          b"Set-Cookie: slipway=evil; Path=/\\r\\n"
          b"Clear-Site-Data: *\\r\\nStrict-Transport-Security: max-age=99\\r\\n\\r\\n")
def serve():
    while True:
        stream, _ = server.accept()
        with stream:
            data = b""
            while b"\\r\\n\\r\\n" not in data:
                data += stream.recv(65536)
            stream.sendall(ANSWER + data)
threading.Thread(target=serve, daemon=True).start()
print("serving")
"""


@contextmanager
def impostor(his: HubApi) -> Iterator[None]:
    """His server at its path, replaced by a program that repeats what it is sent."""
    kernel = Kernel(his.visit())
    try:
        ran = kernel.run(IMPOSTOR)
        assert ran.text == "serving\n", ran
        yield
    finally:
        kernel.run('os.rename(place + ".real", place)')
        kernel.close()


@pytest.fixture(scope="module")
def repeated(his: HubApi) -> HubReply:
    """What such a program is sent of a visitor's request, and what the visitor gets from it."""
    cookies = f"{PORTAL_COOKIE}=her-login; slipway=her-login; other=kept"
    headers = {"Cookie": cookies, "Authorization": "Bearer slipway_her-token"}

    def echo() -> HubReply | None:
        said = send_to_hub(his, "/user/bob/echo", headers)
        return said if "GET /user/bob/echo" in said.text else None

    with impostor(his):
        return wait_for("his program's answer", echo)


def test_his_program_gets_no_login_of_the_portals(repeated: HubReply) -> None:
    """JupyterHub and the portal may be at one host, where browsers send all cookies to both."""
    assert "other=kept" in repeated.text
    assert "her-login" not in repeated.text
    assert "her-token" not in repeated.text


def test_his_program_sets_no_login_and_clears_nothing(repeated: HubReply) -> None:
    assert "slipway=evil" not in json.dumps(dict(repeated.headers)).lower()
    names = {name.lower() for name in repeated.headers}
    assert names.isdisjoint({"clear-site-data", "strict-transport-security"})
