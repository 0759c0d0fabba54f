"""Values of variables at rest: what the database's files reveal, and what a lost key costs."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from portal.core.launch.presets import Preset
from portal.core.session.transitions import fail_to_start
from portal.errors import Conflict
from portal.store.encryption import Sealer, Unreadable, make_key, read_keys
from portal.store.engine import open_database, upgrade
from portal.store.presets import PresetStore
from portal.store.reencrypt import seal_all
from portal.store.sessions import SessionStore
from tests.support.stored_sessions import NOON, numbered_session

CANARY = "CANARY-env-4711"
ENV = {"WANDB_API_KEY": CANARY}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A folder with one key."""
    make_key(tmp_path / "keys")
    return tmp_path / "keys"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """An empty database."""
    address = f"sqlite:///{tmp_path}/test.db"
    upgrade(address)
    return address


def dump(folder: Path) -> bytes:
    """Everything that a thief of the database's files has."""
    return b"".join(file.read_bytes() for file in folder.glob("test.db*"))


def test_the_database_has_no_value_in_clear(tmp_path: Path, keys: Path, url: str) -> None:
    engine, sealer = open_database(url), Sealer(keys)
    store, presets = SessionStore(engine, sealer), PresetStore(engine, sealer)
    store.add([numbered_session(1)], "key", "fingerprint-4711", ENV)
    presets.save("alice", Preset("mine", {"environment": "python", "env": ENV}, NOON), False, 100)
    for secret in (CANARY.encode(), b"fingerprint-4711"):
        assert secret not in dump(tmp_path)
    assert store.env(numbered_session(1).id) == ENV
    found = presets.get("alice", "mine")
    assert found is not None
    assert found.body["env"] == ENV
    assert presets.all("alice")[0].body["env"] == {"WANDB_API_KEY": ""}
    assert presets.rename("alice", "mine", "hers")
    assert presets.get("alice", "hers") == Preset("hers", found.body, NOON)
    assert (keys.stat().st_mode & 0o777, {f.stat().st_mode & 0o777 for f in keys.iterdir()}) == (
        0o700,
        {0o600},
    )


def test_the_same_key_still_launches_once(keys: Path, url: str) -> None:
    store = SessionStore(open_database(url), Sealer(keys))
    store.add([numbered_session(1)], "key", "one", ENV)
    make_key(keys)
    again, new = store.add([numbered_session(2)], "key", "one", ENV)
    assert ([s.id for s in again], new) == ([numbered_session(1).id], False)
    with pytest.raises(Conflict):
        store.add([numbered_session(3)], "key", "other", ENV)


def test_a_ciphertext_opens_only_in_its_own_row(keys: Path) -> None:
    sealer = Sealer(keys)
    sealed = sealer.seal("text", "session_env 1")
    assert sealer.open(sealed, "session_env 1") == "text"
    other = make_key(keys)
    forged = f"v1:{other}:{sealed.rpartition(':')[2]}"
    for text, place in ((sealed, "session_env 2"), (forged, "session_env 1"), ("x", "y")):
        with pytest.raises(Unreadable):
            sealer.open(text, place)
    assert sealer.seal("text", "p") != sealer.seal("text", "p")


def _in_clear(engine: object, tmp_path: Path) -> None:
    """Rows as earlier versions wrote them."""
    with sqlite3.connect(tmp_path / "test.db") as db:
        for number in range(50):
            env = json.dumps({"A": f"{CANARY}-{number}"})
            db.execute(
                "INSERT INTO session_env (session, variables) VALUES (?, ?)",
                (f"{number:032x}", env),
            )
        body = json.dumps({"environment": "python", "env": ENV})
        db.execute("INSERT INTO preset VALUES ('alice', 'mine', ?, '2026-11-20')", (body,))
        db.execute("INSERT INTO launch_key VALUES ('alice', 'key', 's', 'aabbcc')")
    db.close()


