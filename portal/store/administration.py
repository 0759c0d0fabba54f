"""The administrators' settings and the audit log in the database."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Engine, or_
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select

from portal.core.admin.audit import AuditEvent, AuditFilter
from portal.core.admin.etag import etag
from portal.core.admin.images import ImageRule
from portal.core.admin.site_settings import SiteSettings
from portal.core.launch.templates import MAX_PLACE, Template
from portal.core.site_rules import SiteRules
from portal.errors import Conflict
from portal.store.reading import reading, reading_rows
from portal.store.tables import AuditRow, ImageRuleRow, SiteRuleRow, TemplateRow

OVERTAKEN = (
    "Somebody else has changed this while you were editing. Check the current version, "
    "then make your change again."
)


Changed = TypeVar("Changed")


class AdministrationStore:
    """The administrators' settings and the audit log. Every method is one transaction.

    A change and its audit event are stored together or not at all. `seen` is the ETag
    (core/admin/etag.py) of the value that the change is based on; Conflict is raised if
    a different value is stored. None skips the comparison.

    A change is a function from the stored value to the new one with its audit event. It runs
    inside the transaction, so that of two concurrent changes the second one sees the first.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    # Templates

    def templates(self) -> list[Template]:
        """All templates in their order."""
        with reading(self._readers) as db:
            return [Template.model_validate(row) for row in db.exec(_in_order())]

    def save_template(
        self,
        name: str,
        seen: str | None,
        change: Callable[[Template | None, int], tuple[Template, AuditEvent]],
    ) -> Template:
        """Create or replace a template; `change` also gets the position after all others."""

        def save(db: Database) -> Template:
            # All rows are locked, since positions are relative to one another.
            rows = db.exec(_in_order().with_for_update()).all()
            row = next((row for row in rows if row.name == name), None)
            before = Template.model_validate(row) if row else None
            template, entry = change(before, _last_place(rows))
            _compare(seen, before)
            _put(db, row, TemplateRow, template.model_dump(), entry)
            return template

        return self._change(seen, save)

    def drop_template(
        self, name: str, seen: str | None, line: Callable[[Template], AuditEvent]
    ) -> Template | None:
        """Delete a template and return it; None if there is none."""
        with Database(self._engine) as db:
            row = db.get(TemplateRow, name, with_for_update=True)
            if row is None:
                return None
            template = Template.model_validate(row)
            _compare(seen, template)
            db.delete(row)
            db.add(audit_row(line(template)))
            db.commit()
            return template

    def move_template(self, name: str, by: int, line: Callable[[int], AuditEvent]) -> bool:
        """Move a template by `by` positions; False if there is none of this name.

        `line` gets the new position, from 0. At either end it stays, without an event.
        """
        with Database(self._engine) as db:
            rows = list(db.exec(_in_order().with_for_update()).all())
            position = next((at for at, row in enumerate(rows) if row.name == name), None)
            if position is None:
                return False
            rows.insert(max(position + by, 0), rows.pop(position))
            to = next(at for at, row in enumerate(rows) if row.name == name)
            if to != position:
                _number(rows)
                db.add(audit_row(line(to)))
                db.commit()
            return True

    # Images and site rules

    def image_rules(self) -> list[ImageRule]:
        """All visibility rules of images."""
        with reading(self._readers) as db:
            return [ImageRule.model_validate(row) for row in db.exec(select(ImageRuleRow))]

    def save_image_rule(
        self,
        environment: str,
        version: str,
        seen: str | None,
        change: Callable[[ImageRule], tuple[ImageRule, AuditEvent]],
    ) -> ImageRule:
        """Create or replace the visibility rule of an image."""

        def save(db: Database) -> ImageRule:
            row = db.get(ImageRuleRow, (environment, version), with_for_update=True)
            none = ImageRule(environment=environment, version=version)
            before = ImageRule.model_validate(row) if row else none
            _compare(seen, before)
            rule, entry = change(before)
            _put(db, row, ImageRuleRow, rule.model_dump(), entry)
            return rule

        return self._change(seen, save)

    def site_settings(self) -> SiteSettings:
        """Site rules, image rules and templates, read together."""
        with reading(self._readers) as db:
            return SiteSettings(
                _site_rules(db.exec(select(SiteRuleRow))),
                [ImageRule.model_validate(row) for row in db.exec(select(ImageRuleRow))],
                [Template.model_validate(row) for row in db.exec(_in_order())],
            )

    def site_rules(self) -> SiteRules:
        """The site-wide caps."""
        with reading_rows(self._readers) as connection:
            return _site_rules(connection.execute(_RULES))

    def save_site_rules(
        self, seen: str | None, change: Callable[[SiteRules], tuple[SiteRules, AuditEvent]]
    ) -> SiteRules:
        """Replace the site-wide caps."""

        def save(db: Database) -> SiteRules:
            rows = {row.name: row for row in db.exec(select(SiteRuleRow).with_for_update())}
            before = _site_rules(rows.values())
            _compare(seen, before)
            rules, entry = change(before)
            for name, value in rules.model_dump(mode="json").items():
                row = rows.get(name) or SiteRuleRow(name=name, value="")
                row.value = json.dumps(value)
                db.add(row)
            db.add(audit_row(entry))
            return rules

        return self._change(seen, save)

    def _change(self, seen: str | None, change: Callable[[Database], Changed]) -> Changed:
        """Run a change in its own transaction.

        If two transactions create the same row, the second one gets Conflict if it gave an ETag;
        otherwise it is repeated, and the last one wins.
        """
        for again in (seen is None, False):
            try:
                with Database(self._engine) as db:
                    changed = change(db)
                    db.commit()
                    return changed
            except IntegrityError:
                if not again:
                    break
        raise Conflict(OVERTAKEN)

    # Audit log

    def add_events(self, entries: Sequence[AuditEvent]) -> None:
        """Append events to the audit log; events are never changed."""
        with Database(self._engine) as db:
            db.add_all([audit_row(entry) for entry in entries])
            db.commit()

    def events(self, criteria: AuditFilter, limit: int, before: int | None) -> list[AuditEvent]:
        """Events, newest first: at most `limit`, with ids below `before` if it is given."""
        query = select(AuditRow).where(*_conditions(criteria))
        if before is not None:
            query = query.where(col(AuditRow.id) < before)
        with reading(self._readers) as db:
            rows = db.exec(query.order_by(col(AuditRow.id).desc()).limit(limit))
            return [AuditEvent.model_validate(row) for row in rows]

    def events_of(self, target: str, actions: Collection[str], limit: int) -> list[AuditEvent]:
        """Events of these actions with this target, newest first."""
        query = select(AuditRow).where(AuditRow.target == target, col(AuditRow.action).in_(actions))
        with reading(self._readers) as db:
            rows = db.exec(query.order_by(col(AuditRow.id).desc()).limit(limit))
            return [AuditEvent.model_validate(row) for row in rows]

    def delete_events(self, before: datetime) -> None:
        """Delete events older than a time."""
        with Database(self._engine) as db:
            db.exec(delete(AuditRow).where(col(AuditRow.time) < before))
            db.commit()


