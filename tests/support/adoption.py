"""Sessions that the database has lost, and their jobs' proofs."""

from __future__ import annotations

import json

from sqlmodel import Session as Database
from sqlmodel import delete

from portal.core.auth.person import hash_secret
from portal.core.session.session import Session
from portal.core.session_job import adoption
from portal.store.tables import AppRow, SessionEnvRow, SessionRow
from tests.support.fakes import World
from tests.support.sessions import poll_slurm
from tests.support.slurm import FakeJob


def lose_sessions(world: World, session: Session) -> FakeJob:
    """Forget all sessions; returns the job of this one."""
    with Database(world.engine) as db:
        for table in (SessionRow, SessionEnvRow, AppRow):
            db.exec(delete(table))
        db.commit()
    job = job_of(world, session.id)
    write_proof(world, "alice", session.id, job_token(job))
    follow_queue(world)
    return job


def job_of(world: World, session: str) -> FakeJob:
    return next(job for job in world.slurm.jobs if job.name == session)


def job_token(job: FakeJob) -> str:
    return str(json.loads(job.spec)["token"])


def write_proof(world: World, user: str, session: str, token: str) -> None:
    """What a runner, or anybody with this user's account, writes into its folder."""
    place = f"/home/{user}/.slipway/sessions/{session}/{adoption.PROOF}"
    world.slurm.files[place] = f"{hash_secret(token)}\n".encode()


def follow_queue(world: World) -> None:
    """The worker sees the queue, and what is written in it."""
    poll_slurm(world)
    world.services.job_follower.follow()
    world.services.job_follower.read_texts()
