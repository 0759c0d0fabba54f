"""Lists images with their users, retires versions and deletes unused files."""

from __future__ import annotations

from collections.abc import Callable, Collection

from portal.core.images.names import ImageError, ImageName
from portal.core.images.use import QueuedJob, Removal, StoredImage, decide, sessions_of
from portal.core.interfaces.images import ImageStore
from portal.core.interfaces.systems import Clock
from portal.core.session.session import Session


class ImageKeeper:
    """The site's images, and the sessions and jobs that use them."""

    def __init__(
        self,
        *,
        store: ImageStore,
        sessions: Callable[[], Collection[Session]],
        jobs: Callable[[], Collection[QueuedJob]],
        clock: Clock,
    ) -> None:
        """`sessions`: those that have not ended; `jobs`: those that Slurm has not finished."""
        self._store = store
        self._sessions = sessions
        self._jobs = jobs
        self._clock = clock

    def listed(self) -> list[tuple[StoredImage, int]]:
        """All images, each with the number of sessions that use it."""
        live = self._sessions()
        return [(image, len(sessions_of(image.name, live))) for image in self._store.all()]

    def retire(self, name: ImageName) -> list[Session]:
        """Hide a version from launches; returns the sessions that keep it. Idempotent."""
        with self._store.lock(name):
            if self._store.get(name).retired is None:
                self._store.retire(name, self._clock())
        return sessions_of(name, self._sessions())

    def restore(self, name: ImageName) -> None:
        """Offer a retired version again; raises ImageError if there is none."""
        with self._store.lock(name):
            if self._store.get(name).retired is None:
                raise ImageError(f"{name} is not retired")
            self._store.retire(name, None)

    def prune(self, dry_run: bool, names: Collection[ImageName] = ()) -> list[Removal]:
        """Delete unused retired images and replaced files; returns the decisions.

        `names`: only these images; empty means all. Raises ImageError if one does not exist.
        """
        decided = []
        for image in [self._store.get(name) for name in names] or self._store.all():
            with self._store.lock(image.name):
                removal = self._decide(image.name)
                if removal is None:
                    continue
                if removal.files and not dry_run:
                    self._store.remove(removal)
                decided.append(removal)
        return decided

    def _decide(self, name: ImageName) -> Removal | None:
        """Decide on an image. Sessions and jobs are read after it: later ones have a newer file."""
        image = self._store.get(name)
        return decide(image, self._sessions(), self._jobs(), self._clock())
