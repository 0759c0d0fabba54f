"""Interface to the store of the administrators' settings and the audit log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from portal.core.admin.audit import AuditEvent, AuditFilter
from portal.core.admin.images import ImageRule
from portal.core.admin.site_settings import SiteSettings
from portal.core.launch.templates import Template
from portal.core.site_rules import SiteRules


class AdministrationStore(Protocol):
    """The administrators' settings and the audit log. Every method is one transaction.

    A change and its audit event are stored together or not at all. `seen` is the ETag
    (core/admin/etag.py) of the value that the change is based on; Conflict is raised if
    a different value is stored. None skips the comparison.

    A change is a function from the stored value to the new one with its audit event. It runs
    inside the transaction, so that of two concurrent changes the second one sees the first.
    """

    def templates(self) -> list[Template]:
        """All templates in their order."""
        ...

    def save_template(
        self,
        name: str,
        seen: str | None,
        change: Callable[[Template | None, int], tuple[Template, AuditEvent]],
    ) -> Template:
        """Create or replace a template; `change` also gets the position after all others."""
        ...

    def drop_template(
        self, name: str, seen: str | None, line: Callable[[Template], AuditEvent]
    ) -> Template | None:
        """Delete a template and return it; None if there is none."""
        ...

    def move_template(self, name: str, by: int, line: Callable[[int], AuditEvent]) -> bool:
        """Move a template by `by` positions; False if there is none of this name.

        `line` gets the new position, from 0. At either end it stays, without an event.
        """
        ...

    def image_rules(self) -> list[ImageRule]:
        """All visibility rules of images."""
        ...

    def save_image_rule(
        self,
        environment: str,
        version: str,
        seen: str | None,
        change: Callable[[ImageRule], tuple[ImageRule, AuditEvent]],
    ) -> ImageRule:
        """Create or replace the visibility rule of an image."""
        ...

    def site_settings(self) -> SiteSettings:
        """Site rules, image rules and templates, read together."""
        ...

    def site_rules(self) -> SiteRules:
        """The site-wide caps."""
        ...

    def save_site_rules(
        self, seen: str | None, change: Callable[[SiteRules], tuple[SiteRules, AuditEvent]]
    ) -> SiteRules:
        """Replace the site-wide caps."""
        ...

    def add_events(self, entries: Sequence[AuditEvent]) -> None:
        """Append events to the audit log; events are never changed."""
        ...

    def events(self, wanted: AuditFilter, limit: int, before: int | None) -> list[AuditEvent]:
        """Events, newest first: at most `limit`, with ids below `before` if it is given."""
        ...

    def events_of(self, target: str, actions: Collection[str], limit: int) -> list[AuditEvent]:
        """Events of these actions with this target, newest first."""
        ...

    def delete_events(self, before: datetime) -> None:
        """Delete events older than a time."""
        ...
