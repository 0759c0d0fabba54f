"""Asking a registry which image a reference means; the registry is a web server in this process."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from portal.batch.image import ImageError, sif
from portal.batch.image.registry import Login, Registry
from portal.core.launch.reference import parse

HERE = sif.architecture()
OTHER = "arm64" if HERE == "amd64" else "amd64"
LOGIN = Login("team", "s3cret")


class FakeRegistry(ThreadingHTTPServer):
    """Answers by path; the paths of `locked` only with the header that `wanted` says."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[str, bytes]] = {}
        self.redirects: dict[str, str] = {}
        self.challenge = ""
        self.wanted = ""
        self.asked: list[tuple[str, str]] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def put(self, path: str, data: Any, kind: str = "application/json") -> str:
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        for name in (path, path.rpartition("/")[0] + "/" + digest):
            self.answers[name] = (kind, body)
        return digest

    def image(self, tag: str, architecture: str = HERE, size: int = 7) -> str:
        config = self.put("/v2/team/tool/blobs/x", {"architecture": architecture})
        manifest = {"config": {"digest": config}, "layers": [{"size": size}, {"size": 1}]}
        return self.put(f"/v2/team/tool/manifests/{tag}", manifest)


class Handler(BaseHTTPRequestHandler):
    server: FakeRegistry

    def do_GET(self) -> None:
        given = self.headers.get("Authorization", "")
        path = self.path.partition("?")[0]
        self.server.asked.append((self.path, given))
        if path in self.server.redirects:
            self.send_response(307)
            self.send_header("Location", self.server.redirects[path])
            self.end_headers()
        elif self.server.challenge and path.startswith("/v2/") and given != self.server.wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", self.server.challenge)
            self.end_headers()
        elif path in self.server.answers:
            kind, body = self.server.answers[path]
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body)
        else:
            self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the screen."""


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with FakeRegistry() as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield found
        found.shutdown()


def resolve(server: FakeRegistry, what: str = ":1", login: Login | None = None) -> tuple[str, int]:
    wanted = parse(f"docker://{server.host}/team/tool{what}")
    found = Registry(server.host, login, insecure=True).resolve(wanted)
    return found.digest, found.size


def refusal(server: FakeRegistry, what: str = ":1", login: Login | None = None) -> str:
    with pytest.raises(ImageError) as error:
        resolve(server, what, login)
    return str(error.value).replace(server.host, "HOST")


def test_a_tag_means_a_digest_and_its_layers_a_size(server: FakeRegistry) -> None:
    digest = server.image("1")
    assert resolve(server) == (digest, 8)
    assert resolve(server, f"@{digest}") == (digest, 8)


def test_of_several_architectures_this_nodes_is_taken(server: FakeRegistry) -> None:
    index = {
        "manifests": [
            {
                "digest": server.image("b", OTHER),
                "platform": {"os": "linux", "architecture": OTHER},
            },
            {
                "digest": (mine := server.image("a", size=20)),
                "platform": {"os": "linux", "architecture": HERE},
            },
        ]
    }
    server.put("/v2/team/tool/manifests/1", index)
    assert resolve(server) == (mine, 21)
    index["manifests"].pop()
    server.put("/v2/team/tool/manifests/1", index)
    assert refusal(server) == (
        f"docker://HOST/team/tool:1 is made for {OTHER}, but the node is {HERE}"
    )


def test_an_image_for_another_architecture(server: FakeRegistry) -> None:
    server.image("1", OTHER)
    text = f"docker://HOST/team/tool:1 is made for {OTHER}, but the node is {HERE}"
    assert refusal(server) == text


def test_logging_in_with_a_password(server: FakeRegistry) -> None:
    digest = server.image("1")
    server.challenge, server.wanted = 'Basic realm="x"', f"Basic {LOGIN.basic}"
    assert resolve(server, login=LOGIN)[0] == digest
    assert base64.b64decode(LOGIN.basic) == b"team:s3cret"
    wrong = Login("team", "wrong")
    assert refusal(server, login=wrong).startswith("HOST does not accept your saved login")
    assert refusal(server).startswith("HOST wants a login")


def test_logging_in_with_a_token(server: FakeRegistry) -> None:
    digest = server.image("1")
    realm = f"http://{server.host}/token"
    server.challenge = f'Bearer realm="{realm}",service="reg",scope="repository:team/tool:pull"'
    server.wanted = "Bearer abc"
    server.put("/token", {"token": "abc"})
    assert resolve(server, login=LOGIN)[0] == digest
    asked = [item for item in server.asked if item[0].startswith("/token")]
    query = "/token?service=reg&scope=repository%3Ateam%2Ftool%3Apull"
    assert asked == [(query, f"Basic {LOGIN.basic}")]


def test_a_password_is_not_sent_in_clear_because_a_registry_says_so(server: FakeRegistry) -> None:
    registry = Registry("registry.example.org", LOGIN)
    with pytest.raises(ImageError, match="asks for a login that is not supported"):
        registry._answer(f'Bearer realm="http://{server.host}/token"')
    assert server.asked == []


def test_a_login_is_not_sent_to_where_an_answer_leads(server: FakeRegistry) -> None:
    digest = server.image("1")
    server.challenge, server.wanted = 'Basic realm="x"', f"Basic {LOGIN.basic}"
    blob = next(path for path in server.answers if "blobs/sha256" in path)
    server.answers["/elsewhere"] = server.answers[blob]
    server.redirects[blob] = f"http://localhost:{server.server_port}/elsewhere"
    assert resolve(server, login=LOGIN)[0] == digest
    assert ("/elsewhere", "") in server.asked


def test_answers_that_are_no_images(server: FakeRegistry) -> None:
    assert refusal(server) == "there is no image docker://HOST/team/tool:1"
    server.put("/v2/team/tool/manifests/1", b"<html>")
    assert refusal(server) == "HOST did not answer as a registry does"
    server.put("/v2/team/tool/manifests/1", {"schemaVersion": 1})
    assert "in a format that is too old, or no image" in refusal(server)
    server.put("/v2/team/tool/manifests/1", b"x" * (5 << 20))
    assert refusal(server) == "the registry HOST cannot be reached: its answer is too long"
    other = "sha256:" + "0" * 64
    server.answers[f"/v2/team/tool/manifests/{other}"] = ("application/json", b"{}")
    assert refusal(server, f"@{other}") == f"HOST answered with another image than {other}"


def test_a_registry_that_is_away(server: FakeRegistry) -> None:
    wanted = parse("docker://127.0.0.1:1/a:1")
    with pytest.raises(ImageError, match=r"the registry 127.0.0.1:1 cannot be reached: .*refused"):
        Registry("127.0.0.1:1", None, insecure=True).resolve(wanted)
