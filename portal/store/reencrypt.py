"""Re-encrypts values in the database that are in clear or sealed with an older key.

Each row is updated by one statement, and only if it has not changed since it was read, so this can
be interrupted at any point and repeated, also while the portal is running.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session as Database
from sqlmodel import col, select, update

from portal.store.encryption import Sealer, Unreadable, is_sealed
from portal.store.tables import LaunchKeyRow, PresetRow, RegistryLoginRow, SessionEnvRow

log = logging.getLogger(__name__)

SESSION = "session_env"
PRESET = "preset"


def session_aad(session: str) -> str:
    """The associated data of a session's variables."""
    return f"{SESSION} {session}"


def preset_aad(owner: str, variable: str) -> str:
    """The associated data of a preset's variable; without the preset's name, which may change."""
    return f"{PRESET} {owner} {variable}"


def login_aad(owner: str, registry: str) -> str:
    """The associated data of a password for a registry."""
    return f"registry_login {owner} {registry}"


def seal_preset(sealer: Sealer, owner: str, body: dict[str, Any]) -> str:
    """A preset's body as JSON with each variable's value sealed; names stay readable."""
    env = {k: sealer.seal(v, preset_aad(owner, k)) for k, v in body.get("env", {}).items()}
    return json.dumps(body | ({"env": env} if env else {}))


def seal_all(engine: Engine, sealer: Sealer) -> tuple[int, int]:
    """Seal every value that is not sealed with the newest key. Idempotent.

    Returns the numbers of updated rows, and of rows that no key opens, which are unchanged.
    """
    parts = (_seal_sessions, _seal_presets, _seal_logins, _seal_keys)
    counts = [part(engine, sealer) for part in parts]
    changed, lost = sum(d[0] for d in counts), sum(d[1] for d in counts)
    if changed and engine.dialect.name == "sqlite":
        _wipe(engine)
    return changed, lost


def _seal_sessions(engine: Engine, sealer: Sealer) -> tuple[int, int]:
    changed = lost = 0
    for row in _rows(engine, select(SessionEnvRow)):
        aad = session_aad(row.session)
        for name in ("variables", "hub"):
            stored: str = getattr(row, name)
            if not stored or sealer.is_current(stored):
                continue
            try:
                clear = stored if stored[:1] == "{" else sealer.open(stored, aad)
            except Unreadable:
                lost += 1
                continue
            condition = (col(SessionEnvRow.session) == row.session) & (
                getattr(SessionEnvRow, name) == stored
            )
            values = {name: sealer.seal(clear, aad)}
            changed += _change(engine, update(SessionEnvRow).where(condition).values(**values))
    return changed, lost


def _seal_presets(engine: Engine, sealer: Sealer) -> tuple[int, int]:
    changed = lost = 0
    for row in _rows(engine, select(PresetRow)):
        body = json.loads(row.request)
        env: dict[str, str] = body.get("env", {})
        if all(sealer.is_current(value) for value in env.values()):
            continue
        try:
            body["env"] = open_values(sealer, row.owner, env)
        except Unreadable:
            lost += 1
            continue
        condition = (
            (col(PresetRow.owner) == row.owner)
            & (col(PresetRow.name) == row.name)
            & (col(PresetRow.request) == row.request)
        )
        values = {"request": seal_preset(sealer, row.owner, body)}
        changed += _change(engine, update(PresetRow).where(condition).values(**values))
    return changed, lost


def _seal_logins(engine: Engine, sealer: Sealer) -> tuple[int, int]:
    changed = lost = 0
    for row in _rows(engine, select(RegistryLoginRow)):
        if sealer.is_current(row.secret):
            continue
        aad = login_aad(row.owner, row.host)
        try:
            values = {"secret": sealer.seal(sealer.open(row.secret, aad), aad)}
        except Unreadable:
            lost += 1
            continue
        condition = (
            (col(RegistryLoginRow.owner) == row.owner)
            & (col(RegistryLoginRow.host) == row.host)
            & (col(RegistryLoginRow.secret) == row.secret)
        )
        changed += _change(engine, update(RegistryLoginRow).where(condition).values(**values))
    return changed, lost


def open_values(sealer: Sealer, owner: str, env: dict[str, str]) -> dict[str, str]:
    """The values of a preset's variables; raises Unreadable."""
    return {
        name: sealer.open(value, preset_aad(owner, name)) if is_sealed(value) else value
        for name, value in env.items()
    }


def _seal_keys(engine: Engine, sealer: Sealer) -> tuple[int, int]:
    changed = lost = 0
    for row in _rows(engine, select(LaunchKeyRow)):
        if is_sealed(row.fingerprint):  # a keyed hash cannot be recomputed with a new key
            continue
        condition = (
            (col(LaunchKeyRow.owner) == row.owner)
            & (col(LaunchKeyRow.key) == row.key)
            & (col(LaunchKeyRow.fingerprint) == row.fingerprint)
        )
        values = {"fingerprint": sealer.mark(row.fingerprint)}
        changed += _change(engine, update(LaunchKeyRow).where(condition).values(**values))
    return changed, lost


def _rows(engine: Engine, query: Any) -> list[Any]:
    with Database(engine.execution_options(read_only=True)) as db:
        return list(db.exec(query))


def _change(engine: Engine, statement: Any) -> int:
    with Database(engine) as db:
        result = db.exec(statement)
        db.commit()
        return int(result.rowcount)


def _wipe(engine: Engine) -> None:
    """Erase the earlier values from free pages of the file and from its WAL."""
    raw = engine.raw_connection()
    try:
        for command in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            raw.cursor().execute(command)
    except sqlite3.OperationalError as error:
        # Locked by a running portal: pages of deleted rows are overwritten when they are reused.
        log.warning("free pages of the database were not cleaned: %s", error)
    finally:
        raw.close()
