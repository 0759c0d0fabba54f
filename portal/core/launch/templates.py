"""Resource templates: filled into a request before it is checked, and whether they fit somebody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from portal.core.admin.administration import SiteRules, Template
from portal.core.cluster.gpu_offers import Gpus
from portal.core.cluster.jobs import Partition
from portal.core.launch.request import format_size, parse_launch
from portal.core.policy import cap_problems, granted_gpu, resource_problems
from portal.errors import FieldError, InvalidRequest

FIELD = "template"


def fill(data: object, templates: Iterable[Template]) -> object:
    """Replace the name of a template in untrusted input by what it stands for.

    What was given beside it wins, except for the resources: those come from the template or from
    the request, never from both. Raises InvalidRequest for the field "template".
    """
    if not isinstance(data, Mapping) or FIELD not in data:
        return data
    rest = {key: value for key, value in data.items() if key != FIELD}
    name = data[FIELD]
    if name is None:
        return rest
    template = next((t for t in templates if t.name == name), None)
    if template is None:
        text = "there is no template of this name"
        raise _refusal(text if isinstance(name, str) else "this must be text")
    if rest.get("resources", {}) != {}:
        raise _refusal("name a template or resources, not both")
    defaults = {"resource_group": template.resource_group, "time_limit": template.time_limit}
    given = {key: value for key, value in rest.items() if value is not None}
    return rest | defaults | given | {"resources": _resources(template)}


def _refusal(text: str) -> InvalidRequest:
    return InvalidRequest([FieldError(FIELD, text)])


def _resources(template: Template) -> dict[str, Any]:
    sizes = {"memory": template.memory_mb, "shared_memory": template.shared_memory_mb}
    written = {key: format_size(mb) for key, mb in sizes.items() if mb is not None}
    gpu = {"fgpu": template.fgpu, "gpu_kind": template.gpu_kind}
    asked = {key: value for key, value in gpu.items() if value is not None}
    return {"cpus": template.cpus, **written, **asked}


def misfit(
    template: Template,
    partitions: Sequence[Partition] | None,
    rules: SiteRules,
    gpus: Gpus,
    group: str | None = None,
) -> str:
    """Why a person with these partitions could not launch with a template; "" where they could.

    `group` is the resource group that was chosen beside it, if any.
    """
    asked = {"environment": "any", "resource_group": group, FIELD: template.name}
    try:
        request = parse_launch(fill(asked, [template]))
    except InvalidRequest as error:
        problems: Sequence[FieldError] = error.errors
    else:
        problems = cap_problems(request, rules)
        problems += resource_problems(request, partitions) if partitions is not None else []
        gpu = granted_gpu(request, partitions, gpus)
        problems += [gpu] if isinstance(gpu, FieldError) else []
    return "; ".join(problem.message for problem in problems)
