"""Logins and API tokens in the database."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine, bindparam, case, func, or_
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.core.auth.logins import BROWSER, KINDS, TOKEN, Login, UserLogins
from portal.core.auth.people import PeoplePage, PeopleQuery
from portal.store.access import drop_grants
from portal.store.paging import Listing, read_piece
from portal.store.reading import reading, reading_rows
from portal.store.tables import AccountRow, GrantRow, LoginRow, TicketRow, UtcDateTime

KEPT = timedelta(hours=1)
"""How long a revoked login is kept: longer than a request takes or a ticket lives."""


class LoginStore:
    """Logins and API tokens: server-side, so that each can be revoked at once.

    A revoked login is kept for an hour, so that tickets and grants that a concurrent request still
    derives from it can be revoked as well (`left_over`). Every method is one transaction.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def add_login(self, login: Login, most: int) -> bool:
        """Store a login; False if its user already has `most` live ones of this kind."""
        count = select(func.count()).where(
            _live(login.created), col(LoginRow.user) == login.user, col(LoginRow.kind) == login.kind
        )
        with Database(self._engine) as db:
            if db.exec(count).one() >= most:
                return False
            db.add(LoginRow(**vars(login)))
            db.commit()
            return True

    def login(self, hash: str, now: datetime) -> Login | None:
        """The login with this hash, unless it has expired or was revoked."""
        with reading(self._readers) as db:
            row = db.get(LoginRow, hash)
            if row is None or row.revoked is not None or row.expires < now:
                return None
            return _login(row)

    def logins(self, user: str, now: datetime) -> list[Login]:
        """All live logins and tokens of a user, newest first."""
        query = select(LoginRow).where(_live(now), col(LoginRow.user) == user)
        query = query.order_by(col(LoginRow.created).desc(), col(LoginRow.id))
        with reading(self._readers) as db:
            return [_login(row) for row in db.exec(query)]

    def is_watched(self, user: str, since: datetime) -> bool:
        """Whether a user has used a browser, or had a visible page of it open, since a time."""
        with reading_rows(self._readers) as connection:
            times = connection.execute(_LAST_SEEN, {"owner": user}).one()
        return any(moment is not None and moment >= since for moment in times)

    def present(self, now: datetime) -> list[UserLogins]:
        """All users with a live login or token, by name."""
        with reading(self._readers) as db:
            return _present(db, now)

    def people(self, query: PeopleQuery, now: datetime) -> PeoplePage:
        """One page of the users with a live login or token."""
        user: Any = col(LoginRow.user)
        users = select(user).where(_live(now)).group_by(user)
        if query.name is not None:
            users = users.where(user.icontains(query.name, autoescape=True))
        with reading(self._readers) as db:
            listing = Listing(query.sort, user, user, query.place, query.limit)
            piece = read_piece(db, users, listing)
            logins = {logins.user: logins for logins in _present(db, now, piece.rows)}
        people = tuple(logins[name] for name in piece.rows if name in logins)
        return PeoplePage(people, piece.following, piece.previous)

    def use_login(self, hash: str, used: datetime, expires: datetime) -> None:
        """Record the use of a login, and its new expiry."""
        with Database(self._engine) as db:
            condition = col(LoginRow.hash) == hash
            db.exec(update(LoginRow).where(condition).values(used=used, expires=expires))
            db.commit()

    def see_login(self, hash: str, now: datetime) -> None:
        """Record that a page of this login is visible."""
        with self._engine.begin() as connection:
            connection.execute(_SEEN, {"_hash": hash, "_now": now})

    def revoke(
        self, user: str, now: datetime, *, id: str | None = None, kinds: Collection[str] = KINDS
    ) -> tuple[list[Login], list[str]]:
        """Revoke a user's logins (one, or all of these kinds), with their tickets and grants.

        Returns the revoked logins, and the keys to remove from HAProxy. For all kinds, grants of
        logins that have expired since are included.
        """
        everything = id is None and set(kinds) == set(KINDS)
        conditions = [_live(now), col(LoginRow.user) == user, col(LoginRow.kind).in_(kinds)]
        conditions += [] if id is None else [col(LoginRow.id) == id]
        with Database(self._engine) as db:
            rows = db.exec(select(LoginRow).where(*conditions).with_for_update()).all()
            revoked = [_login(row) for row in rows]
            hashes = [login.hash for login in revoked]
            for row in rows:
                row.revoked = now
            db.flush()
            if everything:
                which_grants = col(GrantRow.user) == user
                keys = _drop_access(db, col(TicketRow.user) == user, which_grants, now)
            else:
                keys = _drop_of(db, hashes, now)
            db.commit()
            return revoked, keys

    def left_over(self, now: datetime) -> list[str]:
        """Delete tickets and grants of revoked logins; returns the keys to remove from HAProxy."""
        revoked = select(LoginRow.hash).where(col(LoginRow.revoked).is_not(None))
        with reading(self._readers) as db:
            hashes = list(db.exec(revoked))
            derived = or_(
                select(TicketRow.hash).where(col(TicketRow.login).in_(hashes)).exists(),
                select(GrantRow.cookie_hash).where(col(GrantRow.login).in_(hashes)).exists(),
            )
            if not hashes or not db.exec(select(derived)).one():
                return []
        with Database(self._engine) as db:
            keys = _drop_of(db, hashes, now)
            db.commit()
            return keys

    def provider_logins(self, issuer: str, subject: str, sid: str, now: datetime) -> list[Login]:
        """Live logins through a provider, of a subject or a provider's session; "" matches any."""
        conditions = [_live(now), col(LoginRow.issuer) == issuer]
        conditions += [col(LoginRow.subject) == subject] if subject else []
        conditions += [col(LoginRow.sid) == sid] if sid else []
        if len(conditions) == 2:
            return []
        with reading(self._readers) as db:
            return [_login(row) for row in db.exec(select(LoginRow).where(*conditions))]

    def is_provider_admin(self, issuer: str, user: str, now: datetime) -> bool:
        """Whether the user has a live login that a provider marked as an administrator's."""
        query = select(LoginRow.id).where(
            _live(now),
            col(LoginRow.user) == user,
            col(LoginRow.issuer) == issuer,
            col(LoginRow.admin),
        )
        with reading(self._readers) as db:
            return db.exec(query.limit(1)).first() is not None

    def inside(self, since: datetime, now: datetime) -> set[str]:
        """Users who have used a login since a time, or have a browser in an app."""
        used = select(LoginRow.user).where(_live(now), col(LoginRow.used) >= since).distinct()
        with reading(self._readers) as db:
            return {*db.exec(used), *db.exec(select(GrantRow.user).distinct())}

    def password_seen(self, user: str) -> str:
        """Last known status of an account's password: "P" (usable), "L" (locked), else ""."""
        with reading(self._readers) as db:
            row = db.get(AccountRow, user)
            return row.password if row else ""

    def note_password(self, user: str, status: str) -> None:
        """Save the status of an account's password."""
        with Database(self._engine) as db:
            db.merge(AccountRow(user=user, password=status))
            db.commit()

    def expire(self, now: datetime) -> None:
        """Delete logins and tickets that have expired."""
        over = or_(
            (col(LoginRow.expires) < now) & col(LoginRow.revoked).is_(None),
            col(LoginRow.revoked) < now - KEPT,
        )
        with Database(self._engine) as db:
            db.exec(delete(LoginRow).where(over))
            db.exec(delete(TicketRow).where(col(TicketRow.expires) < now))
            db.commit()


