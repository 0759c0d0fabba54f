"""What the administration needs of the database; every method is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from portal.core.admin.administration import ImageRule
from portal.core.admin.audit import AuditEvent, AuditFilter
from portal.core.launch.templates import Template
from portal.core.site_rules import SiteRules


class AdministrationStore(Protocol):
    """What administrators decide, and the journal. Every method is one transaction.

    A change and its line in the journal are stored together or not at all. `seen` is the
    ETag (core/admin/administration.py) of what the author of the change last saw; Conflict is
    raised when something else is stored by now. None skips the comparison.

    A change is a function from what is stored to what shall be, with its line in the journal. It
    runs inside the transaction, so that of two changes at once the second one sees the first.
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
        """Make or replace a template; the change also gets the place behind all others."""
        ...

    def drop_template(
        self, name: str, seen: str | None, line: Callable[[Template], AuditEvent]
    ) -> Template | None:
        """Delete a template and return it; None when there is none."""
        ...

    def move_template(self, name: str, by: int, line: Callable[[int], AuditEvent]) -> bool:
        """Move a template by one place; `line` gets the new one (from 0). False: no template.

        At either end it stays, without a line.
        """
        ...

    def image_rules(self) -> list[ImageRule]:
        """All rules about images."""
        ...

    def save_image_rule(
        self,
        environment: str,
        version: str,
        seen: str | None,
        change: Callable[[ImageRule], tuple[ImageRule, AuditEvent]],
    ) -> ImageRule:
        """Make or replace the rule about an image."""
        ...

    def site_rules(self) -> SiteRules:
        """The caps."""
        ...

    def save_site_rules(
        self, seen: str | None, change: Callable[[SiteRules], tuple[SiteRules, AuditEvent]]
    ) -> SiteRules:
        """Replace the caps."""
        ...

    def add_events(self, entries: Sequence[AuditEvent]) -> None:
        """Add lines to the journal; nothing ever changes one."""
        ...

    def events(self, wanted: AuditFilter, limit: int, before: int | None) -> list[AuditEvent]:
        """Lines, newest first, from those on whose id is below `before`."""
        ...

    def delete_events(self, before: datetime) -> None:
        """Drop the lines of before a time."""
        ...
