"""The output files of jobs, read as their owners."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from portal.core.auth.person import Person
from portal.core.interfaces.systems import Clock, RecordEvent, UserFiles
from portal.core.jobs.job import Job
from portal.core.jobs.output import (
    FilePiece,
    FileState,
    Reading,
    Stream,
    path_of,
    why_no_path,
    why_unread,
)
from portal.errors import Conflict
from portal.store.jobs.pages import JobPageStore

MAX_READ = 1 << 20
"""Bytes per read."""
LARGEST = 2**62
"""Offsets in bytes beyond this are past the end of every file."""
SAME_READING = timedelta(minutes=10)
"""Polls of a page that follows an output; within this time they are one audit event."""
OF_A_SESSION = "This job runs a session, whose log is on the session's own page."


class JobOutputs:
    """Reads output files, and records when an administrator reads another user's."""

    def __init__(
        self,
        get_job: Callable[[Person, str], Job],
        store: JobPageStore,
        files: UserFiles,
        record: RecordEvent,
        clock: Clock,
    ) -> None:
        self._get_job = get_job
        self._store = store
        self._files = files
        self._record = record
        self._clock = clock

    def read(
        self,
        person: Person,
        shown_id: str,
        stream: Stream,
        offset: int | None,
        limit: int = MAX_READ,
    ) -> FilePiece:
        """Up to `limit` bytes of a job's output from a byte offset on; None: its last ones.

        A file that is not written yet is empty. Raises NotFound, Conflict with the reason if there
        is not an output that can be read, Unavailable.
        """
        job = self._get_job(person, shown_id)
        path = path_of(job, stream)
        if problem := OF_A_SESSION if job.session else why_no_path(path):
            raise Conflict(problem)
        self._record_reading(person, job)
        at = None if offset is None else min(max(offset, 0), LARGEST)
        piece = self._files.read_file(job.report.user, path, at, max(min(limit, MAX_READ), 0))
        if problem := why_unread(job, path, piece):
            raise Conflict(problem)
        return piece

    def size(self, person: Person, shown_id: str, stream: Stream) -> int | None:
        """Bytes in a job's output; None if it is not written yet. Raises as `read` does."""
        piece = self.read(person, shown_id, stream, None, 0)
        return piece.size if piece.state is FileState.REGULAR else None

    def reading(self, job: Job) -> Reading | None:
        """When an administrator last read the job's output, which its owner may see."""
        return self._store.reading(job.id)

    def _record_reading(self, person: Person, job: Job) -> None:
        owner, now = job.report.user, self._clock()
        if person.name == owner:
            return
        if self._store.note_reading(job.id, Reading(person.name, now), now - SAME_READING):
            self._record(person.name, "job.read", job.shown_id, f"the output of {owner}'s job")
