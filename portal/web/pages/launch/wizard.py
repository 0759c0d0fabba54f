"""View model of the launch wizard."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from portal.core.apps.catalog import Catalog, Image
from portal.core.auth.person import Person
from portal.core.cluster.choice.offers import LaunchOptions
from portal.core.cluster.effective_limits import UserPartition
from portal.core.cluster.gpu_offers import GpuOffer
from portal.core.cluster.meters import PartitionUsage
from portal.core.launch.mounts import Folder, path_in_own_home, path_of_shared, storage_of
from portal.core.launch.own_image import OWN
from portal.core.launch.request import MAX_COUNT
from portal.core.launch.templates import Template
from portal.core.policy import group_for
from portal.core.site_rules import SiteRules
from portal.core.units import fgpu_number, short_minutes
from portal.errors import HomeUnusable, InvalidRequest, PortalError, Unavailable
from portal.node.common.folder_name import HOME
from portal.web.api.models.templates import OfferedTemplateOut
from portal.web.context import cluster_view, services, site_rules
from portal.web.context import person as me
from portal.web.pages.launch.environments import EnvironmentCard, environment_cards
from portal.web.pages.launch.form import (
    FGPU,
    GPU_KIND,
    LABELS,
    STEP_OF,
    STEPS,
    TEMPLATE,
    FormValues,
    first_values,
    sort_errors,
    variable_lines,
    variables,
)
from portal.web.pages.launch.gpu_menu import Menu, menu
from portal.web.pages.launch.recent import last_mounts, last_options, recently_used
from portal.web.pages.launch.slurm_fields import SlurmFields, chosen_options, slurm_fields
from portal.web.pages.launch.slurm_offers import offers_to, only_choice, uses_of


@dataclass(frozen=True)
class Choice:
    """A folder that can be mounted."""

    folder: Folder
    picked: bool
    read_only: bool
    exists: bool = True

    @property
    def path(self) -> str:
        """Its path in the session."""
        return path_of(self.folder.name)


@dataclass(frozen=True)
class FolderList:
    """The folders of the second step."""

    choices: Sequence[Choice]
    loaded: bool
    problem: str = ""
    proposed: bool = False
    """Whether they are selected because the last session had them."""

    @property
    def own_home(self) -> bool:
        """Whether the home directory is mounted anyway."""
        return runs_in_own_home()


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
    entered: FormValues
    folders: FolderList
    used_images: Sequence[str] = ()
    """The user's own images that they launched lately, newest first."""
    used: Sequence[tuple[str, str]] = ()
    """The environments and versions that the user launched lately, newest first."""
    offered: LaunchOptions = field(default_factory=LaunchOptions)
    """The Slurm options that may be chosen."""
    errors: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    notice: str = ""
    taken: str = ""
    """Why a preset was not saved, if replacing another one would help."""
    step: str = "environment"
    """The current step."""
    max_count: int = MAX_COUNT
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Idempotency key, so that a double click launches once."""

    @property
    def values(self) -> Mapping[str, str]:
        """The values of the fields."""
        return self.entered.values

    @cached_property
    def environments(self) -> list[EnvironmentCard]:
        """One card for each environment: last used first, then the default, then by title."""
        return environment_cards(self.catalog, self.used, self.image)

    @property
    def image(self) -> Image | None:
        """The chosen image."""
        version = self.values.get("version") or None
        return self.catalog.image(self.values.get("environment", ""), version)

    @property
    def own_images(self) -> bool:
        """Whether the site permits users' own images."""
        return services().settings.images.own != "off"

    @property
    def own_registries(self) -> bool:
        """Whether these may come from registries."""
        return bool(services().registry_logins.registries)

    @property
    def image_choice(self) -> str | None:
        """The selected choice of the image field beside the site's images: "own", or None."""
        return OWN if self.values.get("environment") == OWN else None

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

    @property
    def time_proposed(self) -> str:
        """The default time limit; "" without one."""
        chosen = self.values.get("template")
        template = next((t for t in self.templates if t.name == chosen), None)
        minutes = template.time_limit if template else None
        minutes = minutes or (self.group.default_minutes if self.group else None)
        return short_minutes(minutes) if minutes else ""

    @property
    def times_differ(self) -> bool:
        """Whether the resource groups differ in their time limits."""
        return len({(g.max_minutes, g.default_minutes) for g in self.groups}) > 1

    @property
    def slurm(self) -> SlurmFields:
        """The fields for Slurm's options."""
        return slurm_fields(self.offered, self.values, self.errors, self.templates)

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
        """The largest share of a GPU for a session in a group, and the free amount."""
        amounts = [part.fgpu for offer in self.gpus.get(group.name, ()) for part in offer.amounts]
        if not amounts:
            return ""
        use = self.uses.get(group.name)
        free = use.fgpu.available if use and use.fgpu else None
        left = "" if free is None else f" · {fgpu_number(free)} free for you now"
        return f"up to {fgpu_number(max(amounts))} GPU shares (fGPU){left}"

    def gpu_why(self, group: UserPartition) -> str:
        """The limits of the share of a GPU in a group."""
        return "; ".join(dict.fromkeys(offer.why for offer in self.gpus.get(group.name, ())))

    @cached_property
    def cards(self) -> list[OfferedTemplateOut]:
        """The templates, with the reasons why some cannot be chosen."""
        group = self.values.get("resource_group") or None
        gpus, now, chosen = services().gpus, services().clock(), chosen_options(self.values)
        whys = cluster_view().template_misfits(
            me().name, self.templates, self.rules, gpus, now, group, chosen
        )
        pairs = zip(self.templates, whys, strict=True)
        return [OfferedTemplateOut.offer(template, why) for template, why in pairs]

    @property
    def variables(self) -> list[str]:
        """Names of the environment variables that were entered."""
        return variables(self.values)

    @property
    def variable_lines(self) -> str | None:
        """The environment variables as lines, for browsers without JavaScript."""
        return variable_lines(self.values)

    @property
    def label_of(self) -> Mapping[str, str]:
        """The label of each field."""
        return LABELS

    @property
    def fields_of(self) -> Mapping[str, Sequence[str]]:
        """The fields of each step."""
        return STEPS

    @property
    def step_of(self) -> Mapping[str, str]:
        """The step of each field."""
        return STEP_OF

    @property
    def own_home(self) -> bool:
        """Whether sessions run in the user's home directory."""
        return runs_in_own_home()

    def path_of(self, folder: str) -> str:
        """A folder's path in the session."""
        return path_of(folder)

    @property
    def steps_with_errors(self) -> frozenset[str]:
        """The steps with errors."""
        return frozenset(STEP_OF[name] for name in self.errors if name in STEP_OF)


