"""JupyterHub's servers: whose paths are whose, and which variables they may have."""

from __future__ import annotations

import pytest

from portal.core.launch.hub import MAX_VARIABLES, check_prefix
from portal.core.launch.request import parse_launch
from portal.errors import InvalidRequest

LAUNCH = {"environment": "python", "resources": {"memory": "1g"}}


@pytest.mark.parametrize(
    ("prefix", "base_url"),
    [
        ("/user/alice/", "/"),
        ("/user/alice/second/", "/"),
        ("/user/alice/a.b~c%20d/", "/"),
        ("/hub/user/alice/", "/hub/"),
    ],
)
def test_users_have_their_own_paths(prefix: str, base_url: str) -> None:
    assert check_prefix(prefix, "alice", base_url) == []


@pytest.mark.parametrize(
    "prefix",
    [
        "/user/bob/",
        "/user/alice",
        "/user/alice/../",
        "/user/alice/./",
        "/user/alice/a/b/",
        "/user/alice/%2e%2e/",
        "/user/alice/.%2E/",
        "/user/alice/%2Fbob/",
        "/user/alice/..%2Fbob/",
        "/user/alice/%61/",
        "/user/alice//",
        "/user/alice2/",
        "/user/alic%65/",
        "/",
        "/hub/user/alice/",
    ],
)
def test_nobody_claims_another_path(prefix: str) -> None:
    (wrong,) = check_prefix(prefix, "alice", "/")
    assert wrong.field == "hub.prefix"
    assert wrong.message == "this must be /user/alice/, or /user/alice/NAME/ for a named server"


def test_names_are_escaped_as_jupyterhub_does() -> None:
    assert check_prefix("/user/alice@example.org/", "alice@example.org", "/") == []
    assert check_prefix("/user/a%2Bb/", "a+b", "/") == []
    assert check_prefix("/user/a+b/", "a+b", "/") != []


@pytest.mark.parametrize(
    ("hub", "field", "text"),
    [
        ({"prefix": "/user/a b/"}, "hub.prefix", "write the server's path: /user/NAME/"),
        ({"prefix": "/user/a\n/"}, "hub.prefix", "write the server's path: /user/NAME/"),
        ({"prefix": "//"}, "hub.prefix", "write the server's path: /user/NAME/"),
        ({"prefix": "/" + "x" * 200 + "/"}, "hub.prefix", "use up to 200 characters"),
        ({}, "hub.prefix", "this is needed"),
        (
            {"prefix": "/user/a/", "env": {"LD_PRELOAD": "x"}},
            "hub.env",
            "LD_PRELOAD is not one of JupyterHub's variables for its servers",
        ),
        (
            {"prefix": "/user/a/", "env": {"JUPYTER_CONFIG_DIR": "x"}},
            "hub.env",
            "JUPYTER_CONFIG_DIR is not one of JupyterHub's variables for its servers",
        ),
        (
            {"prefix": "/user/a/", "env": {"JUPYTERHUB_API_TOKEN": "a\nb"}},
            "hub.env",
            "JUPYTERHUB_API_TOKEN: use up to 16384 printable characters",
        ),
        (
            {"prefix": "/user/a/", "env": {f"JUPYTERHUB_{n}": "" for n in range(99)}},
            "hub.env",
            f"these are too many; there may be {MAX_VARIABLES}",
        ),
    ],
)
def test_wrong_fields_are_named(hub: object, field: str, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_launch({**LAUNCH, "hub": hub})
    assert [(wrong.field, wrong.message) for wrong in caught.value.errors] == [(field, text)]


def test_one_session_for_each_server() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_launch({**LAUNCH, "count": 2, "hub": {"prefix": "/user/a/"}})
    (wrong,) = caught.value.errors
    assert (wrong.field, wrong.message) == ("count", "JupyterHub starts one session at a time")


def test_the_token_is_not_in_its_representation() -> None:
    request = parse_launch(
        {**LAUNCH, "hub": {"prefix": "/user/a/", "env": {"JUPYTERHUB_API_TOKEN": "secret1"}}}
    )
    assert "secret1" not in repr(request)
