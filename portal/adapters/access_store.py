"""The store of apps, tickets and grants; logins are in logins.py."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.adapters.placing import find_places, is_live, keep, leave
from portal.adapters.tables import (
    AppRow,
    GrantRow,
    ImageAppsRow,
    OriginRow,
    SessionRow,
    ShuttingRow,
    TicketRow,
)
from portal.adapters.taking import (
    close_apps,
    close_origin_of,
    drop_grants,
    target_of,
    trim_grants,
    trim_tickets,
)
from portal.core.access import (
    AppState,
    Entrance,
    Grant,
    OpenApp,
    Redeemed,
    Ticket,
    public_key,
    ssh_key,
)
from portal.core.origins import Choice, Places, Seeker
from portal.core.session import LIVE
from portal.core.stores import Placed


class Doors:
    """AccessStore over SQLModel."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    # Apps and their origins

    def place(
        self,
        session: str,
        seen: OpenApp | None,
        seeker: Seeker,
        choose: Callable[[Places], Choice],
        now: datetime,
        asked: str = "",
    ) -> Placed:
        """Give an app an origin, or another one, unless a request was quicker (see AccessStore)."""
        app = seeker.use.app
        try:
            with Database(self._engine) as db:
                is_live(db, session)
                row = db.get(AppRow, (session, app))
                there = _app(row) if row else None
                if not _is_same(there, seen):
                    return Placed(there)
                choice = choose(find_places(db, seeker))
                if choice.origin is None:
                    if row is not None and choice.asked:
                        row.moved = now
                        db.commit()
                    return Placed(there, choice)
                keys: list[str] = []
                if row is None:
                    row = AppRow(
                        session=session, app=app, label="", state=AppState.WANTED, asked=asked
                    )
                    db.add(row)
                elif row.label != choice.origin.label:
                    keys = close_apps(db, session, [app], now)
                    leave(db, [row.label], now)
                row.label, row.moved = choice.origin.label, now if choice.asked else None
                keep(db, choice.origin)
                db.flush()
                found = _app(row)
                db.commit()
                return Placed(found, choice, tuple(keys))
        except IntegrityError:  # another app has the label: where transactions run side by side
            return Placed(None)

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

    def app_starts(self, opened: OpenApp) -> bool:
        """Note that an app starts; False when that was with an answer that is not its own now."""
        return self._change_answered(opened, state=AppState.STARTING, message="", log="")

    def ask_app(self, opened: OpenApp, asked: str) -> bool:
        """Keep what the owner answered; False when it is not the answer any more that was seen."""
        return self._change_answered(opened, asked=asked)

    def _change_answered(self, opened: OpenApp, **values: object) -> bool:
        with Database(self._engine) as db:
            where = (
                col(AppRow.session) == opened.session,
                col(AppRow.app) == opened.app,
                col(AppRow.asked) == opened.asked,
            )
            done = db.exec(update(AppRow).where(*where).values(**values))
            db.commit()
            return bool(done.rowcount)

    def reopen_app(self, opened: OpenApp) -> None:
        """Its owner has opened again what they had closed."""
        with Database(self._engine) as db:
            where = (col(AppRow.session) == opened.session, col(AppRow.app) == opened.app)
            db.exec(update(AppRow).where(*where).values(shut=False))
            key = ssh_key(opened.label)
            db.exec(delete(ShuttingRow).where(col(ShuttingRow.key) == key))
            db.commit()

    def _change_app(self, session: str, app: str, values: Mapping[str, object]) -> None:
        with Database(self._engine) as db:
            where = (col(AppRow.session) == session, col(AppRow.app) == app)
            db.exec(update(AppRow).where(*where).values(**values))
            db.commit()

    def apps(self, session: str) -> list[OpenApp]:
        """All open apps of a session."""
        return self.apps_of([session])

    def apps_of(self, sessions: Collection[str]) -> list[OpenApp]:
        """All open apps of these sessions."""
        with Database(self._readers) as db:
            rows = db.exec(select(AppRow).where(col(AppRow.session).in_(sessions)))
            apps = [_app(row) for row in rows]
            left = select(ShuttingRow.session, ShuttingRow.app)
            open_still = set(db.exec(left.where(col(ShuttingRow.session).in_(sessions))))
        return [
            replace(app, still_open=True) if (app.session, app.app) in open_still else app
            for app in apps
        ]

    def app_by_label(self, label: str) -> OpenApp | None:
        """The app behind an origin."""
        with Database(self._readers) as db:
            row = db.exec(select(AppRow).where(col(AppRow.label) == label)).first()
            return _app(row) if row else None

    def abandoned(self) -> list[str]:
        """Sessions that are over and still have apps: the portal ended in between."""
        live = select(SessionRow.id).where(col(SessionRow.state).in_(LIVE))
        with Database(self._readers) as db:
            query = select(AppRow.session).where(col(AppRow.session).not_in(live))
            return list(db.exec(query.distinct()))

    # Images

    def image_apps(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """The apps that administrators' sessions found in each image."""
        with Database(self._readers) as db:
            rows = db.exec(select(ImageAppsRow))
            return {(row.environment, row.version): row.apps for row in rows}

    def note_image_apps(self, environment: str, version: str, apps: Sequence[str]) -> None:
        """Remember what an administrator's session found in its image."""
        with Database(self._engine) as db:
            db.merge(ImageAppsRow(environment=environment, version=version, apps=tuple(apps)))
            db.commit()

    # Opening

    def publish_app(self, opened: OpenApp, since: datetime) -> bool:
        """Open an app to everybody; False when it is not at this origin any more."""
        with Database(self._engine) as db:
            where = (
                col(AppRow.session) == opened.session,
                col(AppRow.app) == opened.app,
                col(AppRow.label) == opened.label,
            )
            done = db.exec(update(AppRow).where(*where).values(public_since=since))
            key = public_key(opened.label)
            db.exec(delete(ShuttingRow).where(col(ShuttingRow.key) == key))
            db.commit()
            return bool(done.rowcount)

    def add_ticket(self, ticket: Ticket, most: int) -> bool:
        """Remember a one-time ticket; of an app's `most` newest stay. Whether there was none."""
        with Database(self._engine) as db:
            others = trim_tickets(db, ticket, most - 1)
            db.add(TicketRow(**vars(ticket)))
            db.commit()
            return others == 0

    def redeem(
        self, ticket_hash: str, label: str, cookie_hash: str, has: str, now: datetime, most: int
    ) -> Redeemed | None:
        """Exchange a ticket for a grant (see AccessStore)."""
        with Database(self._engine) as db:
            row = db.get(TicketRow, ticket_hash)
            if row is None or row.label != label or row.expires < now:
                return None
            ticket = Ticket(**row.model_dump())
            # Whoever deletes the row has it; a second taker at the same time deletes nothing.
            taken = db.exec(delete(TicketRow).where(col(TicketRow.hash) == ticket_hash))
            opened = target_of(db, ticket) if taken.rowcount else None
            found = None
            if opened is not None:
                found = self._admit(db, ticket, opened, cookie_hash, has, now, most)
            db.commit()
            return found

    @staticmethod
    def _admit(
        db: Database,
        ticket: Ticket,
        row: AppRow,
        cookie_hash: str,
        has: str,
        now: datetime,
        most: int,
    ) -> Redeemed:
        there = db.get(OriginRow, ticket.label)
        mark = there.mark if there else ""
        held = db.get(GrantRow, has) if has else None
        mine = (ticket.label, ticket.session, ticket.app, ticket.user, ticket.login)
        if held and (held.label, held.session, held.app, held.user, held.login) == mine:
            return Redeemed(_grant(held), _app(row), mark, new=False)
        grant = Grant(cookie_hash, *mine, created=now)
        dropped = trim_grants(db, grant, most - 1, now)
        db.add(GrantRow(**vars(grant)))
        return Redeemed(grant, _app(row), mark, new=True, dropped=tuple(dropped))

    def entry(self, label: str, cookie_hash: str) -> Entrance | None:
        """The app at an origin and what a cookie is good for there; None where nothing is."""
        with Database(self._readers) as db:
            row = db.exec(select(AppRow).where(col(AppRow.label) == label)).first()
            if row is None:
                return None
            grant = db.get(GrantRow, cookie_hash) if cookie_hash else None
            owner = select(SessionRow.owner).where(col(SessionRow.id) == row.session)
            good = grant is not None and (grant.label, grant.session, grant.app, grant.user) == (
                label,
                row.session,
                row.app,
                db.exec(owner).first(),
            )
            return Entrance(_app(row), _grant(grant) if grant and good else None)

    def grants(self, session: str | None = None) -> list[Grant]:
        """The grants of one session, or all; only those for the app that is at their origin now."""
        query = select(GrantRow).join(
            AppRow,
            (col(AppRow.session) == GrantRow.session)
            & (col(AppRow.app) == GrantRow.app)
            & (col(AppRow.label) == GrantRow.label),
        )
        query = query.join(
            SessionRow,
            (col(SessionRow.id) == GrantRow.session) & (col(SessionRow.owner) == GrantRow.user),
        )
        if session is not None:
            query = query.where(col(GrantRow.session) == session)
        with Database(self._readers) as db:
            return [_grant(row) for row in db.exec(query)]

    # Taking away: the keys that HAProxy must forget are stored with the change

    def make_private(self, session: str, app: str, now: datetime) -> tuple[str, ...]:
        """Open an app to its owner alone again; returns the keys to shut, whatever was stored."""
        with Database(self._engine) as db:
            keys = close_origin_of(db, session, app, now)
            self._drop_tickets(db, session, app)
            where = (col(AppRow.session) == session, col(AppRow.app) == app)
            db.exec(update(AppRow).where(*where).values(public_since=None))
            db.commit()
            return tuple(keys)

    def close_app(self, session: str, app: str, now: datetime) -> tuple[str, ...]:
        """Shut an app for everybody, its owner included; returns the keys to shut."""
        with Database(self._engine) as db:
            keys = close_apps(db, session, [app], now)
            where = (col(AppRow.session) == session, col(AppRow.app) == app)
            db.exec(update(AppRow).where(*where).values(public_since=None, shut=True))
            db.commit()
            return tuple(keys)

    def close_session(self, session: str, now: datetime) -> tuple[str, ...]:
        """Forget all apps, tickets and grants of a session; returns the keys to shut."""
        with Database(self._engine) as db:
            rows = list(db.exec(select(AppRow).where(col(AppRow.session) == session)))
            keys = close_apps(db, session, [row.app for row in rows], now)
            leave(db, [row.label for row in rows], now)
            db.exec(delete(TicketRow).where(col(TicketRow.session) == session))
            db.exec(delete(AppRow).where(col(AppRow.session) == session))
            db.commit()
            return tuple(keys)

    def close_login(self, login: str, now: datetime) -> tuple[str, ...]:
        """Forget the tickets and grants of a login; returns the keys to shut."""
        with Database(self._engine) as db:
            db.exec(delete(TicketRow).where(col(TicketRow.login) == login))
            rows = list(db.exec(select(GrantRow).where(col(GrantRow.login) == login)))
            keys = drop_grants(db, rows, now)
            db.commit()
            return tuple(keys)

    @staticmethod
    def _drop_tickets(db: Database, session: str, app: str) -> None:
        db.exec(
            delete(TicketRow).where(col(TicketRow.session) == session, col(TicketRow.app) == app)
        )

    def shutting(self) -> list[str]:
        """The keys that were taken away and that HAProxy may still know."""
        with Database(self._readers) as db:
            return list(db.exec(select(ShuttingRow.key)))

    def are_shut(self, keys: Collection[str]) -> None:
        """HAProxy has forgotten these keys, and cut who was inside by them."""
        if not keys:
            return
        with Database(self._engine) as db:
            db.exec(delete(ShuttingRow).where(col(ShuttingRow.key).in_(keys)))
            db.commit()


def _is_same(now: OpenApp | None, seen: OpenApp | None) -> bool:
    """Whether an app is where it was seen, and nobody has asked for a port since."""
    if now is None or seen is None:
        return now is seen
    return (now.label, now.moved) == (seen.label, seen.moved)


def _app(row: AppRow) -> OpenApp:
    return OpenApp(**{**row.model_dump(), "state": AppState(row.state)})


def _grant(row: GrantRow) -> Grant:
    return Grant(**row.model_dump())
