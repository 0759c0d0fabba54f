"""Counts of changes, by which a page's poll sees that nothing has changed."""

from __future__ import annotations

from dataclasses import dataclass

EVERYBODY = "*"
"""In place of a user's name: the changes of all users."""


NOT_SHOWN = -1
"""In place of a count, on a page that does not show what is counted."""


@dataclass(frozen=True)
class ChangeNumbers:
    """Counts that grow with changes: of a user's rows, of the site's, and of the cluster's use.

    What accounts have used of Slurm's limits is part of the cluster's use.
    """

    person: int
    site: int
    use: int
    silent: int = 0
    """Whether worker and Slurm are silent (core/session/status.py), which differs without a change
    in the database."""
