"""Banners on all pages, the administrators' forms for them, maintenance in the review, branding."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import text

from portal.core.cluster.limits import Reservation
from portal.core.cluster.node_use import NodeUse
from portal.web.app import create_app
from tests.support.fakes import World, make_world
from tests.unit.web.conftest import Browser, make_settings

FORM = {"text": "Course <b>on</b> Friday", "level": "warning", "dismissable": "on"}
LAUNCH_FORM = {"environment": "python", "resources.cpus": "1", "resources.memory": "600 MB"}
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


@pytest.fixture
def admin(app: Flask, world: World) -> Browser:
    world.worker.read_partitions()
    world.worker.read_limits()
    return Browser(app).log_in("admin")


def test_a_banner_is_written_shown_and_deleted(app: Flask, admin: Browser, alice: Browser) -> None:
    link = {"link.title": "Register", "link.url": "https://example.org/c"}
    assert admin.post("/admin/announcements", FORM | link).status_code == 303
    shown = alice.get("/sessions").text
    assert "Course &lt;b&gt;on&lt;/b&gt; Friday" in shown
    assert '<a href="https://example.org/c">Register</a>' in shown
    assert 'class="banners" role="status"' in shown
    assert "Course" not in Browser(app).get("/login").text
    page = admin.get("/admin/announcements").text
    found = re.search(r'data-announcement="([0-9a-f]+)"', page)
    assert found is not None
    edit = admin.get(f"/admin/announcements/{found[1]}/edit").text
    seen = re.search(r'name="seen" value="([0-9a-f]+)"', edit)
    assert seen is not None
    path = f"/admin/announcements/{found[1]}"
    changed = {"text": "Moved", "level": "information", "on_login": "on", "seen": seen[1]}
    assert admin.post(path, changed).status_code == 303
    assert "Moved" in Browser(app).get("/login").text
    assert admin.post(path, changed).status_code == 409
    assert admin.post(f"{path}/delete").status_code == 303
    assert "Moved" not in alice.get("/sessions").text


def test_a_refused_form_keeps_what_was_entered(admin: Browser) -> None:
    wrong = {"text": "x", "level": "information", "link.title": "Help", "link.url": "help"}
    times = {"starts": "2026-11-21T13:00:00.000+01:00", "ends": "2026-11-21T12:00"}
    page = admin.post("/admin/announcements", wrong | times)
    assert page.status_code == 422
    assert 'id="error-link-url"' in page.text
    assert 'id="error-ends"' in page.text
    assert page.text.count('value="2026-11-21T12:00"') == 2


def test_maintenance_is_on_all_pages(app: Flask, admin: Browser, alice: Browser) -> None:
    wrong = admin.post("/admin/maintenance", {"until": "2026-11-20T11:00", "message": ""})
    assert wrong.status_code == 422
    assert 'id="error-message"' in wrong.text
    body = {"until": "2026-11-20T13:00", "message": "New disks"}
    assert admin.post("/admin/maintenance", body).status_code == 303
    for page in (alice.get("/sessions"), Browser(app).get("/login"), alice.get("/nowhere")):
        assert "New disks" in page.text
    review = alice.post("/sessions/new/review", LAUNCH_FORM).text
    assert "queue and starts then" in review
    assert admin.post("/admin/maintenance/end").status_code == 303
    assert "New disks" not in alice.get("/sessions").text


def test_the_review_says_that_nothing_can_be_launched(admin: Browser, alice: Browser) -> None:
    admin.post("/admin/maintenance", {"message": "New disks"})
    assert "its end is not known yet" in alice.post("/sessions/new/review", LAUNCH_FORM).text
    refused = alice.post("/sessions", LAUNCH_FORM | {"confirmed": "on"})
    assert refused.status_code == 503
    assert "New disks" in refused.text


def test_the_review_warns_of_slurms_maintenance(
    admin: Browser, alice: Browser, world: World
) -> None:
    del admin
    limits, begins = world.status.reported().limits, world.clock() + timedelta(minutes=200)
    assert limits is not None
    planned = Reservation("m", begins, begins + timedelta(hours=6), nodes=("n1",), flags=("MAINT",))
    world.status.save_limits(replace(limits, reservations=(planned,)))
    world.status.nodes.save([NodeUse("n1", ("main",), True, 4, 8000)])
    body = LAUNCH_FORM | {"resource_group": "main", "time_limit": "8 h"}
    review = alice.post("/sessions/new/review", body).text
    assert "Maintenance begins" in review
    assert "at most 3 h 20 min starts now" in review
    short = alice.post("/sessions/new/review", body | {"time_limit": "3 h"}).text
    assert "Maintenance begins" not in short


def test_an_error_page_does_without_the_database(app: Flask, world: World) -> None:
    with world.engine.begin() as db:
        db.execute(text("DROP TABLE announcement"))
    assert Browser(app).get("/login").status_code == 200


# Branding


def test_a_logo_and_a_colour_are_served(tmp_path: Path) -> None:
    svg = tmp_path / "logo.svg"
    svg.write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
    settings = make_settings(tmp_path, logo=str(svg), accent="#7a1f5c", site_name="Example HPC")
    browser = Browser(create_app(make_world(settings).services))
    page = browser.get("/login").text
    assert "Example HPC" in page
    address = re.search(r'src="(/site/logo\?v=[0-9a-f]{10})"', page)
    assert address is not None
    logo = browser.get(address[1])
    assert logo.headers["Content-Type"] == "image/svg+xml"
    assert logo.headers["X-Content-Type-Options"] == "nosniff"
    policy = logo.headers["Content-Security-Policy"]
    assert "script-src" not in policy
    assert policy.startswith("default-src 'none'")
    assert "sandbox" in policy
    style = browser.get("/site/style").text
    assert "--mark: #7a1f5c;" in style
    assert '<link rel="stylesheet" href="/site/style?v=' in page


def test_a_logo_that_cannot_be_read_keeps_nothing_from_starting(tmp_path: Path) -> None:
    (tmp_path / "big.png").write_bytes(PNG + b"0" * 300_000)
    settings = make_settings(tmp_path, logo=str(tmp_path / "big.png"))
    browser = Browser(create_app(make_world(settings).services))
    assert "/site/logo" not in browser.get("/login").text
    assert browser.get("/site/logo").status_code == 404
    assert browser.get("/site/style").status_code == 404


def test_usage_page_and_file(admin: Browser, alice: Browser, world: World) -> None:
    assert alice.get("/admin/usage").status_code == 404
    assert "Nobody has a session" in admin.get("/admin/usage").text
    alice.post("/sessions", LAUNCH_FORM | {"confirmed": "on"})
    session = world.store.live()[0]
    world.force(session.id, state="RUNNING", started=world.clock() - timedelta(hours=3))
    page = admin.get("/admin/usage?by=environment").text
    assert 'data-now="alice"' in page
    assert 'data-use="python"' in page
    assert ">3.0<" in page
    assert admin.get("/admin/usage?first=x").status_code == 422
    file = admin.get("/admin/usage.csv?unit=week&by=person")
    assert file.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert "person,alice," in file.text
