"""The spec: the portal's output can be parsed, and invalid fields are named."""

from __future__ import annotations

import json

import pytest

from portal.node.runner.__main__ import parse_arguments
from portal.node.runner.spec import SpecError, parse_app_start, parse_spec
from tests.support.runner_apps import APP_SPEC

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"
GOOD: dict[str, object] = {
    "session": "0123456789abcdef0123456789abcdef",
    "token": "a-secret-of-this-session",
    "callback": "https://portal:8443",
    "callback_ca": PEM,
    "client_ca": PEM,
    "ports": [10000, 10100],
    "heartbeat_seconds": 10,
    "apps": ["jupyterlab", "terminal"],
}


def test_valid_spec_is_read_completely() -> None:
    spec = parse_spec(json.dumps({**GOOD, "start": [APP_SPEC]}) + "\n")
    assert spec.callback == ("portal", 8443)
    assert spec.ports == (10000, 10100)
    assert spec.apps == ("jupyterlab", "terminal")
    assert spec.client_ca == PEM + "\n"
    assert [app.name for app in spec.start] == ["jupyterlab"]


def test_variables_and_shared_memory() -> None:
    spec = parse_spec(json.dumps(GOOD))
    assert (spec.env, spec.shared_memory) == ({}, None)
    more = {"env": {"A": "b\nc"}, "shared_memory": {"mb": 64, "must": True}}
    spec = parse_spec(json.dumps({**GOOD, **more}))
    assert spec.env == {"A": "b\nc"}
    assert spec.shared_memory is not None
    assert (spec.shared_memory.mb, spec.shared_memory.must) == (64, True)


def test_a_share_of_a_gpu() -> None:
    assert not parse_spec(json.dumps(GOOD)).gpu
    assert parse_spec(json.dumps({**GOOD, "gpu": True})).gpu


def test_apps_to_detect() -> None:
    assert parse_spec(json.dumps(GOOD)).detect == {}
    probes = {"jupyterlab": ["jupyter-lab", "/opt/lab"], "terminal": []}
    found = parse_spec(json.dumps({**GOOD, "detect": probes})).detect
    assert found == {"jupyterlab": ("jupyter-lab", "/opt/lab"), "terminal": ()}


def test_fields_of_a_later_portal_are_ignored() -> None:
    assert parse_spec(json.dumps({**GOOD, "colour": "blue"})).heartbeat_seconds == 10


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("session", "0123"),
        ("session", "../../../../etc/passwd0123456789"),
        ("session", None),
        ("token", ""),
        ("token", "with blank and\nnewline"),
        ("callback", "http://portal:8443"),
        ("callback", "https://user@portal"),
        ("callback", "https://portal:8443/elsewhere"),
        ("callback_ca", "not a certificate"),
        ("client_ca", 7),
        ("ports", [2000, 1000]),
        ("ports", [0, 1000]),
        ("ports", [1000]),
        ("ports", [1000, 70000]),
        ("ports", "1000-2000"),
        ("heartbeat_seconds", 0),
        ("heartbeat_seconds", True),
        ("heartbeat_seconds", "10"),
        ("apps", "jupyterlab"),
        ("apps", ["jupyterlab", "jupyterlab"]),
        ("apps", ["control"]),
        ("apps", ["../evil"]),
        ("start", [{**APP_SPEC, "name": "tensorboard"}]),
        ("start", {}),
        ("detect", []),
        ("detect", {"jupyterlab": "jupyter-lab"}),
        ("detect", {"jupyterlab": [7]}),
        ("env", []),
        ("env", {"A": 1}),
        ("env", {"A": "a-secret\0"}),
        ("env", {"A=B": "a-secret"}),
        ("shared_memory", 64),
        ("shared_memory", {"mb": 0}),
        ("shared_memory", {"mb": True}),
        ("shared_memory", {"mb": "64"}),
        ("gpu", 1),
        ("gpu", "yes"),
    ],
)
def test_invalid_spec_names_the_field(field: str, value: object) -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec(json.dumps({**GOOD, field: value}))
    assert caught.value.field == field
    assert "a-secret" not in str(caught.value)


@pytest.mark.parametrize("field", list(GOOD))
def test_missing_field_is_named(field: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec(json.dumps({key: value for key, value in GOOD.items() if key != field}))
    assert caught.value.field == field


@pytest.mark.parametrize("text", ["", "{", "[]", '"spec"', "null"])
def test_not_an_object(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec(text)
    assert caught.value.field == "spec"


@pytest.mark.parametrize(
    ("field", "value"),
    [("ready", "api"), ("ready", "/a b"), ("ready", ""), ("script", ""), ("timeout", -1)],
)
def test_invalid_app_start_names_the_field(field: str, value: object) -> None:
    with pytest.raises(SpecError) as caught:
        parse_app_start({**APP_SPEC, field: value})
    assert caught.value.field == field


def test_arguments() -> None:
    values = parse_arguments(["--job-id", "12", "--node", "n1"])
    assert (values["job-id"], values["node"], values["seen"]) == ("12", "n1", "")
    seen = parse_arguments(["--job-id", "12", "--node", "n1", "--seen", "1:2 /a b", "--seen", "x"])
    assert seen["seen"].split("\0")[1:] == ["1:2 /a b", "x"]
    for wrong in (["--job-id"], ["--job-id", "12"], ["--colour", "blue"], ["job-id", "12"]):
        with pytest.raises(SpecError):
            parse_arguments(wrong)


def test_where_packages_may_be_kept() -> None:
    assert parse_spec(json.dumps(GOOD)).packages is None, "a spec of an earlier portal has none"
    kept = {"name": "python-3.13", "folders": ["data", "/lustre/alice/maps", ""]}
    packages = parse_spec(json.dumps({**GOOD, "packages": kept})).packages
    assert packages is not None
    assert (packages.name, packages.folders) == ("python-3.13", tuple(kept["folders"]))
    for wrong in ("data", {"name": "a/b", "folders": []}, {"name": "a"}):
        with pytest.raises(SpecError):
            parse_spec(json.dumps({**GOOD, "packages": wrong}))


def test_the_start_directory() -> None:
    assert parse_spec(json.dumps(GOOD)).workdir == "", "a spec of an earlier portal has none"
    assert parse_spec(json.dumps({**GOOD, "workdir": "data"})).workdir == "data"
    with pytest.raises(SpecError, match="workdir"):
        parse_spec(json.dumps({**GOOD, "workdir": ["data"]}))
