"""Whether a launch request can be granted at all; when is up to Slurm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from portal.core.apps.catalog import Catalog, Image, own_image
from portal.core.cluster.gpu_offers import Gpus
from portal.core.cluster.inventory import Partition
from portal.core.launch.request import LaunchRequest, parse_launch
from portal.core.launch.templates import FIELD, Template, fill
from portal.core.site_rules import SiteRules
from portal.core.slurm_options import NO_OPTIONS, SlurmOptions
from portal.core.units import exact_size, short_minutes
from portal.errors import FieldError, InvalidRequest
from portal.node.common.fgpu import Slice


@dataclass(frozen=True)
class Decision:
    """The outcome of a launch request."""

    image: Image
    group: str | None
    """The partition to submit to; None leaves it to Slurm."""
    gpu: Slice | None
    """The granted GPU, rounded up to an offered amount; None if none was requested."""
    minutes: int | None = None
    """The time limit: the requested one, else the partition's default; None leaves it to Slurm."""


def decide(
    request: LaunchRequest,
    catalog: Catalog,
    partitions: Sequence[Partition] | None,
    rules: SiteRules,
    gpus: Gpus,
) -> Decision:
    """Return what will run, or raise InvalidRequest with every field that cannot be granted.

    `partitions` are those that the user may use, with that user's effective limits
    (core/cluster/effective_limits.py). Only requests that can never be granted are refused:
    a request that fits an empty cluster goes to Slurm, which decides when. None means that Slurm
    has not been read yet, so nothing is limited. The catalog contains what this user may see: a
    hidden image is treated as one that does not exist.
    """
    image = catalog.image(request.environment, request.version)
    if request.image is not None:
        image = own_image(request.image)
    problems = [] if image and not image.retired else [_missing_image(request, catalog)]
    problems += resource_problems(request, partitions) if partitions is not None else []
    problems += cap_problems(request, rules)
    group = group_for(request.resource_group, partitions or [])
    gpu = granted_gpu(request, partitions, gpus)
    problems += [gpu] if isinstance(gpu, FieldError) else []
    if image is None or isinstance(gpu, FieldError) or problems:
        raise InvalidRequest(problems)
    # Slurm is given the default that was shown, so that it cannot differ.
    minutes = request.time_limit or (group.default_minutes if group else None)
    return Decision(image, group.name if group else request.resource_group, gpu, minutes)


def with_refusals(refused: Sequence[FieldError], others: Sequence[FieldError]) -> list[FieldError]:
    """Merge the options that Slurm would refuse with the other field errors of the request.

    The reason for a refused resource group also names the groups that can be used. They are left
    out if the account or the QOS is at fault: without these, other groups could be used.
    """
    group = "resource_group"
    refused_fields = {error.field for error in refused}
    alternative = next((error.message for error in others if error.field == group), "")
    merged = [
        FieldError(group, f"{error.message}; {alternative}")
        if error.field == group and alternative
        else error
        for error in refused
    ]
    hidden = refused_fields | ({group} if refused_fields & {"account", "qos"} else set())
    return [*merged, *(error for error in others if error.field not in hidden)]


def granted_gpu(
    request: LaunchRequest, partitions: Sequence[Partition] | None, gpus: Gpus
) -> Slice | FieldError | None:
    """The GPU that a request is granted, or why it never can be; None if it requests none.

    An unknown group is an error of its own field, and adds no error about GPUs.
    """
    resources = request.resources
    if partitions is None:
        return gpus.grant(resources.fgpu, resources.gpu_kind, None)
    group = group_for(request.resource_group, partitions)
    return gpus.grant(resources.fgpu, resources.gpu_kind, group, partitions) if group else None


def cap_problems(request: LaunchRequest, rules: SiteRules) -> list[FieldError]:
    """The fields that exceed the administrators' caps."""
    cap, requested = rules.max_shared_memory_mb, request.resources.shared_memory
    if cap is None or requested is None or requested <= cap:
        return []
    text = f"{exact_size(requested)} is too much: an administrator allows {exact_size(cap)} at most"
    return [FieldError("resources.shared_memory", text)]


def _missing_image(request: LaunchRequest, catalog: Catalog) -> FieldError:
    image = catalog.image(request.environment, request.version)
    if image is not None and image.retired:
        newest = catalog.image(request.environment, None)
        instead = f"; choose {newest.version}" if newest else ""
        text = f"{request.environment} {request.version} was retired by an administrator{instead}"
        return FieldError("version", text)
    if catalog.image(request.environment, None) is None:
        return FieldError("environment", f"there is no environment named {request.environment}")
    return FieldError("version", f"{request.environment} has no version {request.version}")


def group_for(name: str | None, partitions: Sequence[Partition]) -> Partition | None:
    """The partition of a request: the named one, else the default."""
    if name is None:
        return next((p for p in partitions if p.default), partitions[0] if partitions else None)
    return next((p for p in partitions if p.name == name), None)


def resource_problems(request: LaunchRequest, partitions: Sequence[Partition]) -> list[FieldError]:
    """The fields of a request that exceed the limits of these partitions."""
    group = group_for(request.resource_group, partitions)
    if not partitions:
        text = "Slurm lets your account use no resource group here; ask an administrator"
        return [FieldError("resource_group", text)]
    if group is None:
        names = ", ".join(p.name for p in partitions)
        return [FieldError("resource_group", f"choose one of: {names}")]
    problems = []
    cpus, memory = request.resources.cpus, request.resources.memory
    if cpus > group.max_cpus:
        text = f"{cpus} is too many: {group.too_much('cpus')}"
        problems.append(FieldError("resources.cpus", text))
    if memory > group.max_memory_mb:
        text = f"{exact_size(memory)} is too much: {group.too_much('memory')}"
        problems.append(FieldError("resources.memory", text))
    if group.max_minutes is not None and (request.time_limit or 0) > group.max_minutes:
        text = f"{short_minutes(request.time_limit or 0)} is too long: {group.too_much('time')}"
        problems.append(FieldError("time_limit", text))
    return problems


def misfit(
    template: Template,
    partitions: Sequence[Partition] | None,
    rules: SiteRules,
    gpus: Gpus,
    group: str | None = None,
    chosen: SlurmOptions = NO_OPTIONS,
    refused: Callable[[LaunchRequest], Sequence[FieldError]] = lambda _: (),
) -> str:
    """Why a user with these partitions cannot launch with a template; "" if they can.

    `group` and `chosen` are the resource group and Slurm's options that are chosen with it, if
    any; they take precedence over the template's. The limits of the partitions are those of both
    together. `refused` returns errors for the options that Slurm would refuse.
    """
    options = {name: value for name, value in asdict(chosen).items() if value}
    data = {"environment": "any", "resource_group": group, FIELD: template.name, **options}
    try:
        request = parse_launch(fill(data, [template]))
    except InvalidRequest as error:
        problems: Sequence[FieldError] = error.errors
    else:
        others = cap_problems(request, rules)
        others += resource_problems(request, partitions) if partitions is not None else []
        gpu = granted_gpu(request, partitions, gpus)
        others += [gpu] if isinstance(gpu, FieldError) else []
        refusals = refused(request)
        refused_fields = {problem.field for problem in refusals}
        problems = [
            *refusals,
            *(problem for problem in others if problem.field not in refused_fields),
        ]
    return "; ".join(problem.message for problem in problems)
