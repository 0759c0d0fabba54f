"""What administrators decide beyond Slurm's limits, and the journal of what everybody did."""

from __future__ import annotations

from portal.core.access import Person
from portal.core.administration import SiteRules, Template
from portal.core.app import Catalog
from portal.core.ports import Clock, RulesStore, StatusStore


class Administration:
    """Templates, image visibility, caps and the journal."""

    def __init__(self, store: RulesStore, status: StatusStore, clock: Clock) -> None:
        self._store = store
        self._status = status
        self._clock = clock

    def templates(self) -> list[Template]:
        """The resource templates in their order; anybody may read them."""
        return []

    def rules(self) -> SiteRules:
        """The caps."""
        return SiteRules()

    def seen_by(self, person: Person, catalog: Catalog) -> Catalog:
        """The catalog with only those images that this person may see and launch."""
        return catalog

    def note(self, who: str, action: str, target: str = "", detail: str = "") -> None:
        """Write a line into the journal; never secrets."""
