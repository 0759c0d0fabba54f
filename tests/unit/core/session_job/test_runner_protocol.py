"""The description of a session that is submitted to Slurm."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from portal.core.apps.catalog import Image
from portal.core.launch.mounts import Mount, MountPoint
from portal.core.session.session import Home, Session, State
from portal.core.session_job.description import JobSettings, build_job
from portal.core.session_job.runner_protocol import runner_spec

RULES = JobSettings(
    "", "/t.sqsh", ".slipway", "https://portal", (0, 0), 10, "/lustre/{user}/storage"
)
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def test_every_submission_of_a_session_has_its_mounts() -> None:
    session = Session(
        id="0" * 32,
        name="name",
        owner="alice",
        environment="python",
        version="3.13",
        cpus=1,
        memory_mb=600,
        mounts=(Mount(folder="home"), Mount(folder="data", read_only=True)),
        state=State.SUBMITTING,
        created=NOW,
        submitted=NOW,
        token_hash="",
    )
    image = Image(environment="python", version="3.13", path="/i.sif", title="Python", apps=())
    assert build_job(session, image, RULES).mounts == (
        MountPoint("home", ".", False),
        MountPoint("data", "/lustre/alice/storage/data", True),
    )


def session(**fields: Any) -> Session:
    """A session of alice's."""
    return Session(
        id="0" * 32,
        name="name",
        owner="alice",
        **{"environment": "python", "version": "3.13", "cpus": 1, "memory_mb": 600, **fields},
        state=State.SUBMITTING,
        created=NOW,
        submitted=NOW,
        token_hash="",
    )


def packages_of(one: Session) -> Any:
    """What its runner is told of packages."""
    text = runner_spec(one, "t", (), RULES, {}, callback_ca="", client_ca="", adoption={})
    return json.loads(text)["packages"]


MOUNTS = (
    Mount(folder="maps", read_only=True),
    Mount(folder="bob/shared"),
    Mount(folder="data"),
    Mount(folder="home"),
)


def test_packages_are_kept_in_the_first_own_writable_folder() -> None:
    """Never in another user's, whose files would run as this user."""
    assert packages_of(session(mounts=MOUNTS)) == {
        "name": "python-3.13",
        "folders": ["data", "home"],
    }
    own_home = session(mounts=MOUNTS, home=Home.PERSISTENT)
    assert packages_of(own_home)["folders"] == ["/lustre/alice/storage/data", ""]


def test_own_images_have_packages_of_their_own() -> None:
    images = [
        "docker://registry.example.org/a/b:1",
        "docker://registry.example.org/a-b:1",
        "x/y.sif",
    ]
    names = [
        packages_of(session(environment="own", version="x", image=image))["name"]
        for image in images
    ]
    assert len(set(names)) == 3
    assert all(re.fullmatch(r"own-[A-Za-z0-9._-]{1,80}", name) for name in names)
