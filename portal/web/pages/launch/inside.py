"""The contents of an environment's version: a page, also shown in a dialog of the forms."""

from __future__ import annotations

from collections import Counter

from flask import render_template, request
from flask.typing import ResponseReturnValue

from portal.core.images.inside import KINDS, matching, short_version
from portal.core.images.inventory import Inventory
from portal.core.units import file_size
from portal.web.context import person, services
from portal.web.numbers import trim
from portal.web.pages.blueprint import blueprint, by_htmx

MOST_TEXT = 100
"""Characters of a search."""


@blueprint.get("/environments/<environment>/<version>")
def inside(environment: str, version: str) -> ResponseReturnValue:
    """The page, or its main part for the dialog; with a search, only the matching packages."""
    contents = services().image_contents.inside(person(), environment, version)
    text = trim(request.args.get("packages", ""))[:MOST_TEXT]
    inventory = contents.inventory
    listed = matching(inventory.packages, text) if inventory else []
    template = "environment.html"
    if by_htmx():
        template = "_packages.html" if "packages" in request.args else "_environment.html"
    return render_template(
        template,
        person=person(),
        image=contents.image,
        inventory=inventory,
        main=[(package.name, short_version(package)) for package in contents.key],
        takes=file_size(inventory.size) if inventory else "",
        counts=_counts(inventory) if inventory else "",
        listed=listed,
        text=text,
        kinds=KINDS,
    )


def _counts(inventory: Inventory) -> str:
    """The number of packages of each kind: "412 Debian, 38 Python"."""
    counts = Counter(package.kind for package in inventory.packages)
    return ", ".join(f"{count} {KINDS[kind]}" for kind, count in counts.most_common())
