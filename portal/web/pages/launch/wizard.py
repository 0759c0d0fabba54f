"""View model of the launch wizard."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from portal.core.apps.catalog import Catalog, Image
from portal.core.auth.person import Person
from portal.core.cluster.effective_limits import UserPartition
from portal.core.cluster.gpu_offers import GpuOffer
from portal.core.cluster.usage import PartitionUsage
from portal.core.launch.mounts import HOME, Folder
from portal.core.launch.request import MAX_COUNT
from portal.core.launch.templates import Template
from portal.core.policy import group_for, misfit
from portal.core.site_rules import SiteRules
from portal.core.units import fgpu_number
from portal.errors import InvalidRequest, PortalError, Unavailable
from portal.web.api.models.templates import OfferedTemplateOut
from portal.web.context import services
from portal.web.pages.launch.form import (
    FGPU,
    GPU_KIND,
    STEP_OF,
    STEPS,
    Entered,
    first_values,
    sort_errors,
    variables,
)
from portal.web.pages.launch.gpu_menu import Menu, menu


@dataclass(frozen=True)
class Choice:
    """A folder that can be mounted."""

    folder: Folder
    picked: bool
    read_only: bool
    there: bool = True


@dataclass(frozen=True)
class FolderList:
    """The folders of the second step."""

    choices: Sequence[Choice]
    loaded: bool
    problem: str = ""


@dataclass(frozen=True)
class LaunchForm:
    """The wizard: the choices, the entered values and their errors."""

    catalog: Catalog
    open_to_me: Sequence[UserPartition] | None
    """The resource groups that the user may use; None while unknown."""
    uses: Mapping[str, PartitionUsage]
    """The user's usage of each group."""
    gpus: Mapping[str, Sequence[GpuOffer]]
    """The GPUs on offer, by resource group."""
    templates: Sequence[Template]
    rules: SiteRules
    given: Entered
    folders: FolderList
    errors: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    notice: str = ""
    taken: str = ""
    """Why a preset was not saved, if replacing another one would help."""
    step: str = "environment"
    """The current step."""
    max_count: int = MAX_COUNT
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Idempotency key: a double click sends it twice but launches once."""

    @property
    def values(self) -> Mapping[str, str]:
        """The values of the fields."""
        return self.given.values

    @property
    def environments(self) -> dict[str, list[Image]]:
        """The images by environment, in the order of the catalog."""
        found: dict[str, list[Image]] = {}
        for image in self.catalog.images:
            found.setdefault(image.environment, []).append(image)
        return found

    @property
    def image(self) -> Image | None:
        """The chosen image."""
        version = self.values.get("version") or None
        return self.catalog.image(self.values.get("environment", ""), version)

    @property
    def groups(self) -> Sequence[UserPartition]:
        """The resource groups to choose from."""
        return self.open_to_me or []

    @property
    def group(self) -> UserPartition | None:
        """The group whose bounds are shown: the chosen one if it is open, else the default."""
        default = group_for(None, self.groups)
        names = [self.values.get("resource_group"), default and default.name]
        return next((g for name in names for g in self.groups if g.name == name), None)

    @cached_property
    def gpu_menu(self) -> Menu | None:
        """The GPUs to choose from; None if there are none."""
        group = self.group.name if self.group else ""
        return menu(self.gpus, group, self.values.get(FGPU, ""), self.values.get(GPU_KIND, ""))

    @property
    def several_kinds(self) -> bool:
        """Whether there are several types of GPU."""
        return len({offer.kind.name for offers in self.gpus.values() for offer in offers}) > 1

    def gpu_bound(self, group: UserPartition) -> str:
        """The largest share of a GPU that a session may have in a group, and how much is free."""
        amounts = [part.fgpu for offer in self.gpus.get(group.name, ()) for part in offer.amounts]
        if not amounts:
            return ""
        use = self.uses.get(group.name)
        free = use.fgpu.available if use and use.fgpu else None
        left = "" if free is None else f" · {fgpu_number(free)} free for you now"
        return f"up to {fgpu_number(max(amounts))} fGPU{left}"

    def gpu_why(self, group: UserPartition) -> str:
        """What bounds the share of a GPU in a group."""
        return "; ".join(dict.fromkeys(offer.why for offer in self.gpus.get(group.name, ())))

    @property
    def cards(self) -> list[OfferedTemplateOut]:
        """The templates, with the reasons why some cannot be chosen."""
        wanted = self.values.get("resource_group") or None
        rules, gpus = self.rules, services().gpus
        whys = (misfit(t, self.open_to_me, rules, gpus, wanted) for t in self.templates)
        pairs = zip(self.templates, whys, strict=True)
        return [OfferedTemplateOut.offer(template, why) for template, why in pairs]

    @property
    def variables(self) -> list[str]:
        """Names of the environment variables that were entered."""
        return variables(self.values)

    @property
    def step_of(self) -> Mapping[str, str]:
        """The step of each field."""
        return STEP_OF

    @property
    def wrong_steps(self) -> frozenset[str]:
        """The steps with errors."""
        return frozenset(STEP_OF[name] for name in self.errors if name in STEP_OF)


def new_form(person: Person, given: Entered | None = None, folders: bool = False) -> LaunchForm:
    """The wizard for a user; their folders are listed only on demand, since that is slow."""
    catalog = services().administration.visible_catalog(person, services().catalog())
    cluster, kinds = services().cluster, services().gpus
    groups = cluster.partitions_for(person.name)
    found = {group.name: cluster.usage_for(person.name, group.name) for group in groups or []}
    given = given or Entered(first_values(catalog))
    return LaunchForm(
        catalog=catalog,
        open_to_me=groups,
        uses={name: use for name, use in found.items() if use},
        gpus={group.name: offers for group in groups or [] if (offers := kinds.offers(group))},
        templates=services().administration.templates(),
        rules=services().administration.site_rules(),
        given=given,
        folders=folder_list(person, given.mounts) if folders else known_folders(given.mounts),
    )


def with_error(form: LaunchForm, error: PortalError) -> LaunchForm:
    """The form with the errors beside its fields, at the first step with an error."""
    found = error.errors if isinstance(error, InvalidRequest) else ()
    beside, problem = sort_errors(error, found)
    wrong = replace(form, errors=beside, problem=problem)
    first = next((step for step in STEPS if step in wrong.wrong_steps), form.step)
    return replace(wrong, step=first)


def known_folders(mounts: Mapping[str, bool]) -> FolderList:
    """The folders known without a request to the login node: home and the selected ones."""
    names = dict.fromkeys([HOME, *mounts])
    return FolderList([_choice(Folder(name, ""), mounts) for name in names], loaded=False)


def folder_list(person: Person, mounts: Mapping[str, bool]) -> FolderList:
    """All folders of a user; if they cannot be listed, the known ones."""
    try:
        found = services().storage.list(person)
    except Unavailable:
        text = "Your storage folders cannot be listed right now."
        return replace(known_folders(mounts), problem=text)
    names = {folder.name for folder in found}
    gone = [
        Choice(Folder(name, "", mountable=False), False, mounts[name], there=False)
        for name in mounts
        if name not in names
    ]
    return FolderList([*(_choice(folder, mounts) for folder in found), *gone], loaded=True)


def _choice(folder: Folder, mounts: Mapping[str, bool]) -> Choice:
    picked = folder.name in mounts and folder.mountable
    return Choice(folder, picked, mounts.get(folder.name, False))
