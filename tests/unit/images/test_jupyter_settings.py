"""Users' settings of Jupyter's and the session's own, joined as Jupyter loads its files."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from traitlets import Dict, Unicode
from traitlets.config import Application, Config
from traitlets.config.configurable import Configurable

from tests.support.paths import ROOT

SETTINGS = ROOT / "images" / "toolkit" / "jupyter" / "settings.py"
OURS = f"""
import runpy
runpy.run_path({str(SETTINGS)!r})["join"](
    get_config(),
    ["--ServerApp.base_url=/", "--PasswordIdentityProvider.hashed_password="],
    {{
        ("ServerApp", "tornado_settings"): ({{}}, {{"ws_ping_interval": 0}}),
        ("ServerApp", "terminado_settings"): ({{"shell_command": ["/bin/bash"]}}, {{}}),
    }},
)
"""
COMMAND_LINE = ["--ServerApp.base_url=/", "--PasswordIdentityProvider.hashed_password="]


class PasswordIdentityProvider(Configurable):
    """As Jupyter's."""

    hashed_password = Unicode("").tag(config=True)


class ServerApp(Application):
    """As Jupyter's: files, and then once more the command line."""

    classes = [PasswordIdentityProvider]  # noqa: RUF012 - as traitlets has it
    base_url = Unicode("/own").tag(config=True)
    tornado_settings = Dict().tag(config=True)
    terminado_settings = Dict().tag(config=True)


def load(tmp_path: Path, user: str) -> ServerApp:
    """The server with the user's file, of lower priority than ours."""
    for name, text in (("user", user), ("ours", OURS)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "jupyter_server_config.py").write_text(text)
    app = ServerApp()
    app.parse_command_line(COMMAND_LINE)
    command_line = Config(app.config)
    app.load_config_file("jupyter_server_config", path=[f"{tmp_path}/ours", f"{tmp_path}/user"])
    app.update_config(command_line)
    return app


def values(app: ServerApp) -> dict[str, Any]:
    return {
        "base_url": app.base_url,
        "tornado": dict(app.tornado_settings),
        "terminado": dict(app.terminado_settings),
        "password": PasswordIdentityProvider(parent=app).hashed_password,
    }


def test_without_settings_of_the_users_ours_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert values(load(tmp_path, "")) == {
        "base_url": "/",
        "tornado": {"ws_ping_interval": 0},
        "terminado": {"shell_command": ["/bin/bash"]},
        "password": "",
    }
    assert capsys.readouterr().err == ""


def test_dictionaries_are_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    user = """
c = get_config()
c.ServerApp.tornado_settings = {'websocket_max_message_size': 209715200}
c.ServerApp.terminado_settings = {'shell_command': ['/bin/zsh'], 'term_settings': {}}
"""
    found = values(load(tmp_path, user))
    assert found["tornado"] == {"websocket_max_message_size": 209715200, "ws_ping_interval": 0}
    assert found["terminado"] == {"shell_command": ["/bin/zsh"], "term_settings": {}}
    assert capsys.readouterr().err == ""


def test_additions_to_dictionaries_are_merged_as_well(tmp_path: Path) -> None:
    user = "get_config().ServerApp.tornado_settings.update({'headers': {}})\n"
    assert values(load(tmp_path, user))["tornado"] == {"headers": {}, "ws_ping_interval": 0}


@pytest.mark.parametrize(
    ("user", "name"),
    [
        ("c.ServerApp.base_url = '/me/'", "ServerApp.base_url"),
        (
            "c.PasswordIdentityProvider.hashed_password = 'argon2:secret'",
            "PasswordIdentityProvider.hashed_password",
        ),
        (
            "c.IdentityProvider.hashed_password = 'argon2:secret'",
            "IdentityProvider.hashed_password",
        ),
        (
            "c.ServerApp.tornado_settings = {'ws_ping_interval': 30}",
            "ServerApp.tornado_settings['ws_ping_interval']",
        ),
    ],
)
def test_what_is_not_used_is_said_and_never_its_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], user: str, name: str
) -> None:
    found = values(load(tmp_path, f"c = get_config()\n{user}\n"))
    assert (found["base_url"], found["password"]) == ("/", "")
    assert found["tornado"] == {"ws_ping_interval": 0}
    said = capsys.readouterr().err
    assert said.startswith(f"Slipway: {name} in your Jupyter settings is not used in sessions")
    assert said.count("\n") == 1
    assert "secret" not in said


def test_options_are_read_from_the_command_line() -> None:
    fixed_by = runpy.run_path(str(SETTINGS))["fixed_by"]
    options = ["--ServerApp.root_dir=/a=b", "--no-browser", "--ServerApp.token=", "path", "--a=b"]
    assert list(fixed_by(options)) == [
        ("ServerApp", "root_dir", "/a=b"),
        ("ServerApp", "token", ""),
    ]
