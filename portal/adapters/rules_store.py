"""What administrators decide, and the journal, in the database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, or_
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select

from portal.adapters.tables import ImageRuleRow, JournalRow, SiteRuleRow, TemplateRow
from portal.core.administration import Entry, ImageRule, SiteRules, Template, mark
from portal.core.journal import JournalFilter
from portal.errors import Conflict

OVERTAKEN = (
    "Somebody else has changed this while you were editing. Look at what it says now, "
    "then make your change again."
)


class RulesTable:
    """RulesStore over SQLModel."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    # Templates

    def templates(self) -> list[Template]:
        """All templates in their order."""
        order = (col(TemplateRow.place), col(TemplateRow.name))
        with Database(self._readers) as db:
            return [
                Template.model_validate(r) for r in db.exec(select(TemplateRow).order_by(*order))
            ]

    def save_template(self, template: Template, seen: str | None, entry: Entry) -> None:
        """Make or replace a template."""
        with Database(self._engine) as db:
            row = db.get(TemplateRow, template.name, with_for_update=True)
            _compare(seen, Template.model_validate(row) if row else None)
            _put(db, row, TemplateRow, template.model_dump(), entry)

    def drop_template(self, name: str, entry: Entry) -> bool:
        """Delete a template; False when there is none."""
        with Database(self._engine) as db:
            gone = db.exec(delete(TemplateRow).where(col(TemplateRow.name) == name)).rowcount
            if gone:
                db.add(_line(entry))
            db.commit()
            return bool(gone)

    def order_templates(self, names: Sequence[str], entry: Entry) -> None:
        """Put the templates into this order; names that are gone do not matter."""
        places = {name: place for place, name in enumerate(names)}
        with Database(self._engine) as db:
            for row in db.exec(select(TemplateRow).with_for_update()).all():
                row.place = places.get(row.name, len(places))
            db.add(_line(entry))
            db.commit()

    # Images and caps

    def image_rules(self) -> list[ImageRule]:
        """All rules about images."""
        with Database(self._readers) as db:
            return [ImageRule.model_validate(row) for row in db.exec(select(ImageRuleRow))]

    def save_image_rule(self, rule: ImageRule, seen: str | None, entry: Entry) -> None:
        """Make or replace the rule about an image."""
        key = (rule.environment, rule.version)
        with Database(self._engine) as db:
            row = db.get(ImageRuleRow, key, with_for_update=True)
            none = ImageRule(environment=rule.environment, version=rule.version)
            _compare(seen, ImageRule.model_validate(row) if row else none)
            _put(db, row, ImageRuleRow, rule.model_dump(), entry)

    def site_rules(self) -> SiteRules:
        """The caps."""
        with Database(self._readers) as db:
            return _site_rules(db)

    def save_site_rules(self, rules: SiteRules, seen: str | None, entry: Entry) -> None:
        """Replace the caps."""
        with Database(self._engine) as db:
            _compare(seen, _site_rules(db))
            for name, value in rules.model_dump(mode="json").items():
                db.merge(SiteRuleRow(name=name, value=json.dumps(value)))
            db.add(_line(entry))
            db.commit()

    # The journal

    def note(self, entries: Sequence[Entry]) -> None:
        """Add lines to the journal."""
        with Database(self._engine) as db:
            db.add_all([_line(entry) for entry in entries])
            db.commit()

    def journal(self, wanted: JournalFilter, limit: int, before: int | None) -> list[Entry]:
        """Lines, newest first, from those on whose id is below `before`."""
        query = select(JournalRow).where(*_conditions(wanted))
        if before is not None:
            query = query.where(col(JournalRow.id) < before)
        with Database(self._readers) as db:
            rows = db.exec(query.order_by(col(JournalRow.id).desc()).limit(limit))
            return [Entry.model_validate(row) for row in rows]

    def forget_journal(self, before: datetime) -> None:
        """Drop the lines of before a time."""
        with Database(self._engine) as db:
            db.exec(delete(JournalRow).where(col(JournalRow.time) < before))
            db.commit()


def _compare(seen: str | None, now: Template | ImageRule | SiteRules | None) -> None:
    if seen is not None and seen != mark(now):
        raise Conflict(OVERTAKEN)


def _put(db: Database, row: Any, table: Any, values: dict[str, Any], entry: Entry) -> None:
    if row is None:
        db.add(table(**values))
    else:
        row.sqlmodel_update(values)
    db.add(_line(entry))
    try:
        db.commit()
    except IntegrityError:  # two made it in the same moment, each seeing none
        raise Conflict(OVERTAKEN) from None


def _line(entry: Entry) -> JournalRow:
    return JournalRow(**entry.model_dump(exclude={"id"}))


def _site_rules(db: Database) -> SiteRules:
    known = {row.name: json.loads(row.value) for row in db.exec(select(SiteRuleRow))}
    return SiteRules(**{name: known[name] for name in SiteRules.model_fields if name in known})


def _conditions(wanted: JournalFilter) -> list[Any]:
    found: list[Any] = []
    if wanted.who is not None:
        found.append(col(JournalRow.who) == wanted.who)
    if wanted.action is not None:
        found.append(col(JournalRow.action) == wanted.action)
    if wanted.text is not None:
        columns = (JournalRow.target, JournalRow.detail, JournalRow.address)
        found.append(or_(*(col(c).icontains(wanted.text, autoescape=True) for c in columns)))
    if wanted.since is not None:
        found.append(col(JournalRow.time) >= wanted.since)
    if wanted.until is not None:
        found.append(col(JournalRow.time) < wanted.until)
    return found
