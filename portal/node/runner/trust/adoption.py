"""Ask a portal that has lost the session, by an empty database or an old backup, to adopt it."""

from __future__ import annotations

import hashlib
import os
import time

from ..callback import Callback, Refused, SessionUnknown, Unreachable
from ..log import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..spec import Spec

# Seconds between two requests: the portal first has to see the job in Slurm's queue.
FIRST_PAUSE, LONGEST_PAUSE = 3.0, 300.0
# The log is the user's, and a portal may be without its database for days.
SAY_EVERY = 3600.0


class Claim:
    """The session's request for adoption, repeated until the portal knows it again.

    The portal learns the job's owner from Slurm. A file proves that the caller is this owner: its
    name is in the spec, it is in a folder that only the owner can write to, and it has the hash of
    the token.
    """

    def __init__(self, callback: Callback, spec: Spec, endpoint: dict[str, object]) -> None:
        self._callback = callback
        self._about, self._proof = spec.about, spec.proof
        self._hash = hashlib.sha256(spec.token.encode()).hexdigest()
        self._endpoint = {"job_id": endpoint["job_id"], "node": endpoint["node"]}
        self._pause = FIRST_PAUSE
        self._due = 0.0
        self._say_at = 0.0

    def prove(self) -> None:
        """Write the proof; errors are ignored, since it is written again when it is needed."""
        path = self._proof
        if not path:
            return
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            file = os.open(f"{path}.new", flags, 0o600)
            try:
                os.write(file, f"{self._hash}\n".encode())
            finally:
                os.close(file)
            os.replace(f"{path}.new", path)
        except OSError:
            return

    def ask(self) -> bool:
        """Ask the portal, unless it was asked just now; returns whether it adopted the session.

        Raises SessionOver.
        """
        self._tell("The portal does not know this session, which goes on")
        now = time.monotonic()
        if not self._proof or now < self._due:
            return False
        self._due = now + self._pause
        self._pause = min(self._pause * 1.5, LONGEST_PAUSE)
        self.prove()
        try:
            self._callback.post("adopt", {**self._endpoint, "about": self._about})
        except SessionUnknown:
            return False
        except (Refused, Unreachable) as error:
            self._tell(f"The portal does not take this session in: {error}")
            return False
        self._pause, self._due, self._say_at = FIRST_PAUSE, 0.0, 0.0
        say("The portal has taken this session in")
        return True

    @property
    def wait(self) -> float:
        """Seconds until the portal may be asked again."""
        left = self._due - time.monotonic()
        return max(left, 0.0) if self._proof else LONGEST_PAUSE

    def _tell(self, text: str) -> None:
        now = time.monotonic()
        if now >= self._say_at:
            say(text)
            self._say_at = now + SAY_EVERY
