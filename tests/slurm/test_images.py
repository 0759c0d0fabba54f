"""Several environments and versions exist side by side, and the selected one is what runs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.apps import Kernel, Terminal
from tests.support.client import Api

TINY = {"cpus": 1, "memory": "400m"}
SYSTEMS = {
    ("python", "3.13"): "debian-13",
    ("python", "3.11"): "debian-12",
    ("debian", "13"): "debian-13",
    ("debian", "12"): "debian-12",
}
"""Environment and version -> the text expected in their /etc/os-release."""


def inspect(api: Api, session: str, environment: str, version: str) -> None:
    """Inspect a session by its apps."""
    window = Terminal(api.open(session, "terminal"))
    system = window.run('. /etc/os-release; echo "$ID-$VERSION_ID"')
    python = window.run("python -V || echo no-python")
    window.close()
    assert SYSTEMS[environment, version] in system
    if environment != "python":
        assert "no-python" in python
        return
    assert f"Python {version}." in python
    kernel = Kernel(api.open(session, "jupyterlab"))
    code = "import json, sys, numpy; print(json.dumps(list(sys.version_info[:2])))"
    assert ".".join(map(str, kernel.value(code))) == version
    kernel.close()


@pytest.mark.parametrize("environment", ["python", "debian"])
def test_the_selected_version_is_what_runs(alice: Api, environment: str) -> None:
    versions = [version for name, version in SYSTEMS if name == environment]
    sessions = {
        version: alice.launch(environment=environment, version=version, resources=TINY)
        for version in versions
    }
    for version, session in sessions.items():
        running = alice.wait_state(session["id"], "RUNNING")
        assert (running["environment"], running["version"]) == (environment, version)
        inspect(alice, session["id"], environment, version)


def test_without_a_version_the_newest_runs(alice: Api) -> None:
    session = alice.launch(environment="debian", resources=TINY)
    assert session["version"] == "13"


def test_what_the_site_offers(alice: Api) -> None:
    assert set(offered(alice)) >= set(SYSTEMS)
    found = alice.ask("GET", "/environments")["environments"]
    newest = {one["name"]: one["versions"][0]["version"] for one in found}
    assert (newest["python"], newest["debian"]) == ("3.13", "13")
    assert "terminal" in offered(alice)["debian", "12"]
    assert "jupyterlab" not in offered(alice)["debian", "12"]


def offered(api: Api) -> Mapping[tuple[str, str], set[str]]:
    """Environment and version -> the apps they have."""
    return {
        (environment["name"], version["version"]): {app["name"] for app in version["apps"]}
        for environment in api.ask("GET", "/environments")["environments"]
        for version in environment["versions"]
    }