def test_existing_clear_values_are_sealed(tmp_path: Path, keys: Path, url: str) -> None:
    engine, sealer = open_database(url), Sealer(keys)
    _in_clear(engine, tmp_path)
    assert CANARY.encode() in dump(tmp_path)
    store = SessionStore(engine, sealer)
    assert store.env(f"{7:032x}") == {"A": f"{CANARY}-7"}, "a portal works meanwhile"
    assert seal_all(engine, sealer) == (52, 0)
    assert CANARY.encode() not in dump(tmp_path)
    assert b"aabbcc" not in dump(tmp_path)
    assert store.env(f"{7:032x}") == {"A": f"{CANARY}-7"}
    found = PresetStore(engine, sealer).get("alice", "mine")
    assert found is not None
    assert found.body["env"] == ENV
    assert seal_all(engine, sealer) == (0, 0)


class Crash(Exception):
    """The process is killed."""


def test_sealing_may_be_interrupted_at_any_row(
    tmp_path: Path, keys: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, sealer = open_database(url), Sealer(keys)
    _in_clear(engine, tmp_path)
    seal, left = sealer.seal, [20]

    def stop(text: str, place: str) -> str:
        left[0] -= 1
        if left[0] < 0:
            raise Crash
        return seal(text, place)

    monkeypatch.setattr(sealer, "seal", stop)
    with pytest.raises(Crash):
        seal_all(engine, sealer)
    monkeypatch.undo()
    store = SessionStore(engine, sealer)
    assert [store.env(f"{n:032x}")["A"] for n in range(50)] == [f"{CANARY}-{n}" for n in range(50)]
    results: list[tuple[int, int]] = []
    threads = [
        threading.Thread(target=lambda: results.append(seal_all(engine, sealer))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(changed for changed, _ in results) == 32
    assert CANARY.encode() not in dump(tmp_path)


def test_a_new_key_takes_over_and_the_old_one_may_be_removed(keys: Path, url: str) -> None:
    engine, sealer = open_database(url), Sealer(keys)
    store = SessionStore(engine, sealer)
    store.add([numbered_session(1)], None, "", ENV)
    old = max(read_keys(keys))
    assert make_key(keys) > old
    assert store.env(numbered_session(1).id) == ENV
    fresh = Sealer(keys)
    assert seal_all(engine, fresh) == (1, 0)
    (keys / f"variables-{old}.key").unlink()
    assert SessionStore(engine, Sealer(keys)).env(numbered_session(1).id) == ENV
    assert store.env(numbered_session(1).id) == ENV, "a running process finds the new key"


def test_without_the_key_only_the_values_are_lost(keys: Path, url: str) -> None:
    engine = open_database(url)
    store, presets = SessionStore(engine, Sealer(keys)), PresetStore(engine, Sealer(keys))
    store.add([numbered_session(1)], None, "", ENV)
    presets.save("alice", Preset("mine", {"env": ENV}, NOON), False, 100)
    shutil.move(keys, keys.with_name("away"))
    store, presets = SessionStore(engine, Sealer(keys)), PresetStore(engine, Sealer(keys))
    for act in (
        lambda: store.env(numbered_session(1).id),
        lambda: presets.get("alice", "mine"),
        lambda: store.add([numbered_session(2)], None, "", ENV),
    ):
        with pytest.raises(Unreadable, match="key"):
            act()
    store.add([numbered_session(3)], "key", "f", {})
    assert store.get(numbered_session(3).id) is not None
    assert [p.name for p in presets.all("alice")] == ["mine"]
    new = make_key(keys)
    store, sealer = SessionStore(engine, Sealer(keys)), Sealer(keys)
    with pytest.raises(Unreadable, match="restore it"):
        store.env(numbered_session(1).id)
    assert seal_all(engine, sealer) == (1, 2)  # the fingerprint of session 3's key, in clear
    for file in keys.with_name("away").iterdir():
        shutil.copy(file, keys)
    assert store.env(numbered_session(1).id) == ENV
    assert new in read_keys(keys)


def test_values_are_forgotten_some_time_after_the_end(keys: Path, url: str) -> None:
    store = SessionStore(open_database(url), Sealer(keys))
    for number, ended in ((1, NOON), (2, NOON + timedelta(days=20)), (3, None)):
        store.add([numbered_session(number)], None, "", ENV)
        if ended:
            store.apply(numbered_session(number).id, fail_to_start("", ended))
    store.forget_variables(NOON + timedelta(days=10))
    assert [store.env(numbered_session(n).id) for n in (1, 2, 3)] == [{}, ENV, ENV]
