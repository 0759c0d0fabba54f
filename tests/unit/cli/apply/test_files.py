"""What `slipway apply` shows of changed files."""

from __future__ import annotations

from pathlib import Path

from portal.cli.apply.files import RenderedFile
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
