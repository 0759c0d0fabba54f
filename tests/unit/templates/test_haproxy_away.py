"""What browsers read while the portal or a session's node does not answer: the site's own page."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.unit.web.front import make_settings, render, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

NAME = """O'Ní "HPC" <b> & #1 $HOME %[src] \\ x"""
WRITTEN = "O&#39;Ní &#34;HPC&#34; &lt;b&gt; &amp; #1 $HOME %[src] \\ x"
COLOURS: dict[str, Any] = {"accent": "#7a1f5c", "accent_dark": "#e7a6d0"}


def test_both_pages_have_the_sites_name_and_colours(tmp_path: Path) -> None:
    with running_front(tmp_path, "ports", site_name=NAME, **COLOURS) as front:
        front.routes.add(front.key, front.target)
        front.gateway.shutdown()
        front.gateway.server_close()
        session = front.app()
        front.portal.shutdown()
        front.portal.server_close()
        (tmp_path / "portal.sock").unlink()
        portal = front.ask(f"localhost:{front.port}", "/sessions")
    for answer, title in (
        (portal, "The portal does not answer"),
        (session, "This session does not answer"),
    ):
        assert answer.status == 503
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-store"
        assert f"<title>{title} · {WRITTEN}</title>" in answer.text
        assert f"<span>{WRITTEN}</span>" in answer.text
        assert "Slipway" not in answer.text
        assert all(f"--mark: {colour};" in answer.text for colour in COLOURS.values())
        assert answer.text.startswith("<!doctype html>")
        assert answer.text.endswith("</html>")


def test_slipways_mark_does_not_stand_beside_the_sites_own(tmp_path: Path) -> None:
    ours = render(make_settings(tmp_path))
    theirs = render(make_settings(tmp_path, logo="/etc/slipway/logo.svg"))
    assert "<svg" in ours
    assert "<svg" not in theirs
    assert "<span>Slipway</span>" in ours


def test_a_change_of_the_name_changes_the_file_that_apply_compares(tmp_path: Path) -> None:
    before, after = (
        [
            line
            for line in render(make_settings(tmp_path, site_name=name)).splitlines()
            if "503" in line
        ]
        for name in ("Slipway", "Example HPC")
    )
    changed = [line for line, other in zip(after, before, strict=True) if line != other]
    assert len(changed) >= 2
    assert all("Example HPC" in line for line in changed)
