"""Models for the choice of Slurm's options, and for the accounts' limits over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from portal.core.cluster.choice.account_use import AccountUse, Budget
from portal.core.cluster.choice.offers import LaunchOptions, Offer
from portal.core.slurm_options import Constraint, GroupName, SlurmName, SlurmOptions, options_in
from portal.errors import FieldError
from portal.web.api.models.base import ResponseModel
from portal.web.errors import ProblemField

_QUERY = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class AccountQuery(BaseModel):
    """The account and the QOS whose limits apply; Slurm's defaults if omitted."""

    model_config = _QUERY

    account: SlurmName | None = None
    qos: SlurmName | None = None

    @property
    def options(self) -> SlurmOptions:
        """The chosen Slurm options."""
        return SlurmOptions(account=self.account or "", qos=self.qos or "")


class UseQuery(AccountQuery):
    """The resource group (the default one if omitted), and the account and QOS."""

    resource_group: GroupName | None = None


class ChoiceQuery(UseQuery):
    """The choices so far, all of them optional."""

    reservation: SlurmName | None = None
    constraint: Constraint | None = None
    exclusive: bool = False

    @property
    def options(self) -> SlurmOptions:
        """The chosen Slurm options."""
        return options_in(self)


class EverybodyQuery(BaseModel):
    """The accounts to list."""

    model_config = _QUERY

    everybody: bool = False
    """All accounts; for administrators only."""


class OfferOut(ResponseModel):
    """An account, a QOS, a reservation or a feature of nodes that can be chosen."""

    name: str
    title: str
    """Its description in Slurm; empty without one."""
    note: str
    """The remaining budget, the end, or the nodes; may be empty."""
    default: bool
    """Whether Slurm uses it by default."""

    @classmethod
    def all_of(cls, offers: Sequence[Offer]) -> list[OfferOut]:
        """Build a list."""
        return [cls.model_validate(offer) for offer in offers]


class InEffectOut(ResponseModel):
    """The options in effect: the choices, else Slurm's defaults."""

    resource_group: str
    account: str
    """Empty without accounting."""
    qos: str


class LaunchOptionsOut(ResponseModel):
    """Slurm's options: each list has only those that Slurm accepts with the other choices."""

    resource_groups: list[str]
    accounts: list[OfferOut]
    qos: list[OfferOut]
    reservations: list[OfferOut]
    features: list[OfferOut]
    """For the field constraint."""
    whole_node: bool
    """Whether exclusive can be chosen."""
    in_effect: InEffectOut
    warnings: list[str]
    """Warnings about the choice, for example that its sessions can be preempted."""
    problems: list[ProblemField]
    """The choices that Slurm would refuse, with the reasons; "count" if it accepts no further job
    now (MaxSubmitJobs, GrpSubmitJobs)."""

    @classmethod
    def of(cls, options: LaunchOptions, problems: Sequence[FieldError]) -> LaunchOptionsOut:
        """Build it."""
        full = [FieldError("count", options.full)] if options.full else []
        refused = [*problems, *full]
        return cls(
            resource_groups=[group.name for group in options.groups],
            accounts=OfferOut.all_of(options.accounts),
            qos=OfferOut.all_of(options.qos),
            reservations=OfferOut.all_of(options.reservations),
            features=OfferOut.all_of(options.features),
            whole_node=options.whole_node,
            in_effect=InEffectOut(
                resource_group=options.group, account=options.account, qos=options.effective_qos
            ),
            warnings=list(options.warnings),
            problems=[
                ProblemField(field=problem.field, message=problem.message) for problem in refused
            ],
        )


class BudgetOut(ResponseModel):
    """A limit on the use of all jobs together over time (GrpTRESMins), in hours."""

    resource: Literal["cpus", "gpus", "shards", "memory"]
    unit: str
    """As in "core hours"."""
    total: float
    used: float | None
    """Null if Slurm has not reported it."""
    left: float | None
    """Never below 0."""

    @classmethod
    def all_of(cls, budgets: Sequence[Budget]) -> list[BudgetOut]:
        """Build a list."""
        return [cls.model_validate(budget) for budget in budgets]


class AccountOut(ResponseModel):
    """A Slurm account, with its limits over time and its shares."""

    name: str
    title: str
    """Its description in Slurm; empty without one."""
    parent: str
    default: bool
    """Whether it is the caller's default."""
    member: bool
    """Whether the caller may charge it; the limits of its parents apply as well."""
    budgets: list[BudgetOut]
    """Of all users of the account and its children together."""
    own_budgets: list[BudgetOut]
    """Of the caller alone."""
    resets: str
    """When past use stops counting, in words; empty without limits over time."""
    shares: int | None
    fair_share: float | None
    """The caller's factor, from 0 to 1; of other accounts, the account's factor."""

    @classmethod
    def of(cls, use: AccountUse) -> AccountOut:
        """Build it."""
        return cls(
            name=use.account,
            title=use.description,
            parent=use.parent,
            default=use.default,
            member=use.member,
            budgets=BudgetOut.all_of(use.budgets),
            own_budgets=BudgetOut.all_of(use.own_budgets),
            resets=use.resets,
            shares=use.shares,
            fair_share=use.fair_share,
        )


class AccountListOut(ResponseModel):
    """Accounts, by name."""

    accounts: list[AccountOut]
