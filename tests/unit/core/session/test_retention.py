"""What stays after a session's end, in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from portal.core.launch.mounts import Mount
from portal.core.session.retention import MOST_COUNTED, retention
from portal.core.session.session import Home, Session
from portal.node.runner.home import MOST_FILES

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
REST = "Everything else in this session is deleted."
DATA, MORE, HOME = Mount(folder="climate-2026"), Mount(folder="more"), Mount(folder="home")


def _session(*mounts: Mount, home: Home = Home.SESSION, files: int | None = None) -> Session:
    return Session(
        id="0" * 32,
        name="first",
        owner="alice",
        environment="python",
        version="3.13",
        cpus=1,
        memory_mb=1024,
        mounts=mounts,
        home=home,
        home_files=files,
        home_bytes=12 * 2**20 if files is not None else None,
        created=NOW,
        submitted=NOW,
        started=NOW,
        token_hash="0" * 64,
    )


@pytest.mark.parametrize(
    ("session", "stays", "goes"),
    [
        (_session(), "", "Everything in this session is deleted."),
        (_session(files=1), "", "Everything in this session is deleted: 1 file, 12 MB."),
        (
            _session(DATA, files=3),
            "climate-2026 stays.",
            "Everything else in this session is deleted: 3 files, 12 MB.",
        ),
        (_session(DATA, files=0), "climate-2026 stays.", REST),
        (
            _session(DATA, MORE),
            "climate-2026 and more stay.",
            REST,
        ),
        (_session(HOME), "Your home directory stays.", REST),
        (
            _session(Mount(folder="shared", read_only=True)),
            "",
            "Everything in this session is deleted.",
        ),
        (_session(home=Home.PERSISTENT, files=3), "Your home directory stays.", ""),
    ],
)  # fmt: skip
def test_what_stays_and_what_is_deleted_is_named(session: Session, stays: str, goes: str) -> None:
    facts = retention(session)
    assert (facts.stays, facts.goes) == (stays, goes)


def test_only_a_session_without_a_writable_mount_advises_a_download() -> None:
    assert "download" in retention(_session()).advice
    assert not retention(_session(DATA)).advice
    assert not retention(_session(home=Home.PERSISTENT)).advice


@pytest.mark.parametrize(
    ("session", "short"),
    [
        (_session(files=3), "everything is deleted: 3 files, 12 MB"),
        (_session(DATA, files=3), "climate-2026 stays, the rest is deleted: 3 files, 12 MB"),
        (_session(DATA, MORE), "climate-2026 and more stay, the rest is deleted"),
        (_session(home=Home.PERSISTENT), "your home directory stays"),
    ],
)
def test_the_same_in_one_line(session: Session, short: str) -> None:
    assert retention(session).short == short


def test_a_session_that_never_started_deletes_nothing() -> None:
    waiting = _session(DATA).model_copy(update={"started": None})
    assert (retention(waiting).stays, retention(waiting).goes) == ("climate-2026 stays.", "")
    nothing = _session().model_copy(update={"started": None})
    assert (retention(nothing).goes, retention(nothing).advice) == ("", "")
    assert retention(nothing).short == "nothing has been saved in it"


def test_amounts() -> None:
    small = _session(files=1).model_copy(update={"home_bytes": 300})
    assert retention(small).goes.endswith(": 1 file, 1 KB.")
    many = _session(files=MOST_COUNTED)
    assert retention(many).goes.endswith(": at least 10000 files, 12 MB.")
    assert MOST_COUNTED == MOST_FILES
