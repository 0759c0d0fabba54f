"""View model of the composer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from portal.core.apps.catalog import Image
from portal.core.auth.person import Person
from portal.core.cluster.choice.offers import JobOffers, Offer
from portal.core.jobs.compose.drafts import JobTemplate, Shared
from portal.core.launch.presets import FIELD
from portal.errors import FieldError, InvalidRequest, PortalError
from portal.web.context import cluster_view, services
from portal.web.pages.jobs.compose import form as fields_of_form
from portal.web.pages.launch.form import FormValues, sort_errors
from portal.web.pages.launch.slurm_fields import NAMED
from portal.web.pages.launch.wizard import LaunchForm, new_form

_CHOSEN_ALONE = {Shared.NOBODY: "Only me", Shared.SITE: "Everybody"}


@dataclass(frozen=True)
class SlurmField:
    """A field for one of Slurm's options, with its proposals."""

    name: str
    label: str
    offers: Sequence[Offer]
    every: Sequence[Offer]
    """The offers of all accounts."""


@dataclass(frozen=True)
class ComposeForm(LaunchForm):
    """The composer: the wizard's images, groups, GPUs and folders, and the fields of a job."""

    templates_to_use: Sequence[JobTemplate] = ()
    """Job templates that the user may use."""
    accounts: Sequence[str] = ()
    """The user's own Slurm accounts."""
    proposed: JobOffers = field(default_factory=JobOffers)
    """The proposals in the fields of Slurm's options."""
    admin: bool = False
    unclear: bool = False
    """Whether the job may have been submitted already."""

    @property
    def image(self) -> Image | None:
        """The chosen image of the site."""
        environment, _, version = self.values.get(fields_of_form.IMAGE, "").partition("/")
        return self.catalog.image(environment, version or None) if environment else None

    @property
    def label_of(self) -> Mapping[str, str]:
        """The label of each field."""
        return fields_of_form.LABELS

    @property
    def slurm_options(self) -> list[SlurmField]:
        """The fields of Slurm's options that have a choice, a value or an error.

        With an account, only its QOS are proposed.
        """
        every = self.proposed.by_option
        offered = self.proposed.for_account(self.values.get("account", "")).by_option
        least = {"account": 2, "qos": 2}
        return [
            SlurmField(name, label, offered.get(name, ()), every.get(name, ()))
            for name, label in NAMED.items()
            if len(every.get(name, ())) >= least.get(name, 1)
            or self.values.get(name)
            or name in self.errors
        ]

    @property
    def own_images(self) -> bool:
        """Whether the site permits users' own images."""
        return services().settings.images.own != "off"

    @property
    def image_choice(self) -> str:
        """The selected choice of the image field: "", "own", or "NAME/VERSION"."""
        chosen = self.values.get(fields_of_form.IMAGE, "")
        image = self.image
        if chosen in ("", fields_of_form.OWN) or image is None:
            return chosen
        return f"{image.environment}/{image.version}"

    @property
    def sharing(self) -> list[tuple[str, str]]:
        """The menu of possible shares of a template: values and texts."""
        choices = [(str(Shared.NOBODY), _CHOSEN_ALONE[Shared.NOBODY])]
        choices += [
            (f"{Shared.ACCOUNT}:{account}", f"Everybody in the account {account}")
            for account in self.accounts
        ]
        return [*choices, (str(Shared.SITE), _CHOSEN_ALONE[Shared.SITE])] if self.admin else choices


def composer_form(
    person: Person, values: FormValues | None = None, folders: bool = False
) -> ComposeForm:
    """The composer for a user, empty or with these values."""
    values = values or fields_of_form.from_body({}, own_image=False)
    form = new_form(person, values, folders, for_job=True)
    return ComposeForm(
        **{item.name: getattr(form, item.name) for item in fields(LaunchForm)},
        templates_to_use=services().job_templates.list(person),
        accounts=services().job_templates.accounts(person),
        proposed=cluster_view().job_offers(person.name, services().clock()),
        admin=person.admin,
    )


def filled(person: Person, body: Mapping[str, Any]) -> ComposeForm:
    """The composer filled with a request, with errors if that is no longer possible."""
    plain = composer_form(person)
    reference = str(body.get("image", ""))
    environment, _, version = reference.partition("/")
    image = plain.catalog.image(environment, version or None)
    is_offered = image is not None and not image.retired
    form = composer_form(person, fields_of_form.from_body(body, bool(reference) and not is_offered))
    try:
        if "script" in body or "path" in body:
            services().composer.parse(person, body)
    except InvalidRequest as error:
        return with_error(form, error)
    return form


def with_error(form: ComposeForm, error: PortalError) -> ComposeForm:
    """The form with the errors beside its fields."""
    errors = error.errors if isinstance(error, InvalidRequest) else ()
    renamed = tuple(FieldError(_beside(e.field), e.message) for e in errors)
    beside, problem = sort_errors(error, renamed, fields_of_form.FIELDS)
    return replace(form, errors=beside, problem=problem)


def _beside(field: str) -> str:
    """The field of the form for a field of the request."""
    if field in (FIELD, "shared"):
        return "template"
    if field == "resources.gpu_kind":
        return "resources.fgpu"
    top = field.partition(".")[0]
    lists = (fields_of_form.OPTIONS, fields_of_form.ARGUMENTS, "mounts")
    return top if top in lists else field
