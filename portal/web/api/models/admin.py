"""Response models for administrators: images, caps, limits and the audit log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from portal.core.admin.audit import AuditEvent
from portal.core.admin.images import ImageRule, SeenBy
from portal.core.apps.catalog import Image
from portal.core.cluster.limit_report import Limited, LimitReport
from portal.core.cluster.node_use import NodeUse
from portal.core.listing import PlainText
from portal.core.site_rules import SiteRules
from portal.core.units import format_size
from portal.web.api.models.base import ResponseModel, optional_size


class ImageRuleOut(ResponseModel):
    """The visibility of an image."""

    environment: str
    version: str
    title: str
    seen_by: SeenBy
    accounts: list[str]
    """Slurm accounts that can see it, including their child accounts."""
    users: list[str]

    @classmethod
    def of(cls, image: Image, rule: ImageRule) -> ImageRuleOut:
        """Build it."""
        return cls(
            environment=rule.environment,
            version=rule.version,
            title=image.title,
            seen_by=rule.seen_by,
            accounts=list(rule.accounts),
            users=list(rule.users),
        )


class ImageRuleListOut(ResponseModel):
    """All images with their visibility."""

    images: list[ImageRuleOut]


class CapsOut(ResponseModel):
    """The administrators' caps on resources for which Slurm has no limit; null means no cap."""

    max_shared_memory: str | None
    idle_minutes: int | None
    """Minutes after which an unused session is ended."""
    idle_warning: int | None
    """Minutes before that end at which its owner is warned."""
    idle_cpu_percent: int
    """CPU use from which a job counts as busy, in percent of one core."""
    public_apps: bool
    """Whether owners may open apps to everybody."""
    preferred_ports: bool
    """Whether users may request a port."""

    @classmethod
    def of(cls, rules: SiteRules) -> CapsOut:
        """Build it."""
        return cls(
            max_shared_memory=optional_size(rules.max_shared_memory_mb),
            idle_minutes=rules.idle_minutes,
            idle_warning=rules.idle_warning,
            idle_cpu_percent=rules.idle_cpu_percent,
            public_apps=rules.public_apps,
            preferred_ports=rules.preferred_ports,
        )


class LimitOut(ResponseModel):
    """One of Slurm's limits, and the command that changes it."""

    what: str
    value: str
    command: str
    set: bool


class LimitedOut(ResponseModel):
    """A QOS, account, user or partition with its limits."""

    name: str
    about: str
    limits: list[LimitOut]


class LimitsQuery(BaseModel):
    """Whose limits to list."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: PlainText | None = Field(None, description="A part of their names")
    limit: Annotated[int, Field(ge=1, le=500, description="The most in each list")] = 500


class LimitsOut(ResponseModel):
    """Slurm's limits, in plain words."""

    applied: bool
    """False if Slurm stores limits but does not enforce them."""
    complete: bool
    """False if a list is cut: the parameter `name` finds the others."""
    resource_groups: list[LimitedOut]
    qos: list[LimitedOut]
    accounts: list[LimitedOut]
    users: list[LimitedOut]

    @classmethod
    def of(cls, report: LimitReport, most: int) -> LimitsOut:
        """Build it, with `most` of each kind."""
        kinds = (report.groups, report.qos, report.accounts, report.users)
        return cls(
            applied=report.applied,
            complete=all(len(entities) <= most for entities in kinds),
            resource_groups=_limited(report.groups[:most]),
            qos=_limited(report.qos[:most]),
            accounts=_limited(report.accounts[:most]),
            users=_limited(report.users[:most]),
        )


def _limited(entities: Iterable[Limited]) -> list[LimitedOut]:
    return [
        LimitedOut(
            name=entity.name,
            about=entity.about,
            limits=[LimitOut.model_validate(limit) for limit in entity.limits],
        )
        for entity in entities
    ]


class JournalEntryOut(ResponseModel):
    """An event of the audit log: time, user, action, target and client address."""

    id: int
    time: AwareDatetime
    who: str
    action: str
    target: str
    detail: str
    address: str

    @classmethod
    def of(cls, event: AuditEvent) -> JournalEntryOut:
        """Build it."""
        return cls.model_validate(event)


class JournalPageOut(ResponseModel):
    """A page of the audit log, newest first."""

    entries: list[JournalEntryOut]
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""


class HeldOut(ResponseModel):
    """The resources that one user's jobs hold on a node."""

    user: str
    cpus: int
    memory: str
    fgpu: float
    jobs: int


class NodeOut(ResponseModel):
    """A node: its resources, and the users who hold them."""

    name: str
    resource_groups: list[str]
    usable: bool
    state: str
    """Slurm's state with its flags, such as "mixed+drain"."""
    reason: str
    """Why it is out of service; empty without a reason."""
    features: list[str]
    cpus: int
    memory: str
    fgpu: float
    held: list[HeldOut]

    @classmethod
    def of(cls, node: NodeUse) -> NodeOut:
        """Build it."""
        return cls(
            name=node.name,
            resource_groups=list(node.partitions),
            usable=node.usable,
            state=node.state,
            reason=node.reason,
            features=list(node.features),
            cpus=node.cpus,
            memory=format_size(node.memory_mb),
            fgpu=node.fgpu,
            held=[
                HeldOut(
                    user=share.user,
                    cpus=share.cpus,
                    memory=format_size(share.memory_mb),
                    fgpu=share.fgpu,
                    jobs=share.jobs,
                )
                for share in node.held
            ],
        )


class NodeListOut(ResponseModel):
    """A page of the cluster's nodes."""

    nodes: list[NodeOut]
    matching: int
    """All nodes that match the filters."""
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""
