"""What `slipway apply` shows of changed files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.cli.apply.files import RenderedFile, rendered_files
from portal.cli.render import haproxy_config
from tests.unit.web.front import make_settings


def shown(before: str, after: str) -> list[str]:
    return list(RenderedFile(Path("/etc/slipway/haproxy.cfg"), after, before).diff())


def test_another_name_hides_no_other_change(tmp_path: Path) -> None:
    """It is on the pages of errors, which several backends have."""
    before = haproxy_config(make_settings(tmp_path))
    after = haproxy_config(make_settings(tmp_path, site_name="Campus", requests_at_once=150))
    lines = shown(before, after)
    assert any("sc0_conn_cur gt 150" in line for line in lines)
    assert any(line.startswith("+") and "Campus" in line for line in lines)
    assert not any("more lines" in line for line in lines)
    assert len(lines) == len({*lines}), "each line once"


def test_long_lines_and_many_lines_are_cut() -> None:
    lines = shown("", "\n".join(f"{number} {'x' * 1000}" for number in range(500)))
    assert len(lines) == 101
    assert max(map(len, lines)) == 301
    assert lines[-1].startswith("… ")


def test_a_new_file_is_said_to_be_new() -> None:
    file = RenderedFile(Path("/etc/x"), "text", None)
    assert list(file.diff()) == ["/etc/x: new"]


@pytest.mark.parametrize("mode", [0o755, 0o775])
def test_root_reads_no_secret_through_another_accounts_link(tmp_path: Path, mode: int) -> None:
    """The earlier file is kept beside the new one, where everybody may read it."""
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "haproxy.cfg").symlink_to(tmp_path / "secret")
    settings = make_settings(tmp_path)
    service = settings.service.model_copy(
        update={"haproxy_config": str(folder / "haproxy.cfg"), "supervisor": "none"}
    )
    settings = settings.model_copy(update={"service": service})
    (file,) = rendered_files(settings)
    assert file.before == "secret", "a link of root's own in its own folder"
    if mode & 0o020:
        folder.chmod(mode)
    else:
        os.chown(folder, 12345, -1)
    with pytest.raises(OSError, match="symbolic links"):
        rendered_files(settings)
