"""Response models for resource templates."""

from __future__ import annotations

from portal.core.launch.templates import Template
from portal.core.units import format_size
from portal.web.api.models.base import ResponseModel, optional_size


class TemplateResourcesOut(ResponseModel):
    """The resources of a template."""

    cpus: int
    memory: str
    shared_memory: str | None
    fgpu: float | None
    gpu_kind: str | None


class TemplateOut(ResponseModel):
    """A resource template."""

    name: str
    title: str
    description: str
    resources: TemplateResourcesOut
    time_limit: int | None
    """Minutes."""
    resource_group: str | None
    account: str | None
    qos: str | None
    reservation: str | None
    constraint: str | None
    exclusive: bool
    """Whether its sessions get a node for themselves."""
    place: int
    """Position in the list of templates."""

    @classmethod
    def of(cls, template: Template) -> TemplateOut:
        """Build it."""
        return cls(
            name=template.name,
            title=template.title,
            description=template.description,
            resources=TemplateResourcesOut(
                cpus=template.cpus,
                memory=format_size(template.memory_mb),
                shared_memory=optional_size(template.shared_memory_mb),
                fgpu=template.fgpu,
                gpu_kind=template.gpu_kind,
            ),
            time_limit=template.time_limit,
            resource_group=template.resource_group,
            account=template.account,
            qos=template.qos,
            reservation=template.reservation,
            constraint=template.constraint,
            exclusive=template.exclusive,
            place=template.place,
        )


class OfferedTemplateOut(TemplateOut):
    """A resource template, and whether the caller may launch with it."""

    fits: bool
    """Whether the caller's limits allow it."""
    why: str
    """Why it does not fit."""

    @classmethod
    def offer(cls, template: Template, why: str) -> OfferedTemplateOut:
        """Build it; `why` is "" if it fits."""
        return cls(fits=not why, why=why, **dict(TemplateOut.of(template)))


class OfferedTemplateListOut(ResponseModel):
    """The resource templates, in order."""

    templates: list[OfferedTemplateOut]