def _present(db: Database, now: datetime, names: Collection[str] | None = None) -> list[UserLogins]:
    """All users, or these, with a live login or token, by name."""
    user, used = col(LoginRow.user), func.max(col(LoginRow.used), type_=UtcDateTime)
    browsers, tokens = (
        func.sum(case((col(LoginRow.kind) == kind, 1), else_=0)) for kind in (BROWSER, TOKEN)
    )
    query = select(user, browsers, tokens, used).where(_live(now)).group_by(user).order_by(user)
    if names is not None:
        query = query.where(user.in_(names))
    return [UserLogins(*row) for row in db.exec(query)]


_LAST_SEEN = select(
    func.max(col(LoginRow.used), type_=UtcDateTime), func.max(col(LoginRow.seen), type_=UtcDateTime)
).where(
    col(LoginRow.user) == bindparam("owner"),
    col(LoginRow.kind) == BROWSER,
    col(LoginRow.revoked).is_(None),
)
_THIS = col(LoginRow.hash) == bindparam("_hash")
_SEEN = update(LoginRow).where(_THIS).values(seen=bindparam("_now"))


def _live(now: datetime) -> Any:
    return (col(LoginRow.expires) >= now) & col(LoginRow.revoked).is_(None)


def _drop_of(db: Database, hashes: Collection[str], now: datetime) -> list[str]:
    return _drop_access(db, col(TicketRow.login).in_(hashes), col(GrantRow.login).in_(hashes), now)


def _drop_access(db: Database, tickets: Any, grants: Any, now: datetime) -> list[str]:
    db.exec(delete(TicketRow).where(tickets))
    return drop_grants(db, list(db.exec(select(GrantRow).where(grants))), now)


def _login(row: LoginRow) -> Login:
    return Login(**row.model_dump(exclude={"revoked"}))
