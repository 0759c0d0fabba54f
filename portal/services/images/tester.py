"""Runs a recipe's test in its image, contained like a session."""

from __future__ import annotations

from pathlib import Path

from portal.core.images.names import ImageError, ImageName
from portal.core.interfaces.images import Containers, ImageStore, Note, Workspaces

TEST = "test.sh"


class ImageTester:
    """Runs tests of images."""

    def __init__(
        self,
        *,
        containers: Containers,
        store: ImageStore,
        workspaces: Workspaces,
        binds: dict[str, Path],
        note: Note,
    ) -> None:
        """`binds`: what tests may read, by its place in the container."""
        self._containers = containers
        self._store = store
        self._workspaces = workspaces
        self._binds = binds
        self._note = note

    def test(self, name: ImageName, recipe: Path | None) -> None:
        """Run test.sh of a recipe; raises ImageError if there is none, or it fails."""
        script = recipe / TEST if recipe is not None else None
        if script is None or not script.is_file():
            raise ImageError(f"{name} has no test: write {TEST} in the recipe's folder")
        file = self._store.file(name)
        places = {f"/{TEST}": script} | self._binds
        binds = [f"{source}:{place}:ro" for place, source in places.items() if source.exists()]
        self._note(f"Testing {name}")
        with self._workspaces() as work:
            home = work / "home"
            home.mkdir()
            status = self._containers.test(file, home, binds)
        if status:
            raise ImageError(f"{name} does not work: its test ended with status {status}")
        self._note(f"{name} works")
