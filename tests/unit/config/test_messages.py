"""Wrong settings are named by their key, in TOML's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.config import SettingsError, load_settings


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[web]\nlissten = 'x'", "web.lissten: there is no such setting; did you mean listen?"),
        ("[web]\ncallback = 'x'", "web.callback: there is no such setting; did you mean sessions."),
        ("[wep]\nlisten = 'x'", "wep: there is no such setting; did you mean web?"),
        ("[web]\nfoo = 1", "web.foo: there is no such setting"),
        ('[web]\nlisten = "x\nport = 1', "at line 2"),
        ("[web]\napps_ports = '20000-20039'", "web.apps_ports: must be two numbers"),
        ("[web]\napps_ports = [20000]", "web.apps_ports: must be two numbers"),
        ("[web]\nssh_ports = ['a', 'b']", "first and last, as [20000, 20039]"),
        ("[sessions]\ngateway_ports = [200, 100]", "sessions.gateway_ports: the first port, 200"),
        ("[sessions]\ngateway_ports = [1, 5]", "sessions.gateway_ports: must be first and last"),
        ("[files]\nports = [3000, 2000]", "files.ports: the first port, 3000"),
        ("[slurm]\nadmins = 'alice'", 'slurm.admins: must be a list, as ["one", "two"]'),
        ("[slurm]\npoll_seconds = 'often'", "slurm.poll_seconds: must be a number"),
        ("[login]\naccount_pattern = '.*'", "login.account_pattern: permits names with"),
        ("[login]\naccount_pattern = '[a-z'", "account_pattern: is not a regular expression"),
        ("[login]\nport = 'ssh'", "login.port: must be a whole number"),
        ("[login]\nhost = 22", "login.host: must be a text in quotes"),
        ("[web]\nplain_http = 'maybe'", "web.plain_http: must be true or false"),
        ("web = 'x'", "web: must be a section, [web]"),
        ("[[gpu.kinds]]\nname = 'a'", "gpu.kinds.0.memory: is missing"),
        ("[[gpu.kinds]]\nmemory = '80 gigs'", "gpu.kinds.0.memory: "),
        ("[[gpu.kinds]]\nmemory = '8g'\ntitel = 'x'", "did you mean title?"),
        ("[sessions]\nstorage = '../../etc'", 'sessions.storage: must not contain ".."'),
        ("[sessions]\ndirectory = '/abs'", "sessions.directory: "),
        ("[sessions]\ndirectory = 'a/../b'", 'sessions.directory: must not contain ".."'),
        ("[files.roots]\nx = '/a/../b'", 'files.roots.x: must not contain ".."'),
        (
            "[[files.links]]\ntitle = 'x'\narea = 'scratch'\nurl = 'https://a.b/{path}'",
            "files: links.0.area: there is no area “scratch”",
        ),
        ("[files]\nfetch_hosts = ['https://a.b']", "files.fetch_hosts.0: must be a host, such as"),
        ("[files]\nfetch_hosts = ['a.*']", "files.fetch_hosts.0: must be a host, such as"),
        ("[files]\nfetch_proxy = 'proxy:3128'", 'files.fetch_proxy: must be as "http://proxy.'),
        ("[images]\nfolders = ['/a/..']", 'images.folders.0: must not contain ".."'),
        ("[sessions]\ncallback = 'http://portal:8443'", 'must be "https://host"'),
        ("[sessions]\ncallback = 'portal:8443'", 'must be "https://host"'),
        ("[web]\npublic_url = 'portal.example.org'", "must begin with https://"),
        ("[web]\npublic_url = 'https://portal.example.org/slipway'", "no path after the host"),
        ("[web]\npublic_url = 'https://a.example.org'\napps_host = 'a.example.org'", "own host"),
        (
            "[web]\npublic_url = 'https://a.example.org'\napps = 'subdomains'\n"
            "apps_domain = 'example.org'",
            "contains the portal",
        ),
        ("[web]\napps_ports = [8000, 8100]", "apps_ports holds port 8080"),
        ("[web]\napps_ports = [9000, 8990]", "apps_ports is first and last port"),
    ],
)
def test_what_is_said(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "slipway.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_settings(str(file))
    said = str(caught.value)
    assert said.startswith(str(file))
    assert words in said
    assert "Value error" not in said and "tuple" not in said and "Input should" not in said


def test_every_wrong_setting_is_named_once(tmp_path: Path) -> None:
    file = tmp_path / "slipway.toml"
    file.write_text("[web]\nssh_ports = ['a', 'b']\nlissten = 'x'\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(str(file))
    assert str(caught.value).count("ssh_ports") == 1
    assert "lissten" in str(caught.value)