def _compare(seen: str | None, now: Template | ImageRule | SiteRules | None) -> None:
    if seen is not None and seen != etag(now):
        raise Conflict(OVERTAKEN)


def _put(db: Database, row: Any, table: Any, values: dict[str, Any], entry: AuditEvent) -> None:
    if row is None:
        db.add(table(**values))
    else:
        row.sqlmodel_update(values)
    db.add(audit_row(entry))


def _in_order() -> Any:
    return select(TemplateRow).order_by(col(TemplateRow.place), col(TemplateRow.name))


def _number(rows: Iterable[TemplateRow]) -> None:
    for position, row in enumerate(rows):
        row.place = position


def _last_place(rows: Sequence[TemplateRow]) -> int:
    """The position after all others; at MAX_PLACE they are renumbered first."""
    if rows and rows[-1].place >= MAX_PLACE:
        _number(rows)
    return rows[-1].place + 1 if rows else 0


def audit_row(entry: AuditEvent) -> AuditRow:
    """The row of an event, for stores that write it with the recorded change."""
    return AuditRow(**entry.model_dump(exclude={"id"}))


_RULES = select(SiteRuleRow.name, SiteRuleRow.value)


def _site_rules(rows: Iterable[Any]) -> SiteRules:
    stored = {row.name: json.loads(row.value) for row in rows}
    return SiteRules(**{name: stored[name] for name in SiteRules.model_fields if name in stored})


def _conditions(criteria: AuditFilter) -> list[Any]:
    conditions: list[Any] = []
    if criteria.who is not None:
        conditions.append(col(AuditRow.who) == criteria.who)
    if criteria.action is not None:
        conditions.append(col(AuditRow.action) == criteria.action)
    if criteria.text is not None:
        columns = (AuditRow.target, AuditRow.detail, AuditRow.address)
        conditions.append(or_(*(col(c).icontains(criteria.text, autoescape=True) for c in columns)))
    if criteria.since is not None:
        conditions.append(col(AuditRow.time) >= criteria.since)
    if criteria.until is not None:
        conditions.append(col(AuditRow.time) < criteria.until)
    return conditions
