"""The description of a session that is submitted to Slurm."""

from __future__ import annotations

from datetime import UTC, datetime

from portal.core.apps.catalog import Image
from portal.core.job.description import JobSettings, build_job
from portal.core.launch.mounts import Mount, MountPoint
from portal.core.session.session import Session, State

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
