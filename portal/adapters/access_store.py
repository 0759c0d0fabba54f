"""The store of apps, tickets and grants; logins are in logins.py."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.adapters.tables import AppRow, GrantRow, ImageAppsRow, PortRow, TicketRow
from portal.core.access import AppState, Grant, OpenApp, Ticket
from portal.core.origins import PortUse


class Doors:
    """AccessStore over SQLModel."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    # Apps

    def want_app(self, session: str, app: str, label: str) -> OpenApp | None:
        """The app's entry, made if there is none (then with this label)."""
        try:
            with Database(self._engine) as db:
                row = db.get(AppRow, (session, app))
                if row is None:
                    row = AppRow(session=session, app=app, label=label, state=AppState.WANTED)
                    db.add(row)
                    db.flush()
                found = _app(row)
                db.commit()
                return found
        except IntegrityError:  # two clicks at once: the other one made it, or has the label
            return next((entry for entry in self.apps(session) if entry.app == app), None)

    def set_app(
        self,
        session: str,
        app: str,
        state: AppState,
        message: str,
        log: str,
        details: str | None = None,
    ) -> None:
        """Note what the runner says of an app; details stay when there are no new ones."""
        values = {"state": state, "message": message, "log": log}
        self._change_app(session, app, values | ({} if details is None else {"details": details}))

    def label_app(self, session: str, app: str, label: str) -> bool:
        """Give the app another label; False when another app has it."""
        try:
            self._change_app(session, app, {"label": label})
        except IntegrityError:
            return False
        return True

    def publish_app(self, session: str, app: str, since: datetime | None) -> None:
        """Open an app to everybody, or to its owner alone again."""
        self._change_app(session, app, {"public_since": since})

    def shut_app(self, session: str, app: str, shut: bool) -> None:
        """Note whether its owner has closed the app."""
        self._change_app(session, app, {"shut": shut})

    def ask_app(self, session: str, app: str, asked: str) -> None:
        """Keep what the owner answered."""
        self._change_app(session, app, {"asked": asked})

    def _change_app(self, session: str, app: str, values: Mapping[str, object]) -> None:
        with Database(self._engine) as db:
            where = (col(AppRow.session) == session, col(AppRow.app) == app)
            db.exec(update(AppRow).where(*where).values(**values))
            db.commit()

    def labels(self) -> set[str]:
        """The labels that are in use."""
        with Database(self._readers) as db:
            return set(db.exec(select(AppRow.label)))

    # Ports and images

    def port_uses(self) -> dict[int, PortUse]:
        """Who had each port last."""
        with Database(self._readers) as db:
            return {row.port: PortUse(row.owner, row.used) for row in db.exec(select(PortRow))}

    def note_port(self, port: int, owner: str, now: datetime) -> None:
        """Remember who has a port."""
        with Database(self._engine) as db:
            db.merge(PortRow(port=port, owner=owner, used=now))
            db.commit()

    def image_apps(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """The apps that sessions found in each image, by environment and version."""
        with Database(self._readers) as db:
            rows = db.exec(select(ImageAppsRow))
            return {(row.environment, row.version): row.apps for row in rows}

    def note_image_apps(self, environment: str, version: str, apps: Sequence[str]) -> None:
        """Remember what a session found in its image."""
        with Database(self._engine) as db:
            db.merge(ImageAppsRow(environment=environment, version=version, apps=tuple(apps)))
            db.commit()

    def apps(self, session: str) -> list[OpenApp]:
        """All open apps of a session."""
        with Database(self._readers) as db:
            rows = db.exec(select(AppRow).where(col(AppRow.session) == session))
            return [_app(row) for row in rows]

    def apps_of(self, sessions: Collection[str]) -> list[OpenApp]:
        """All open apps of these sessions."""
        with Database(self._readers) as db:
            rows = db.exec(select(AppRow).where(col(AppRow.session).in_(sessions)))
            return [_app(row) for row in rows]

    def app_by_label(self, label: str) -> OpenApp | None:
        """The app behind an origin."""
        with Database(self._readers) as db:
            row = db.exec(select(AppRow).where(col(AppRow.label) == label)).first()
            return _app(row) if row else None

    # Tickets and grants

    def add_ticket(self, ticket: Ticket) -> None:
        """Remember a one-time ticket by its hash."""
        with Database(self._engine) as db:
            db.add(TicketRow(**vars(ticket)))
            db.commit()

    def take_ticket(self, ticket_hash: str, label: str, now: datetime) -> Ticket | None:
        """Use up a ticket; None when it is unknown, spent, expired or for another origin."""
        with Database(self._engine) as db:
            row = db.get(TicketRow, ticket_hash)
            if row is None or row.label != label or row.expires < now:
                return None
            ticket = Ticket(**row.model_dump())
            # Whoever deletes the row has it; a second taker at the same time deletes nothing.
            taken = db.exec(delete(TicketRow).where(col(TicketRow.hash) == ticket_hash))
            db.commit()
            return ticket if taken.rowcount else None

    def add_grant(self, grant: Grant) -> None:
        """Remember that a browser may use an app."""
        with Database(self._engine) as db:
            db.add(GrantRow(**vars(grant)))
            db.commit()

    def grant(self, label: str, cookie_hash: str) -> Grant | None:
        """The grant behind a cookie at an origin."""
        with Database(self._readers) as db:
            row = db.get(GrantRow, cookie_hash)
            return _grant(row) if row and row.label == label else None

    def grants(self, session: str | None = None, login: str | None = None) -> list[Grant]:
        """All grants, or those of one session or one login."""
        query = select(GrantRow)
        if session is not None:
            query = query.where(col(GrantRow.session) == session)
        if login is not None:
            query = query.where(col(GrantRow.login) == login)
        with Database(self._readers) as db:
            return [_grant(row) for row in db.exec(query)]

    def drop_grants(self, grants: Sequence[Grant]) -> None:
        """Forget grants."""
        hashes = [grant.cookie_hash for grant in grants]
        with Database(self._engine) as db:
            db.exec(delete(GrantRow).where(col(GrantRow.cookie_hash).in_(hashes)))
            db.commit()

    def close_session(self, session: str) -> None:
        """Forget all apps, tickets and grants of a session."""
        labels = select(AppRow.label).where(col(AppRow.session) == session)
        with Database(self._engine) as db:
            db.exec(delete(TicketRow).where(col(TicketRow.label).in_(labels)))
            db.exec(delete(GrantRow).where(col(GrantRow.session) == session))
            db.exec(delete(AppRow).where(col(AppRow.session) == session))
            db.commit()


def _app(row: AppRow) -> OpenApp:
    return OpenApp(**{**row.model_dump(), "state": AppState(row.state)})


def _grant(row: GrantRow) -> Grant:
    return Grant(**row.model_dump())
