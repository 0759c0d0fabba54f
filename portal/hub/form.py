"""The spawn form: the portal's offers, with the field names of its launch request.

The form decides nothing: the portal validates the input of the form and of JupyterHub's REST API.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from portal.client_offers import (
    Choice,
    Environment,
    Folder,
    Offers,
    Option,
    ResourceGroup,
    Template,
)
from portal.core.launch.environment import parse_lines
from portal.core.units import exact_size, format_cores, parse_size, short_minutes
from portal.errors import InvalidRequest

APP = "jupyterhub"
OWN = ""
"""The value of `template` for individual resources."""
NAMED = ("account", "qos", "reservation")
"""The fields for Slurm's own options."""


@dataclass(frozen=True)
class _Initial:
    """Initial values of the form's fields."""

    image: str
    template: str
    cpus: str
    memory: str
    gpu: str
    group: str
    time_limit: str
    mounts: frozenset[str]
    slurm: Mapping[str, str]
    """Slurm's own options by their fields."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> _Initial:
        """Initial values from the options of an earlier start, which are not validated."""
        requested, mounts = options.get("resources"), options.get("mounts")
        resources = requested if isinstance(requested, dict) else {}
        listed = mounts if isinstance(mounts, list) else []
        folders = [mount.get("folder") for mount in listed if isinstance(mount, dict)]
        image = f"{options.get('environment', '')}/{options.get('version', '')}"
        gpu = f"{resources.get('gpu_kind', '')}/{resources['fgpu']}" if "fgpu" in resources else ""
        return cls(
            image=image,
            template=str(options.get("template", OWN)),
            cpus=str(resources.get("cpus", 1)),
            memory=str(resources.get("memory", "2 GB")),
            gpu=gpu,
            group=str(options.get("resource_group", "")),
            time_limit=str(options.get("time_limit", "")),
            mounts=frozenset(map(str, folders)),
            slurm=chosen_before(options),
        )


def chosen_before(options: object) -> dict[str, str]:
    """Slurm's options in an earlier start, which are not validated."""
    if not isinstance(options, dict):
        return {}
    values = {name: options.get(name) for name in NAMED}
    return {name: value for name, value in values.items() if isinstance(value, str) and value}


def page(offers: Offers, ended: str = "", last: Mapping[str, Any] | None = None) -> str:
    """The form's fields as HTML, for JupyterHub's page.

    `ended`: how the last session ended; `last`: its options, the initial values of the form.
    """
    chosen = _Initial.of(last if isinstance(last, dict) else {})
    parts = [
        f'<p class="alert alert-warning">{escape(ended)}</p>' if ended else "",
        _select("image", "Environment", _images(offers.environments), chosen.image),
        _templates(offers.templates, chosen.template),
        _field("cpus", "CPU cores", "number", chosen.cpus, 'min="1" step="1"'),
        _field("memory", "Memory", "text", chosen.memory),
        _gpus(offers.resource_groups, chosen.gpu),
        _groups(offers.resource_groups, chosen.group),
        *_slurm(offers.choice, chosen.slurm),
        _time_limit(offers.resource_groups, chosen.time_limit),
        _folders(offers, chosen.mounts),
        _textarea("env", "Environment variables", "NAME=value, one on each line"),
    ]
    return "\n".join(part for part in parts if part)


def _images(environments: Iterable[Environment]) -> list[tuple[str, str]]:
    """Choices of images: those with JupyterHub's server first, the others with a note."""
    choices = []
    for environment in environments:
        for version in environment.versions:
            has = any(app.name == APP for app in version.apps)
            note = "" if has else " (not known to have JupyterHub's server)"
            value = f"{environment.name}/{version.version}"
            choices.append((not has, value, version.title + note))
    return [(value, text) for _, value, text in sorted(choices, key=lambda choice: choice[0])]


def _templates(templates: Iterable[Template], chosen: str) -> str:
    fitting = [(t.name, f"{t.title} {t.description}".strip()) for t in templates if t.fits]
    if not fitting:
        return ""
    return _select("template", "Resources", [(OWN, "As entered below"), *fitting], chosen)


def _groups(groups: tuple[ResourceGroup, ...], chosen: str) -> str:
    if len(groups) < 2:
        return ""
    choices = [(group.name, _limits(group)) for group in groups]
    usual = next((group.name for group in groups if group.default), "")
    return _select("resource_group", "Partition", choices, chosen or usual)


def _slurm(choice: Choice, chosen: Mapping[str, str]) -> Iterator[str]:
    """A menu for each of Slurm's options with more than one choice."""
    lists = (
        ("account", "Account", choice.accounts),
        ("qos", "QOS", choice.qos),
        ("reservation", "Reservation", choice.reservations),
    )
    for name, label, offers in lists:
        value = chosen.get(name, "")
        # Without a reservation is a choice, too.
        if len(offers) + (name == "reservation") < 2:
            continue
        # Another account may have another default QOS, so the empty value must not select one.
        fixed = name != "qos" or len(choice.accounts) < 2
        choices = [("" if o.default and fixed else o.name, _option_text(o)) for o in offers]
        if all(value for value, _ in choices):
            choices.insert(0, ("", "None" if name == "reservation" else "Slurm's default"))
        yield _select(name, label, choices, value)


