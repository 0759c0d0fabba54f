"""What the spawner sends: the user's options, the site's, and the server's variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portal.hub.launch import Certificate, server, site_variables, with_site_defaults

GB = 2**30


def test_users_choose_neither_the_path_nor_the_number() -> None:
    options = {"environment": "python", "hub": {"prefix": "/user/bob/"}, "count": 9}
    assert with_site_defaults(options, {}, None, None) == {"environment": "python"}


@pytest.mark.parametrize(
    ("options", "cpus", "memory", "resources"),
    [
        ({}, 1.5, 2 * GB, {"memory": "2048m", "cpus": 2}),
        ({}, None, GB, {"memory": "1024m"}),
        ({"resources": {"memory": "1g"}}, 4, 2 * GB, {"memory": "1g"}),
        ({"resources": "wrong"}, 4, 2 * GB, "wrong"),
        ({"template": "small"}, 4, 2 * GB, None),
        ({}, 4, None, None),
    ],
)
def test_the_sites_limits_are_for_those_who_choose_nothing(
    options: dict[str, Any], cpus: float | None, memory: int | None, resources: Any
) -> None:
    assert with_site_defaults(options, {}, cpus, memory).get("resources") == resources


def test_the_sites_variables_win() -> None:
    chosen = {"env": {"A": "mine", "B": "mine"}}
    found = with_site_defaults(chosen, {"A": "site", "C": "site"}, None, None)
    assert found["env"] == {"A": "site", "B": "mine", "C": "site"}
    assert chosen == {"env": {"A": "mine", "B": "mine"}}


def test_wrong_variables_are_left_for_the_portal_to_name() -> None:
    assert with_site_defaults({"env": [1]}, {"A": "1"}, None, None)["env"] == [1]


def test_only_jupyterhubs_variables_reach_its_server() -> None:
    env = {"JUPYTERHUB_API_TOKEN": "t", "JPY_API_TOKEN": "t", "PATH": "/bin", "MEM_LIMIT": "1"}
    assert server("/user/a/", env, None) == {
        "prefix": "/user/a/",
        "env": {"JUPYTERHUB_API_TOKEN": "t", "JPY_API_TOKEN": "t"},
    }


def test_subclasses_that_add_variables_have_them_sent() -> None:
    env = {"SITE": "x", "JUPYTERHUB_USER": "alice", "JPY_API_TOKEN": "y"}
    limits = {"MEM_LIMIT": "1", "MEM_GUARANTEE": "1", "CPU_LIMIT": "1.0", "CPU_GUARANTEE": "1.0"}
    assert site_variables(env | limits) == {"SITE": "x"}


def test_a_certificate_travels_as_its_contents(tmp_path: Path) -> None:
    paths = {}
    for name in ("keyfile", "certfile", "cafile"):
        path = tmp_path / name
        path.write_text(f"-----BEGIN {name}-----\nabc\n-----END-----\n")
        paths[name] = str(path)
    # JupyterHub's own variables name files of its machine.
    env = {
        "JUPYTERHUB_SSL_KEYFILE": paths["keyfile"],
        "JUPYTERHUB_SSL_CERTFILE": paths["certfile"],
        "JUPYTERHUB_SSL_CLIENT_CA": paths["cafile"],
    }
    assert server("/user/a/", env, Certificate.read(paths))["env"] == {
        "JUPYTERHUB_SSL_KEYFILE_PEM": "-----BEGIN keyfile-----\\nabc\\n-----END-----",
        "JUPYTERHUB_SSL_CERTFILE_PEM": "-----BEGIN certfile-----\\nabc\\n-----END-----",
        "JUPYTERHUB_SSL_CLIENT_CA_PEM": "-----BEGIN cafile-----\\nabc\\n-----END-----",
    }
