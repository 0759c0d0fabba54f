"""The administrator's command."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509

from portal.adapters.host_names import names_of
from portal.cli.main import main


def test_init_creates_everything_once(config: str, tmp_path: Path) -> None:
    for _ in range(2):
        assert main(["--config", config, "init"]) == 0
    state = tmp_path / "state"
    assert (state / "slipway.db").stat().st_mode & 0o077 == 0
    assert (state / "secret_key").stat().st_mode & 0o077 == 0
    assert (tmp_path / "run" / "routes.map").exists()


def test_a_new_key_joins_the_old_ones(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", config, "init"]) == 0
    (first,) = (tmp_path / "state" / "keys").iterdir()
    assert main(["--config", config, "rotate-keys"]) == 0
    keys = sorted((tmp_path / "state" / "keys").iterdir())
    assert (keys[0], len(keys)) == (first, 2)
    assert {file.stat().st_mode & 0o777 for file in keys} == {0o600}
    for file in keys:
        file.unlink()
    capsys.readouterr()
    main(["--config", config, "check"])
    assert "MISSING 0 keys for values" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("what", "words"),
    [("haproxy", "routes.map"), ("systemd", "slipway web"), ("gpu", '"kinds": []')],
)
def test_render(config: str, capsys: pytest.CaptureFixture[str], what: str, words: str) -> None:
    assert main(["--config", config, "render", what]) == 0
    assert words in capsys.readouterr().out


def test_check_reports_what_is_missing(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", config, "check"]) == 1
    assert "run `slipway init`" in capsys.readouterr().out
    main(["--config", config, "init"])
    assert main(["--config", config, "check"]) == 1
    output = capsys.readouterr().out
    assert "MISSING 0 images" in output
    assert "is not a host key" in output


def test_invalid_settings_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "slipway.toml"
    file.write_text("[web]\ncolour = 'red'")
    assert main(["--config", str(file), "init"]) == 2
    assert "web.colour" in capsys.readouterr().err


def test_an_invalid_app_is_shown_with_its_line_and_others_are_listed(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("good", "title = 'Good'\ncommand = 'x'"), ("bad", "title = 'Bad'\nx = 1")):
        (tmp_path / "apps" / name).mkdir(parents=True)
        (tmp_path / "apps" / name / "app.toml").write_text(text)
    (tmp_path / "images" / "plain" / "1").mkdir(parents=True)
    (tmp_path / "images" / "plain" / "1" / "image.sif").touch()
    (tmp_path / "images" / "plain" / "1" / "image.toml").write_text("title = 'Plain'")
    main(["--config", config, "init"])
    assert main(["--config", config, "check"]) == 1
    output = capsys.readouterr().out
    assert "ok      1 apps in" in output
    assert "MISSING" in output
    assert "bad/app.toml, line 2: x: there is no such field" in output
    assert main(["--config", config, "apps"]) == 0
    assert capsys.readouterr().out.split() == ["good", "Good", "plain/1"]


def server_names(tmp_path: Path) -> list[str]:
    """The hosts that the certificate for callbacks is for."""
    file = tmp_path / "state" / "ca" / "server.pem"
    return names_of(x509.load_pem_x509_certificates(file.read_bytes())[0])


def test_init_renews_the_certificate_when_the_callback_has_another_host(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", config, "init"]) == 0
    assert server_names(tmp_path) == ["portal"]
    file = tmp_path / "state" / "ca" / "server.pem"
    before = file.read_bytes()
    text = Path(config).read_text()
    for address in ("10.1.2.3", "[2001:db8::1]"):
        capsys.readouterr()
        Path(config).write_text(
            text.replace("[sessions]", f'[sessions]\ncallback = "https://{address}:8443"')
        )
        assert main(["--config", config, "init"]) == 0
        assert "now reload slipway-proxy" in capsys.readouterr().out
        assert server_names(tmp_path) == [address.strip("[]")]
        assert main(["--config", config, "init"]) == 0
        assert "reload" not in capsys.readouterr().out
    assert file.read_bytes() != before
    assert file.stat().st_mode & 0o777 == 0o600
    assert (file.parent / "user_ca.pub").stat().st_mode & 0o777 == 0o644


def test_init_says_which_folder_it_cannot_make(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    text = Path(config).read_text()
    Path(config).write_text(text.replace(str(tmp_path / "run"), str(tmp_path / "file" / "run")))
    assert main(["--config", config, "init"]) == 1
    said = capsys.readouterr().err
    assert "install -d -m 700 -o" in said and "Traceback" not in said
    # Nothing was made half.
    assert not (tmp_path / "state" / "slipway.db").exists()


def test_a_wrong_database_is_a_sentence(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = Path(config).read_text()
    Path(config).write_text(text.replace("[state]", "[state]\ndatabase = 'postgres://a:b@c/d'"))
    assert main(["--config", config, "init"]) == 1
    assert "slipway: state.database: postgres:// is not known" in capsys.readouterr().err