def _option_text(option: Option) -> str:
    # sacctmgr writes the name as the description if none is given.
    title = option.title if option.title.lower() != option.name.lower() else ""
    text = f"{option.name}: {title}" if title else option.name
    notes = ["default"] * option.default + [option.note] * bool(option.note)
    return f"{text} ({'; '.join(notes)})" if notes else text


def _limits(group: ResourceGroup) -> str:
    parts = [format_cores(group.max_cpus), exact_size(parse_size(group.max_memory))]
    if group.max_time_limit:
        parts.append(short_minutes(group.max_time_limit))
    return f"{group.name} (up to {', '.join(parts)})"


def _time_limit(groups: tuple[ResourceGroup, ...], value: str) -> str:
    usual = next((group.default_time_limit for group in groups if group.default), None)
    hint = f'placeholder="{short_minutes(usual)}"' if usual else ""
    return _field("time_limit", "Time limit", "text", value, hint)


def _gpus(groups: Iterable[ResourceGroup], chosen: str) -> str:
    choices: dict[str, str] = {}
    for group in groups:
        for offer in group.gpus:
            for amount in offer.amounts:
                value = f"{offer.kind}/{amount.fgpu:g}"
                choices[value] = f"{amount.fgpu:g} fGPU {offer.title}".strip()
    return _select("gpu", "GPU", [("", "None"), *choices.items()], chosen) if choices else ""


def _folders(offers: Offers, chosen: Collection[str]) -> str:
    boxes = [
        _box(f"mount-{number}", folder, folder.name in chosen)
        for number, folder in enumerate(offers.folders)
        if folder.mountable
    ]
    legend = '<legend class="form-label fs-6">Folders that are kept</legend>'
    return f'<fieldset class="mb-3">{legend}{"".join(boxes)}</fieldset>' if boxes else ""


def _box(field: str, folder: Folder, checked: bool) -> str:
    return (
        f'<div class="form-check"><input class="form-check-input" type="checkbox" name="mounts" '
        f'id="{field}" value="{escape(folder.name)}"{" checked" if checked else ""}>'
        f'<label class="form-check-label" for="{field}">{escape(folder.path)}</label></div>'
    )


def _select(name: str, label: str, choices: Iterable[tuple[str, str]], chosen: str = "") -> str:
    options = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>'
        f"{escape(text)}</option>"
        for value, text in choices
    )
    return _labelled(
        name, label, f'<select class="form-select" id="{name}" name="{name}">{options}</select>'
    )


def _field(name: str, label: str, kind: str, value: str, attributes: str = "") -> str:
    field = f'<input class="form-control" type="{kind}" id="{name}" name="{name}" '
    return _labelled(name, label, f'{field}value="{escape(value)}" {attributes}>')


def _textarea(name: str, label: str, hint: str) -> str:
    field = f'<textarea class="form-control" id="{name}" name="{name}" rows="2" '
    return _labelled(name, label, f'{field}placeholder="{escape(hint)}"></textarea>')


def _labelled(name: str, label: str, field: str) -> str:
    label = f'<label class="form-label" for="{name}">{escape(label)}</label>'
    return f'<div class="mb-3">{label}{field}</div>'


def options_from_form(data: Mapping[str, list[str]]) -> dict[str, Any]:
    """The form's fields as the portal's launch request, without those that are empty."""
    fields = {
        name: values[0].strip() for name, values in data.items() if values and values[0].strip()
    }
    options: dict[str, Any] = {
        name: fields[name]
        for name in ("resource_group", *NAMED, "time_limit", "template")
        if name in fields
    }
    if "image" in fields:
        options["environment"], _, options["version"] = fields["image"].partition("/")
    if "template" not in fields:
        options["resources"] = _resources(fields)
    if mounts := [folder for folder in data.get("mounts", []) if folder]:
        options["mounts"] = [{"folder": folder} for folder in mounts]
    if "env" in fields:
        options["env"] = _variables(data["env"][0])
    return options


def _resources(fields: Mapping[str, str]) -> dict[str, Any]:
    resources: dict[str, Any] = {name: fields[name] for name in ("memory",) if name in fields}
    if "cpus" in fields:
        resources["cpus"] = int(fields["cpus"]) if fields["cpus"].isdecimal() else fields["cpus"]
    if "gpu" in fields:
        kind, _, amount = fields["gpu"].rpartition("/")
        resources |= {"fgpu": _number(amount), "gpu_kind": kind}
    return resources


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _variables(text: str) -> dict[str, str]:
    """Parse variables; raises ValueError with the reason, which JupyterHub shows in the form."""
    try:
        return parse_lines(text)
    except InvalidRequest as error:
        raise ValueError(error.errors[0].message) from error
