"""The settings: each is described, and invalid ones are named."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from portal.cli.check import check
from portal.config import Settings, SettingsError, load_settings
from tests.support.paths import ROOT

SITE_APPS = "/usr/share/slipway/apps"
"""Where tests on the cluster put their own apps."""


def models(model: type[BaseModel]) -> list[type[BaseModel]]:
    """A model and its sub-models."""
    inner = [
        inner
        for field in model.model_fields.values()
        for inner in (field.annotation, *get_args(field.annotation))
        if isinstance(inner, type) and issubclass(inner, BaseModel)
    ]
    return [model, *(deeper for found in inner for deeper in models(found))]


@pytest.mark.parametrize("model", models(Settings), ids=lambda model: model.__name__)
def test_every_setting_is_described(model: type[BaseModel]) -> None:
    for name, field in model.model_fields.items():
        assert field.description, f"{model.__name__}.{name} has no description"


def write(tmp_path: Path, text: str) -> str:
    """Write a settings file."""
    file = tmp_path / "slipway.toml"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[web]\npublic = 1", "web.public"),
        ("[slurm]\npoll_seconds = 0", "slurm.poll_seconds"),
        ("[sessions]\ngateway_ports = 5", "sessions.gateway_ports"),
        ("[sessions]\nstorage = '$HOME/x'", "sessions.storage"),
        ("[sessions]\ndotfiles = ['.x', '../.y']", "sessions.dotfiles.1"),
        ("[sessions]\ndotfiles = ['.ssh/..']", "sessions.dotfiles.0"),
        ("[sessions]\ndotfiles = ['.vim rc']", "sessions.dotfiles.0"),
        ("[web", "slipway.toml"),
    ],
)
def test_an_invalid_setting_is_named(tmp_path: Path, text: str, word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        load_settings(write(tmp_path, text))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(SettingsError, match=r"/nowhere/slipway\.toml"):
        load_settings("/nowhere/slipway.toml")


def test_the_port_can_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPWAY_PUBLIC_URL", "http://localhost:9000")
    settings = load_settings(write(tmp_path, "[web]\npublic_url = 'http://localhost:8080'"))
    assert settings.web.public_url == "http://localhost:9000"
    monkeypatch.setenv("SLIPWAY_APPS_PORTS", "11000-11039")
    monkeypatch.setenv("SLIPWAY_SSH_PORTS", "11040-11049")
    web = load_settings(write(tmp_path, "")).web
    assert (web.apps_ports, web.ssh_ports) == ((11000, 11039), (11040, 11049))
    assert web.app_url("11000") == "http://127.0.0.1:11000"
    monkeypatch.setenv("SLIPWAY_APPS", "subdomains")
    web = load_settings(write(tmp_path, "")).web
    assert web.app_url("abc") == "http://abc.apps.localhost:9000"
    monkeypatch.setenv("SLIPWAY_APPS_PORTS", "many")
    with pytest.raises(SettingsError, match=r"web\.apps_ports"):
        load_settings(write(tmp_path, ""))


def test_the_kind_of_home_can_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_settings(write(tmp_path, "")).sessions.home == "session"
    file = write(tmp_path, "[sessions]\nhome = 'persistent'")
    assert load_settings(file).sessions.home == "persistent"
    monkeypatch.setenv("SLIPWAY_SESSION_HOME", "")  # the embedded cluster's way to write "none"
    assert load_settings(file).sessions.home == "persistent"
    monkeypatch.setenv("SLIPWAY_SESSION_HOME", "session")
    assert load_settings(file).sessions.home == "session"
    monkeypatch.setenv("SLIPWAY_SESSION_HOME", "mine")
    with pytest.raises(SettingsError, match=r"sessions\.home: .*'session' or 'persistent'"):
        load_settings(file)


def test_https_can_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPWAY_PUBLIC_URL", "https://localhost:9000")
    monkeypatch.setenv("SLIPWAY_TLS_CERTIFICATE", "/etc/site.pem")
    web = load_settings(write(tmp_path, "")).web
    assert (web.secure, web.tls_certificate) == (True, "/etc/site.pem")
    assert web.app_cookie("abc") == "__Host-slipway_app_abc"
    monkeypatch.setenv("SLIPWAY_TLS_CERTIFICATE", "")  # the embedded cluster's way to write "none"
    assert load_settings(write(tmp_path, "")).web.tls_certificate == ""


@pytest.mark.parametrize(
    ("web", "word"),
    [
        ("apps_host = 'localhost'", "Cookies ignore ports"),
        ("apps_host = 'LOCALHOST'", "Cookies ignore ports"),
        ("apps_host = 'a.example.org:80'", "web.apps_host"),
        ("apps_ports = [8000, 8100]", "apps_ports holds port 8080, which is the portal's"),
        ("apps_ports = [8400, 8500]", "apps_ports holds port 8443"),
        ("public_url = 'http://localhost:10007'", "apps_ports holds port 10007"),
        ("ssh_ports = [10199, 10210]", "overlap"),
        ("ssh_ports = [9000, 10000]", "overlap"),
        ("apps_ports = [10100, 10000]", "first and last port"),
        ("apps_ports = [80, 90]", "from 1024"),
        ("ssh_ports = [65000, 70000]", "ssh_ports is first and last port"),
    ],
)
def test_apps_are_kept_apart_from_the_portal(tmp_path: Path, web: str, word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        load_settings(write(tmp_path, f"[web]\n{web}"))


@pytest.mark.parametrize(
    ("web", "refused"),
    [
        ("public_url = 'http://slipway.example.org'", True),
        ("public_url = 'http://localhost:8080'\napps_host = 'apps.example.org'", True),
        ("apps = 'subdomains'\napps_domain = 'apps.example.org'", True),
        ("public_url = 'http://slipway.example.org'\nplain_http = true", False),
        ("public_url = 'http://portal.localhost:8080'\napps_host = '127.0.0.2'", False),
        ("public_url = 'https://slipway.example.org'\napps_host = 'apps.example.net'", False),
    ],
)
def test_plain_http_is_for_this_machine_only(tmp_path: Path, web: str, refused: bool) -> None:
    text = f"[web]\n{web}"
    if refused:
        with pytest.raises(SettingsError, match="Sec-Fetch"):
            load_settings(write(tmp_path, text))
    else:
        assert load_settings(write(tmp_path, text)).web.host


@pytest.mark.parametrize(
    ("web", "shared"),
    [
        ("apps_host = 'apps.example.org'", "example.org"),
        ("apps = 'subdomains'\napps_domain = 'apps.Example.org'", "example.org"),
        ("apps_host = 'slipway-apps.example.net'", ""),
        ("apps_host = '192.0.2.7'", ""),
    ],
)
def test_apps_should_have_a_domain_of_their_own(tmp_path: Path, web: str, shared: str) -> None:
    text = f"[web]\npublic_url = 'https://slipway.example.org'\n{web}"
    settings = load_settings(write(tmp_path, text))
    assert settings.web.shared_domain == shared
    findings = [finding.text for finding in check(settings) if not finding.ok]
    assert any("a domain of their own" in text for text in findings) is bool(shared)


def test_check_names_plain_http(tmp_path: Path) -> None:
    text = "[web]\npublic_url = 'http://slipway.example.org'\nplain_http = true"
    findings = [finding.text for finding in check(load_settings(write(tmp_path, text)))]
    assert any("https: passwords" in text for text in findings)


def test_names_need_no_ports(tmp_path: Path) -> None:
    text = "[web]\napps = 'subdomains'\napps_host = 'localhost'"
    web = load_settings(write(tmp_path, text)).web
    assert (web.apps, web.pool, web.ssh_host) == ("subdomains", None, "localhost")
    with pytest.raises(SettingsError, match="Cookies ignore ports"):
        load_settings(write(tmp_path, text + "\napps_ports = [9000, 9100]"))


def test_names_and_ports_side_by_side(tmp_path: Path) -> None:
    web = load_settings(
        write(tmp_path, "[web]\napps = 'subdomains'\napps_ports = [9000, 9001]")
    ).web
    assert web.app_url("9000") == "http://127.0.0.1:9000"
    assert web.app_url("abc") == "http://abc.apps.localhost:8080"


@pytest.mark.parametrize("domain", ["localhost", "LocalHost", "portal.example.org", "example.org"])
def test_the_apps_domain_never_contains_the_portal(tmp_path: Path, domain: str) -> None:
    host = domain if domain.lower() == "localhost" else "portal.example.org"
    text = f"[web]\napps = 'subdomains'\napps_domain = '{domain}'\npublic_url = 'https://{host}'"
    with pytest.raises(SettingsError, match="contains the portal"):
        load_settings(write(tmp_path, text))


def test_a_ports_quarantine_outlasts_every_login(tmp_path: Path) -> None:
    """H1: no port is reassigned while open windows still send requests to it."""
    text = "[web]\nlogin_days = {}\nport_quarantine_days = 2"
    assert load_settings(write(tmp_path, text.format(1))).web.login_days == 1
    with pytest.raises(SettingsError, match="port_quarantine_days is 2"):
        load_settings(write(tmp_path, text.format(2)))


def test_the_clusters_own_settings_are_valid() -> None:
    settings = load_settings(str(ROOT / "cluster" / "etc" / "slipway.toml"))
    assert settings.login.host == "login"
    assert settings.sessions.app_folders == (str(ROOT / "portal/data/apps"), SITE_APPS)


def test_folders_of_apps(tmp_path: Path) -> None:
    """The shipped apps, unless `apps` names another folder, then the site's own."""
    ships = str(ROOT / "portal/data/apps")
    for text, folders in {
        "": (ships,),
        "apps = '/a'": ("/a",),
        "site_apps = '/b'": (ships, "/b"),
        "apps = '/a'\nsite_apps = '/b'": ("/a", "/b"),
    }.items():
        loaded = load_settings(write(tmp_path, f"[sessions]\n{text}"))
        assert loaded.sessions.app_folders == folders
