"""Visibility of images: the stored rule and the administrators' request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator

from portal.core.apps.catalog import Catalog, Image
from portal.core.cluster.limits import Limits
from portal.core.launch.site_files import RefusedFile
from portal.core.validation import (
    _CHECKED,
    STRICT,
    Matching,
    at_most,
    names_of,
)
from portal.errors import FieldError, InvalidRequest

MAX_PRINCIPALS = 200


Principal = Annotated[
    str,
    Matching(
        "[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}",
        "use up to 64 letters, digits, dots, dashes and underscores, "
        "and begin with a letter, a digit or an underscore",
    ),
]
"""Name of a user or of a Slurm account."""


Principals = Annotated[
    tuple[Principal, ...], Field(strict=False, max_length=MAX_PRINCIPALS), at_most(MAX_PRINCIPALS)
]


SeenBy = Literal["everybody", "except", "some", "nobody"]
"""With "except" the named accounts and users are those who do not see an image."""
NAMING = ("some", "except")


class ImageRequest(BaseModel):
    """Who sees an image, as administrators set it."""

    model_config = STRICT

    seen_by: SeenBy
    accounts: Principals = ()
    users: Principals = ()

    @field_validator("accounts", "users")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(names))


class ImageRule(BaseModel):
    """Who may see and launch one image; without a rule everybody may."""

    model_config = _CHECKED

    environment: str
    version: str
    seen_by: SeenBy = "everybody"
    accounts: tuple[str, ...] = ()
    """Slurm accounts that may see it, or with "except" may not; including those below them."""
    users: tuple[str, ...] = ()

    def permits(self, user: str, accounts: Iterable[str]) -> bool:
        """Whether a user with these accounts may see the image."""
        if self.seen_by not in NAMING:
            return self.seen_by == "everybody"
        named = user in self.users or not set(self.accounts).isdisjoint(accounts)
        return named is (self.seen_by == "some")


def image_rule(image: Image, rules: Iterable[ImageRule]) -> ImageRule:
    """The rule of one image."""
    key = (image.environment, image.version)
    found = next((r for r in rules if (r.environment, r.version) == key), None)
    return found or ImageRule(environment=image.environment, version=image.version)


def accounts_of(user: str, limits: Limits | None) -> frozenset[str]:
    """A user's Slurm accounts and those above them; none before Slurm was first read."""
    if limits is None:
        return frozenset()
    above = {a.account: a.parent for a in limits.associations if not a.user}
    found: set[str] = set()
    for association in limits.associations:
        account = association.account if association.user == user else ""
        while account and account not in found:
            found.add(account)
            account = above.get(account, "")
    return frozenset(found)


def visible_catalog(
    user: str, catalog: Catalog, rules: Iterable[ImageRule], limits: Limits | None
) -> Catalog:
    """The catalog reduced to the images that this user may see."""
    known = list(rules)
    accounts = accounts_of(user, limits)

    def seen(images: Iterable[Image]) -> tuple[Image, ...]:
        return tuple(i for i in images if image_rule(i, known).permits(user, accounts))

    # Not a copy, which would keep what was computed from all images.
    return Catalog(
        apps=catalog.apps,
        images=seen(catalog.images),
        retired=seen(catalog.retired),
        left_out=seen(catalog.left_out),
        found=catalog.found,
        problems=catalog.problems,
    )


NOT_OFFERED = "it is not offered to you"


def refused_files(catalog: Catalog, visible: Catalog) -> tuple[RefusedFile, ...]:
    """The files that a person who sees `visible` of the catalog may not start as own images.

    What an image that this person may start contains as well is not refused.
    """
    seen = (*visible.images, *visible.retired, *visible.left_out)
    shown = {(image.environment, image.version) for image in seen}
    permitted = {file.id for image in seen if not image.retired for file in image.files}

    def files() -> Iterator[RefusedFile]:
        for image in (*catalog.images, *catalog.retired, *catalog.left_out):
            if (image.environment, image.version) not in shown:
                reason, applies = NOT_OFFERED, False
            elif image.retired:
                name = f"{image.environment} {image.version}"
                reason, applies = f"{name} was retired by an administrator", True
            else:
                continue
            for path, id in image.files:
                if not id or id not in permitted:
                    yield RefusedFile(path, id, reason, applies)

    return tuple(files())


def check_principals(asked: ImageRequest, limits: Limits | None) -> None:
    """Refuse a rule without any name, or with names unknown to Slurm; raises InvalidRequest."""
    problems = []
    if asked.seen_by in NAMING and not (asked.accounts or asked.users):
        problems.append(FieldError("accounts", "name at least one account or user"))
    if limits is not None and limits.requires_association:
        accounts = {a.account for a in limits.associations}
        users = {a.user for a in limits.associations}
        problems += _unknown("accounts", "account", asked.accounts, accounts)
        problems += _unknown("users", "user", asked.users, users)
    if problems:
        raise InvalidRequest(problems)


def _unknown(field: str, word: str, names: Iterable[str], known: set[str]) -> list[FieldError]:
    strange = [name for name in names if name not in known]
    if not strange:
        return []
    return [FieldError(field, f"Slurm has no {word} named {names_of(strange)}")]