def new_form(
    person: Person, values: FormValues | None = None, folders: bool = False, for_job: bool = False
) -> LaunchForm:
    """The wizard for a user; `folders` lists their folders, which is slow.

    `for_job`: empty fields mean the options of the job's script, so no defaults are chosen.
    """
    catalog = services().administration.visible_catalog(person, services().catalog())
    cluster, kinds = cluster_view(), services().gpus
    used, used_images = recently_used(person)
    first = {**first_values(catalog, used), **last_options(person)} if values is None else {}
    entered = values or FormValues(first, last_mounts(person))
    offered, options = offers_to(person, entered.values)
    if not for_job:
        entered = replace(entered, values={**entered.values, **only_choice(offered, options)})
    partitions = cluster.partitions_for(person.name)
    groups = partitions if partitions is None else offered.groups
    if runs_in_own_home():
        entered.mounts.pop(HOME, None)  # it is mounted anyway
    listed = folder_list(person, entered.mounts) if folders else known_folders(entered.mounts)
    form = LaunchForm(
        catalog=catalog,
        open_to_me=groups,
        uses=uses_of(person, groups or [], options),
        gpus={group.name: offers for group in groups or [] if (offers := kinds.offers(group))},
        templates=services().administration.templates(),
        rules=site_rules(),
        entered=entered,
        offered=offered,
        used=used,
        used_images=used_images,
        folders=replace(listed, proposed=values is None and bool(entered.mounts)),
    )
    return form if values else _with_template(form)


def _with_template(form: LaunchForm) -> LaunchForm:
    """Propose the first template that fits, if the site has any."""
    first = next((card.name for card in form.cards if card.fits), "")
    values = {**form.entered.values, TEMPLATE: first}
    return replace(form, entered=replace(form.entered, values=values))


def with_error(form: LaunchForm, error: PortalError) -> LaunchForm:
    """The form with the errors beside its fields, at the first step with an error."""
    errors = error.errors if isinstance(error, InvalidRequest) else ()
    beside, problem = sort_errors(error, errors)
    rejected = replace(form, errors=beside, problem=problem)
    first = next((step for step in STEPS if step in rejected.steps_with_errors), form.step)
    return replace(rejected, step=first)


def runs_in_own_home() -> bool:
    """Whether new sessions run in their owner's home directory."""
    return services().settings.sessions.home == "persistent"


def path_of(folder: str) -> str:
    """A folder's path in a new session of the current user."""
    owner, _, name = folder.rpartition("/")
    if not runs_in_own_home():
        return f"~/{name}"
    storage = services().settings.sessions.storage
    if owner:
        return path_of_shared(owner, name, storage)
    return path_in_own_home(folder, storage_of(me().name, storage))


def known_folders(mounts: Mapping[str, bool]) -> FolderList:
    """The folders known without a request to the login node: home and the selected ones."""
    names = dict.fromkeys([*mounts] if runs_in_own_home() else [HOME, *mounts])
    return FolderList([_choice(Folder(name, ""), mounts) for name in names], loaded=False)


def folder_list(person: Person, mounts: Mapping[str, bool]) -> FolderList:
    """All folders of a user; if they cannot be listed, the known ones."""
    try:
        listed = services().storage.list(person)
    except (HomeUnusable, Unavailable) as error:
        text = "Your storage folders cannot be listed right now."
        text = error.text if isinstance(error, HomeUnusable) else text
        return replace(known_folders(mounts), problem=text)
    mountable = [folder for folder in listed if folder.name != HOME or not runs_in_own_home()]
    names = {folder.name for folder in mountable}
    missing = [
        Choice(Folder(name, "", "no longer exists"), False, mounts[name], exists=False)
        for name in mounts
        if name not in names
    ]
    return FolderList([*(_choice(folder, mounts) for folder in mountable), *missing], loaded=True)


def _choice(folder: Folder, mounts: Mapping[str, bool]) -> Choice:
    picked = folder.name in mounts and folder.mountable
    return Choice(folder, picked, folder.read_only or mounts.get(folder.name, False))
