"""Announcements: texts that administrators show on all pages for a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from portal.core.admin.etag import etag
from portal.core.validation import LINK, STRICT, Matching, Moment, _not_blank, _one_line, at_field
from portal.core.validation import checked as checked_by

MOST = 20
"""Maximum number of stored announcements, shown or not."""
Level = Literal["information", "warning"]
State = Literal["shown", "planned", "over"]
STATES: Mapping[State, str] = MappingProxyType(
    {"shown": "shown now", "planned": "planned", "over": "over"}
)
_URL_RULE = "begin with https://, http://, mailto: or / (a page of the portal)"

Line = Annotated[str, Field(max_length=500), checked_by(_one_line), checked_by(_not_blank)]
"""A text in one line."""
LinkTitle = Annotated[str, Field(max_length=60), checked_by(_one_line), checked_by(_not_blank)]
Url = Annotated[str, Field(max_length=500), Matching(LINK, _URL_RULE)]


class Link(BaseModel):
    """The link of an announcement."""

    model_config = STRICT | ConfigDict(use_attribute_docstrings=True)

    title: LinkTitle
    """The text of the link."""
    url: Url
    """https://…, http://…, mailto:… or a path of the portal's."""


class AnnouncementRequest(BaseModel):
    """An announcement as administrators write it."""

    model_config = STRICT | ConfigDict(use_attribute_docstrings=True)

    text: Line
    """Plain text, in one line."""
    link: Link | None = None
    level: Level = "information"
    starts: Moment | None = None
    """Not shown before; null: from now on."""
    ends: Moment | None = None
    """Not shown from then on; null: until it is deleted."""
    dismissable: bool = True
    """Whether readers may hide it in their browsers."""
    on_login: bool = False
    """Whether it is shown to everybody who opens the portal, also before logging in."""

    @field_validator("ends")
    @classmethod
    def _ends_later(cls, ends: datetime | None, info: ValidationInfo) -> datetime | None:
        starts = info.data.get("starts")
        if ends is not None and starts is not None and ends <= starts:
            raise at_field("ends", "choose a time after its start")
        return ends


class Announcement(BaseModel):
    """A stored announcement."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: str
    text: str
    link_title: str = ""
    link_url: str = ""
    """"" without a link."""
    level: Level = "information"
    starts: datetime | None = None
    ends: datetime | None = None
    dismissable: bool = True
    on_login: bool = False
    created: datetime

    @model_validator(mode="after")
    def _whole_link(self) -> Announcement:
        if bool(self.link_title) != bool(self.link_url):
            raise ValueError("a link has a title and an address")
        return self

    @property
    def mark(self) -> str:
        """The key that a browser stores on dismissal; an edited announcement has a new one."""
        return f"{self.id}-{etag(self)[:8]}"

    def state(self, now: datetime) -> State:
        """Whether it is shown at this time."""
        if self.ends is not None and self.ends <= now:
            return "over"
        return "planned" if self.starts is not None and self.starts > now else "shown"

    def describe(self) -> str:
        """The announcement for the audit log."""
        parts = [f"{self.level}: {self.text}"]
        if self.link_url:
            parts.append(f"link {self.link_url}")
        parts += [
            f"{word} {time:%Y-%m-%d %H:%M} UTC"
            for word, time in (("from", self.starts), ("until", self.ends))
            if time is not None
        ]
        parts += ["not dismissable"] * (not self.dismissable)
        parts += ["also before logging in"] * self.on_login
        return ", ".join(parts)


def announcement(id: str, request: AnnouncementRequest, created: datetime) -> Announcement:
    """Build the announcement to store."""
    link = request.link
    return Announcement(
        id=id,
        **request.model_dump(exclude={"link"}),
        link_title=link.title if link else "",
        link_url=link.url if link else "",
        created=created,
    )


def shown_now(stored: Iterable[Announcement], now: datetime, logged_in: bool) -> list[Announcement]:
    """The announcements to show: warnings first, then the newest."""
    shown = [a for a in stored if a.state(now) == "shown" and (logged_in or a.on_login)]
    return sorted(shown, key=lambda a: (a.level != "warning", -a.created.timestamp(), a.id))
