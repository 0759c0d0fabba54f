"""Announcements: what is accepted, when they are shown, and in which order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from portal.config.web import HelpLink
from portal.core.notices.announcements import (
    Announcement,
    AnnouncementRequest,
    announcement,
    shown_now,
)
from portal.core.validation import check
from portal.errors import InvalidRequest

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)


def make(id: str = "a", **fields: Any) -> Announcement:
    values = {"id": id, "text": "New GPUs", "created": NOW} | fields
    return Announcement.model_validate(values)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": "two\nlines"}, "text"),
        ({"text": "x" * 501}, "text"),
        ({"text": "x", "level": "shout"}, "level"),
        ({"text": "x", "link": {"title": "Help", "url": "javascript:alert(1)"}}, "link.url"),
        ({"text": "x", "link": {"title": "Help", "url": "//elsewhere.example.org"}}, "link.url"),
        ({"text": "x", "link": {"title": "", "url": "/help"}}, "link.title"),
        ({"text": "x", "link": {"url": "/help"}}, "link.title"),
        ({"text": "x", "starts": "tomorrow"}, "starts"),
        ({"text": "x", "starts": "2026-11-25T00:00:00Z", "ends": "2026-11-24T00:00:00Z"}, "ends"),
        ({"text": "x", "html": True}, "html"),
    ],
)
def test_what_is_wrong_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check(AnnouncementRequest, body)
    assert [error.field for error in caught.value.errors] == [field]


@pytest.mark.parametrize(
    "url",
    [
        "/\\evil.example",
        "\\/evil.example",
        "\\\\evil.example",
        "//evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        "\t//evil.example",
        "/ /evil.example",
        "https:evil.example",
        "https:/evil.example",
        "https:\\\\evil.example",
        "https://help.example.org\\@evil.example",
        "javascript:alert(1)",
        "java\tscript:alert(1)",
        "data:text/html,x",
        "/",
        "",
    ],
)
def test_no_link_leads_to_another_host_unseen(url: str) -> None:
    with pytest.raises(InvalidRequest):
        check(AnnouncementRequest, {"text": "x", "link": {"title": "Help", "url": url}})
    with pytest.raises(ValidationError):
        HelpLink(title="Help", url=url)


@pytest.mark.parametrize(
    "url",
    ["/help", "/%5cevil.example", "/a//b", "https://a.example/x?y=[1]#z", "mailto:a@b.example"],
)
def test_links_that_are_accepted(url: str) -> None:
    check(AnnouncementRequest, {"text": "x", "link": {"title": "Help", "url": url}})
    assert HelpLink(title="Help", url=url).url == url


def test_a_link_is_stored_with_its_title() -> None:
    body = {"text": "Course", "link": {"title": "Register", "url": "https://example.org/x"}}
    found = announcement("a", check(AnnouncementRequest, body), NOW)
    assert (found.link_title, found.link_url) == ("Register", "https://example.org/x")
    assert "link https://example.org/x" in found.describe()


def test_states_follow_the_clock() -> None:
    hour = timedelta(hours=1)
    planned = make(starts=NOW + hour, ends=NOW + 2 * hour)
    assert planned.state(NOW) == "planned"
    assert planned.state(NOW + hour) == "shown"
    assert planned.state(NOW + 2 * hour) == "over"
    assert make().state(NOW) == "shown"


def test_warnings_come_first_and_then_the_newest() -> None:
    older = NOW - timedelta(days=1)
    known = [make("old", created=older), make("new"), make("warn", level="warning", created=older)]
    assert [one.id for one in shown_now(known, NOW, logged_in=True)] == ["warn", "new", "old"]


def test_strangers_see_only_what_is_for_them() -> None:
    known = [make("inside"), make("outside", on_login=True)]
    assert [one.id for one in shown_now(known, NOW, logged_in=False)] == ["outside"]


def test_a_changed_one_is_shown_again_to_those_who_hid_it() -> None:
    assert make().mark == make().mark
    assert make().mark != make(text="Newer GPUs").mark
