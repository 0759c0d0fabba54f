"""Users' choices of e-mail, and messages, in the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import Engine
from sqlmodel import Session as Database
from sqlmodel import col, delete, func, select, update

from portal.core.mail.messages import Message, Occasion
from portal.store.reading import reading
from portal.store.tables import MailChoiceRow, MessageRow


class MailStore:
    """Choices and messages. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def choice(self, person: str) -> frozenset[Occasion]:
        """What a user wants to be told about."""
        with reading(self._readers) as db:
            row = db.get(MailChoiceRow, person)
            return _occasions(row) if row else frozenset()

    def choose(self, person: str, occasions: Collection[Occasion], now: datetime) -> None:
        """Store what a user wants to be told about from now on; nothing deletes the row."""
        with Database(self._engine) as db:
            row = db.get(MailChoiceRow, person)
            if not occasions:
                if row is not None:
                    db.delete(row)
            else:
                words = " ".join(sorted(occasions))
                looked = row.looked if row else now
                db.merge(MailChoiceRow(person=person, occasions=words, looked=looked))
            db.commit()

    def choices(self) -> list[tuple[str, frozenset[Occasion], datetime]]:
        """All users who want messages: what about, and until when events were looked at."""
        with reading(self._readers) as db:
            rows = db.exec(select(MailChoiceRow))
            return [(row.person, _occasions(row), row.looked) for row in rows]

    def add(self, person: str, messages: Sequence[Message], now: datetime) -> None:
        """Store messages that are new, and that events were looked at until now."""
        with Database(self._engine) as db:
            known = set(
                db.exec(
                    select(MessageRow.occasion, MessageRow.about).where(
                        MessageRow.person == person,
                        col(MessageRow.about).in_([message.about for message in messages]),
                    )
                )
            )
            for message in messages:
                if (message.occasion.value, message.about) not in known:
                    db.add(MessageRow(**vars(message), created=now))
            db.exec(
                update(MailChoiceRow).where(col(MailChoiceRow.person) == person).values(looked=now)
            )
            db.commit()

    def waiting(self) -> dict[str, list[tuple[int, Message]]]:
        """Messages that were not sent yet, by user, the oldest first, with their numbers."""
        query = (
            select(MessageRow).where(col(MessageRow.sent).is_(None)).order_by(col(MessageRow.id))
        )
        waiting: dict[str, list[tuple[int, Message]]] = defaultdict(list)
        with reading(self._readers) as db:
            for row in db.exec(query):
                message = Message(
                    row.person, Occasion(row.occasion), row.about, row.subject, row.text
                )
                waiting[row.person].append((row.id or 0, message))
        return waiting

    def sent_since(self, person: str, since: datetime) -> int:
        """At how many times mail was sent to a user; what was joined counts once."""
        query = select(func.count(func.distinct(MessageRow.sent))).where(
            MessageRow.person == person, col(MessageRow.sent) >= since
        )
        with reading(self._readers) as db:
            return db.exec(query).one()

    def mark_sent(self, numbers: Collection[int], now: datetime) -> None:
        """Note that these were sent, or are given up."""
        with Database(self._engine) as db:
            db.exec(update(MessageRow).where(col(MessageRow.id).in_(numbers)).values(sent=now))
            db.commit()

    def forget(self, before: datetime) -> None:
        """Delete old messages."""
        with Database(self._engine) as db:
            db.exec(delete(MessageRow).where(col(MessageRow.created) < before))
            db.commit()


def _occasions(row: MailChoiceRow) -> frozenset[Occasion]:
    known = set(Occasion)
    return frozenset(Occasion(word) for word in row.occasions.split() if word in known)
