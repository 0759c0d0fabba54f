"""Job templates in the database."""

from __future__ import annotations

import json
from collections.abc import Collection

from sqlalchemy import Engine, and_, or_
from sqlalchemy.orm import defer
from sqlmodel import col, select

from portal.core.jobs.compose.drafts import JobTemplate, Shared, TemplateKey
from portal.core.launch.presets import SaveResult
from portal.store.named_rows import NamedRows
from portal.store.reading import reading
from portal.store.tables import JobTemplateRow

SCRIPT = "script"
MOST_SHOWN = 200
"""Templates in one list; the user's own come first."""


class JobTemplateStore:
    """Job templates, by owner and name. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._readers = engine.execution_options(read_only=True)
        self._rows = NamedRows(engine, JobTemplateRow)

    def visible(self, user: str, accounts: Collection[str]) -> list[JobTemplate]:
        """Templates of the user, of these accounts and of the site; without scripts."""
        shared = col(JobTemplateRow.shared)
        query = (
            select(JobTemplateRow)
            .options(defer(JobTemplateRow.script))  # type: ignore[arg-type]
            .where(
                or_(
                    self._rows.of(user),
                    shared == Shared.SITE,
                    and_(shared == Shared.ACCOUNT, col(JobTemplateRow.account).in_(accounts)),
                )
            )
            .order_by(
                (col(JobTemplateRow.owner) != user), JobTemplateRow.name, JobTemplateRow.owner
            )
            .limit(MOST_SHOWN)
        )
        with reading(self._readers) as db:
            return [_template(row, {}) for row in db.exec(query)]

    def get(self, key: TemplateKey) -> JobTemplate | None:
        """One template; the caller checks access."""
        with reading(self._readers) as db:
            row = db.get(JobTemplateRow, tuple(key))
            if row is None:
                return None
            return _template(row, {} if row.script is None else {SCRIPT: row.script})

    def save(self, template: JobTemplate, replace: bool, most: int) -> SaveResult:
        """Store a template, unless its owner already has `most` or the name is taken."""

        def fill(row: JobTemplateRow | None) -> JobTemplateRow:
            row = row or JobTemplateRow(
                owner=template.owner, name=template.name, request="", saved=template.saved
            )
            row.sqlmodel_update(_columns(template))
            return row

        return self._rows.save(template.owner, template.name, fill, replace, most)

    def rename(self, key: TemplateKey, to: str) -> SaveResult:
        """Rename a template."""
        return self._rows.rename(key.owner, key.name, to)

    def remove(self, key: TemplateKey) -> bool:
        """Delete a template; returns whether there was one."""
        return self._rows.remove(key.owner, key.name)


def _columns(template: JobTemplate) -> dict[str, object]:
    request = {name: value for name, value in template.body.items() if name != SCRIPT}
    return {
        "request": json.dumps(request),
        SCRIPT: template.body.get(SCRIPT),
        "shared": template.shared,
        "account": template.account,
        "saved": template.saved,
    }


def _template(row: JobTemplateRow, script: dict[str, str]) -> JobTemplate:
    return JobTemplate(
        owner=row.owner,
        name=row.name,
        body=script | json.loads(row.request),
        saved=row.saved,
        shared=Shared(row.shared),
        account=row.account,
    )
