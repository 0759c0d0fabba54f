"""What administrators decide beyond Slurm's limits: templates, who sees which image, caps."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from portal.core.apps.catalog import Catalog, Image
from portal.core.cluster.limits import Limits
from portal.core.launch.request import Resources
from portal.core.launch.templates import Description, Place, Template, Title
from portal.core.site_rules import IDLE_CPU_PERCENT, SiteRules
from portal.core.units import Minutes, Percent, SharedMemory
from portal.core.validation import (
    _CHECKED,
    STRICT,
    WORD,
    WORD_RULE,
    Matching,
    Word,
    at_most,
    check,
    names_of,
    wrong,
)
from portal.errors import FieldError, InvalidRequest

MAX_PRINCIPALS = 200


Principal = Annotated[
    str,
    Matching(
        "[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}",
        "a name is of up to 64 letters, digits, dots, dashes and underscores, "
        "and begins with a letter, a digit or an underscore",
    ),
]
"""Name of a user or of a Slurm account."""
Principals = Annotated[
    tuple[Principal, ...], Field(strict=False, max_length=MAX_PRINCIPALS), at_most(MAX_PRINCIPALS)
]
SeenBy = Literal["everybody", "some", "nobody"]


class TemplateRequest(BaseModel):
    """A template as administrators write it: its resources as in a launch."""

    model_config = STRICT

    title: Title
    description: Description = ""
    resources: Resources
    time_limit: Minutes | None = None
    resource_group: Word | None = None
    place: Place | None = None
    """Without one it keeps its place; a new one comes last."""

    def named(self, name: str, place: int) -> Template:
        """The template that is stored."""
        return Template(
            name=name,
            cpus=self.resources.cpus,
            memory_mb=self.resources.memory,
            shared_memory_mb=self.resources.shared_memory,
            fgpu=self.resources.fgpu,
            gpu_kind=self.resources.gpu_kind,
            **self.model_dump(exclude={"resources", "place"}),
            place=place,
        )


class ImageRequest(BaseModel):
    """Who sees an image, as administrators write it."""

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
    """Slurm accounts, where only some may see it; accounts below them count as well."""
    users: tuple[str, ...] = ()

    def permits(self, user: str, accounts: Iterable[str]) -> bool:
        """Whether somebody of these accounts may see the image."""
        if self.seen_by != "some":
            return self.seen_by == "everybody"
        return user in self.users or not set(self.accounts).isdisjoint(accounts)


class CapsRequest(BaseModel):
    """The caps as administrators write them; null takes one away."""

    model_config = STRICT

    max_shared_memory: SharedMemory | None = None
    idle_minutes: Minutes | None = None
    idle_warning: Minutes | None = None
    idle_cpu_percent: Percent = IDLE_CPU_PERCENT
    public_apps: bool = True
    preferred_ports: bool = True

    @field_validator("idle_warning")
    @classmethod
    def _warns_in_time(cls, warning: int | None, info: ValidationInfo) -> int | None:
        if warning is None or "idle_minutes" not in info.data:
            return warning
        minutes = info.data["idle_minutes"]
        if minutes is None:
            raise wrong("leave it out where no session is ended")
        if warning >= minutes:
            raise wrong(f"use less than the {minutes} minutes themselves")
        return warning

    def rules(self, before: SiteRules, now: datetime) -> SiteRules:
        """The caps that are kept, in place of those before."""
        plain = self.model_dump(exclude={"max_shared_memory"})
        old = (before.idle_minutes, before.idle_warning)
        same = (self.idle_minutes, self.idle_warning) == old
        since = before.idle_set if same else now
        return SiteRules(**plain, max_shared_memory_mb=self.max_shared_memory, idle_set=since)


Asked = TypeVar("Asked", bound=BaseModel)


def parse(model: type[Asked], data: Mapping[str, Any]) -> Asked:
    """Check what somebody entered; raises InvalidRequest that names the wrong fields."""
    return check(model, data)


def name_problems(name: str) -> list[FieldError]:
    """What is wrong with a template's name, which is a part of its address."""
    return [] if re.fullmatch(WORD, name, re.ASCII) else [FieldError("name", WORD_RULE)]


def parse_template(name: str, data: Mapping[str, Any]) -> TemplateRequest:
    """Check a template with its name; raises InvalidRequest that names the wrong fields."""
    problems = name_problems(name)
    try:
        asked = parse(TemplateRequest, data)
    except InvalidRequest as error:
        raise error.also(problems) from None
    if problems:
        raise InvalidRequest(problems)
    return asked


def etag(value: BaseModel | None) -> str:
    """What tells two states of a thing apart; "" for one that is not there.

    Moving one template changes the places of others, which nobody edited.
    """
    if value is None:
        return ""
    return hashlib.sha256(value.model_dump_json(exclude={"place"}).encode()).hexdigest()[:16]


def image_rule(image: Image, rules: Iterable[ImageRule]) -> ImageRule:
    """The rule of one image."""
    key = (image.environment, image.version)
    found = next((r for r in rules if (r.environment, r.version) == key), None)
    return found or ImageRule(environment=image.environment, version=image.version)


def accounts_of(user: str, limits: Limits | None) -> frozenset[str]:
    """A person's Slurm accounts and those above them; none while Slurm was not read."""
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
    """The catalog with only those images that this person may see."""
    known = list(rules)
    accounts = accounts_of(user, limits)
    images = (i for i in catalog.images if image_rule(i, known).permits(user, accounts))
    return catalog.model_copy(update={"images": tuple(images)})


def check_principals(asked: ImageRequest, limits: Limits | None) -> None:
    """Refuse a rule that lets in nobody by mistake: no name, or one that Slurm does not know."""
    problems = []
    if asked.seen_by == "some" and not (asked.accounts or asked.users):
        problems.append(FieldError("accounts", "name at least one account or user"))
    if limits is not None and limits.shuts_out_strangers:
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
