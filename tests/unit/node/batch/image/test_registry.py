"""Asking a registry which image a reference means; the registry is a web server in this process."""

from __future__ import annotations

import base64

import pytest

from portal.node.batch.image import ImageError
from portal.node.batch.image.registry import Login, Registry
from portal.node.common.reference import parse
from tests.support.registries import (
    HERE,
    LOGIN,
    OTHER,
    FakeRegistry,
    blob,
    refusal_of,
    resolve_digest,
)


def test_a_tag_means_a_digest_and_its_layers_a_size(server: FakeRegistry) -> None:
    digest = server.image("1")
    assert resolve_digest(server) == (digest, 8)
    assert resolve_digest(server, f"@{digest}") == (digest, 8)


def entry(server: FakeRegistry, digest: str, architecture: str) -> dict[str, object]:
    body = server.answers[f"/v2/team/tool/manifests/{digest}"][1]
    return {**blob(body), "platform": {"os": "linux", "architecture": architecture}}


def test_of_several_architectures_this_nodes_is_taken(server: FakeRegistry) -> None:
    mine = server.image("a", size=20)
    others = [entry(server, server.image("b", OTHER), OTHER), entry(server, mine, "unknown")]
    server.put("/v2/team/tool/manifests/1", {"manifests": [*others, entry(server, mine, HERE)]})
    assert resolve_digest(server) == (mine, 21)
    server.put("/v2/team/tool/manifests/1", {"manifests": others})
    assert refusal_of(server) == (
        f"docker://HOST/team/tool:1 is made for {OTHER}, but the node is {HERE}"
    )


def test_an_image_for_another_architecture(server: FakeRegistry) -> None:
    server.image("1", OTHER)
    text = f"docker://HOST/team/tool:1 is made for {OTHER}, but the node is {HERE}"
    assert refusal_of(server) == text


def test_logging_in_with_a_password(server: FakeRegistry) -> None:
    digest = server.image("1")
    server.challenge, server.wanted = 'Basic realm="x"', f"Basic {LOGIN.basic}"
    assert resolve_digest(server, login=LOGIN)[0] == digest
    assert base64.b64decode(LOGIN.basic) == b"team:s3cret"
    wrong = Login("team", "wrong")
    assert refusal_of(server, login=wrong).startswith("HOST does not accept your saved login")
    assert refusal_of(server).startswith("HOST wants a login")


def test_logging_in_with_a_token(server: FakeRegistry) -> None:
    digest = server.image("1")
    realm = f"http://{server.host}/token"
    server.challenge = f'Bearer realm="{realm}",service="reg",scope="repository:team/tool:pull"'
    server.wanted = "Bearer abc"
    server.put("/token", {"token": "abc"})
    assert resolve_digest(server, login=LOGIN)[0] == digest
    asked = [item for item in server.asked if item[0].startswith("/token")]
    query = "/token?service=reg&scope=repository%3Ateam%2Ftool%3Apull"
    assert asked == [(query, f"Basic {LOGIN.basic}")]


def test_a_token_services_own_query_is_kept(server: FakeRegistry) -> None:
    server.image("1")
    realm = f"http://{server.host}/token?account=a%20b#x"
    server.challenge, server.wanted = f'Bearer realm="{realm}",service="reg"', "Bearer abc"
    server.put("/token", {"access_token": "abc", "token": None})
    resolve_digest(server, login=LOGIN)
    assert ("/token?account=a%20b&service=reg", f"Basic {LOGIN.basic}") in server.asked


def test_a_password_is_not_sent_in_clear_because_a_registry_says_so(server: FakeRegistry) -> None:
    asked = Registry("registry.example.org", LOGIN)
    with pytest.raises(ImageError, match="asks for a login that is not supported"):
        asked._answer(f'Bearer realm="http://{server.host}/token"')
    assert server.asked == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_without_tls_a_password_is_sent_to_the_registry_itself_only(
    server: FakeRegistry, scheme: str
) -> None:
    """Anybody on the way could have named another service."""
    server.image("1")
    server.put("/token", {"token": "abc"})
    realm = f"{scheme}://localhost:{server.server_port}/token"
    server.challenge, server.wanted = f'Bearer realm="{realm}"', "Bearer abc"
    assert refusal_of(server, login=LOGIN) == (
        "the registry HOST, which is asked without TLS, wants logins sent to another host: "
        + realm.replace(server.host, "HOST")
    )
    assert [path for path, _ in server.asked] == ["/v2/team/tool/manifests/1"]


def test_a_login_is_not_sent_to_where_an_answer_leads(server: FakeRegistry) -> None:
    digest = server.image("1")
    server.challenge, server.wanted = 'Basic realm="x"', f"Basic {LOGIN.basic}"
    path = next(path for path in server.answers if "blobs/sha256" in path)
    server.answers["/elsewhere"] = server.answers[path]
    server.redirects[path] = "/elsewhere"
    assert resolve_digest(server, login=LOGIN)[0] == digest
    assert ("/elsewhere", "") in server.asked


def test_what_a_token_service_refuses(server: FakeRegistry) -> None:
    server.image("1")
    server.challenge, server.wanted = f'Bearer realm="http://{server.host}/token"', "Bearer abc"
    assert refusal_of(server) == "the token service of HOST answered 404"
    server.raw["/token"] = [b"HTTP/1.0 403 No\r\n\r\n"]
    assert refusal_of(server).startswith("HOST wants a login. ")
    assert refusal_of(server, login=LOGIN).startswith("HOST does not accept your saved login. ")


def test_answers_that_are_no_images(server: FakeRegistry) -> None:
    assert refusal_of(server) == "there is no image docker://HOST/team/tool:1"
    server.put("/v2/team/tool/manifests/1", b"<html>")
    text = "HOST did not answer as a registry does: it is not valid JSON: line 1, column 1"
    assert refusal_of(server) == text
    server.put("/v2/team/tool/manifests/1", {"schemaVersion": 1})
    assert "in a format that is too old, or no image" in refusal_of(server)
    server.put("/v2/team/tool/manifests/1", b"x" * (5 << 20))
    assert refusal_of(server) == "HOST answered with more than 4194304 bytes"
    other = "sha256:" + "0" * 64
    server.answers[f"/v2/team/tool/manifests/{other}"] = ("application/json", b"{}")
    assert refusal_of(server, f"@{other}") == f"HOST answered with another image than {other}"


def test_a_registry_that_is_away(server: FakeRegistry) -> None:
    wanted = parse("docker://127.0.0.1:1/a:1")
    with pytest.raises(ImageError, match=r"the registry 127.0.0.1:1 cannot be reached: .*refused"):
        Registry("127.0.0.1:1", None, insecure=True).resolve(wanted)
