"""Who uses which file, and what may be deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from portal.core.images.names import ImageName
from portal.core.images.use import (
    MARGIN,
    QueuedJob,
    Removal,
    StoredFile,
    StoredImage,
    decide,
    sessions_of,
)
from portal.core.session.session import Session, State

THEN = datetime(2026, 11, 23, 12, tzinfo=UTC)
NOW = THEN + timedelta(days=1)
OLD, NEW = StoredFile("image-1.sif", 10, False), StoredFile("image-2.sif", 20, True)
NAME = ImageName("python", "3.13")
REPLACED = StoredImage(NAME, "Python", (OLD, NEW), THEN)
RETIRED = StoredImage(NAME, "Python", (OLD, NEW), THEN, retired=THEN)


def session(submitted: datetime, version: str = "3.13") -> Session:
    return Session(
        id="a" * 32, name="s", owner="ann", environment="python", version=version, cpus=1,
        memory_mb=100, created=submitted, token_hash="", submitted=submitted, state=State.RUNNING,
    )  # fmt: skip


def test_nothing_is_deleted_of_an_image_that_was_never_replaced() -> None:
    assert decide(StoredImage(NAME, "Python", (NEW,), THEN), [], [], NOW) is None


def test_replaced_files_and_retired_images_are_deleted_when_nobody_uses_them() -> None:
    assert decide(REPLACED, [], [], NOW) == Removal(REPLACED, (OLD,))
    assert decide(RETIRED, [], [], NOW) == Removal(RETIRED, (OLD, NEW), entire_image=True)


def test_a_session_submitted_before_keeps_the_replaced_file_and_a_later_one_does_not() -> None:
    kept = decide(REPLACED, [session(THEN + MARGIN)], [], NOW)
    assert kept == Removal(REPLACED, kept_because="1 session of ann may use it")
    later = [session(THEN + MARGIN + timedelta(seconds=1)), session(THEN, "3.11")]
    assert decide(REPLACED, later, [], NOW) == Removal(REPLACED, (OLD,))


def test_every_session_keeps_a_retired_image() -> None:
    found = decide(RETIRED, [session(NOW)], [], NOW)
    assert found == Removal(RETIRED, kept_because="1 session of ann may use it")


@pytest.mark.parametrize("image", [REPLACED, RETIRED])
def test_jobs_that_were_queued_before_keep_the_file(image: StoredImage) -> None:
    jobs = [
        QueuedJob("9", "bob", THEN),
        QueuedJob("7", "cy", THEN - MARGIN),
        QueuedJob("8", "d", NOW),
    ]
    found = decide(image, [], jobs, NOW)
    text = "2 batch jobs submitted before may use it (the oldest: 7 of cy)"
    assert found == Removal(image, kept_because=text)
    assert decide(image, [], jobs[2:], NOW) != found


def test_what_was_just_replaced_is_kept_for_those_who_are_launching_it() -> None:
    found = decide(REPLACED, [], [], THEN + MARGIN - timedelta(seconds=1))
    assert found == Removal(REPLACED, kept_because="replaced less than ten minutes ago")


def test_sessions_of_an_image() -> None:
    one, other = session(THEN), session(THEN, "3.11")
    assert sessions_of(NAME, [one, other]) == [one]
    assert REPLACED.size == 20
