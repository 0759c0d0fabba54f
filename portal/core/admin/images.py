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
"""With "except", the named accounts and users do not see the image."""
NAMING = ("some", "except")


class ImageRequest(BaseModel):
    """The visibility of an image, as administrators set it."""

    model_config = STRICT

    seen_by: SeenBy
    accounts: Principals = ()
    users: Principals = ()

    @field_validator("accounts", "users")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(names))


class ImageRule(BaseModel):
    """The users who may see and launch one image; without a rule all users may."""

    model_config = _CHECKED

    environment: str
    version: str
    seen_by: SeenBy = "everybody"
    accounts: tuple[str, ...] = ()
    """Slurm accounts, with their child accounts, that may see it, or with "except" may not."""
    users: tuple[str, ...] = ()

    def permits(self, user: str, accounts: Iterable[str]) -> bool:
        """Whether a user with these accounts may see the image."""
        if self.seen_by not in NAMING:
            return self.seen_by == "everybody"
        is_named = user in self.users or not set(self.accounts).isdisjoint(accounts)
        return is_named is (self.seen_by == "some")


def image_rule(image: Image, rules: Iterable[ImageRule]) -> ImageRule:
    """The rule of one image; without a stored one, the default rule."""
    key = (image.environment, image.version)
    rule = next((r for r in rules if (r.environment, r.version) == key), None)
    return rule or ImageRule(environment=image.environment, version=image.version)


def accounts_of(user: str, limits: Limits | None) -> frozenset[str]:
    """A user's Slurm accounts and their parents; none before Slurm was first read."""
    if limits is None:
        return frozenset()
    parents = {a.account: a.parent for a in limits.associations if not a.user}
    accounts: set[str] = set()
    for association in limits.associations:
        account = association.account if association.user == user else ""
        while account and account not in accounts:
            accounts.add(account)
            account = parents.get(account, "")
    return frozenset(accounts)


def visible_catalog(
    user: str, catalog: Catalog, rules: Iterable[ImageRule], limits: Limits | None
) -> Catalog:
    """The catalog reduced to the images that this user may see."""
    all_rules = list(rules)
    accounts = accounts_of(user, limits)

    def seen(images: Iterable[Image]) -> tuple[Image, ...]:
        return tuple(i for i in images if image_rule(i, all_rules).permits(user, accounts))

    # Not model_copy(), which would keep properties cached for all images.
    return Catalog(
        apps=catalog.apps,
        images=seen(catalog.images),
        retired=seen(catalog.retired),
        left_out=seen(catalog.left_out),
        detected=catalog.detected,
        problems=catalog.problems,
    )


NOT_OFFERED = "it is not offered to you"


def refused_files(catalog: Catalog, visible: Catalog) -> tuple[RefusedFile, ...]:
    """The files that a user who sees the catalog `visible` may not start as own images.

    Files that also belong to an image that this user may start are not refused.
    """
    visible_images = (*visible.images, *visible.retired, *visible.left_out)
    shown = {(image.environment, image.version) for image in visible_images}
    permitted = {file.id for image in visible_images if not image.retired for file in image.files}

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


def check_principals(request: ImageRequest, limits: Limits | None) -> None:
    """Refuse a rule without any name, or with names unknown to Slurm; raises InvalidRequest."""
    problems = []
    if request.seen_by in NAMING and not (request.accounts or request.users):
        problems.append(FieldError("accounts", "name at least one account or user"))
    if limits is not None and limits.requires_association:
        accounts = {a.account for a in limits.associations}
        users = {a.user for a in limits.associations}
        problems += _unknown("accounts", "account", request.accounts, accounts)
        problems += _unknown("users", "user", request.users, users)
    if problems:
        raise InvalidRequest(problems)


def _unknown(field: str, word: str, names: Iterable[str], existing: set[str]) -> list[FieldError]:
    unknown = [name for name in names if name not in existing]
    if not unknown:
        return []
    return [FieldError(field, f"Slurm has no {word} named {names_of(unknown)}")]
