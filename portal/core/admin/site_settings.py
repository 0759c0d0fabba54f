"""The administrators' settings for deciding about requests, read in one query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from portal.core.admin.images import ImageRule, visible_catalog
from portal.core.apps.catalog import Catalog
from portal.core.auth.person import Person
from portal.core.cluster.limits import Limits
from portal.core.launch.templates import Template
from portal.core.site_rules import SiteRules


class SiteSettings(NamedTuple):
    """A consistent snapshot of site rules, image rules and resource templates."""

    rules: SiteRules
    image_rules: Sequence[ImageRule]
    templates: Sequence[Template]

    def visible_catalog(self, person: Person, catalog: Catalog, limits: Limits | None) -> Catalog:
        """The catalog reduced to the images that this user may see and launch."""
        if person.admin:
            return catalog
        return visible_catalog(person.name, catalog, self.image_rules, limits)
