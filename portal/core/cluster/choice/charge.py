"""The account, QOS and reservation that a job is charged to, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from portal.core.cluster.choice.access import entry_of, options_in_effect
from portal.core.cluster.choice.account_use import usage_reset_text
from portal.core.cluster.limits import Association, Limits, Minutes, Qos, Tres, with_ancestors
from portal.core.slurm_options import SlurmOptions


@dataclass(frozen=True)
class Charge:
    """The account and the QOS of one job, as far as they are known, and the limits on them."""

    account: str = ""
    above: tuple[str, ...] | None = None
    """Its ancestors with limits on all jobs together; None if that is not known."""
    account_limited: bool = True
    """Whether the account itself has such limits."""
    qos: tuple[str, ...] = ()
    """The QOS whose limits apply: the job's, its partition's, or both."""
    reservation: str = ""
    reservation_active: bool = False
    constraint: str = ""
    resets: str = ""
    """When past use stops counting, in one sentence; "" if that is not known."""
    by_time_limit: bool = False
    """Whether Slurm starts only jobs that fit the remaining budget ("safe" is enforced)."""

    @property
    def accounts(self) -> str:
        """The accounts that may limit the job, as the subject of a sentence."""
        if not self.account:
            return "Your group"
        if self.above is None:
            return f"Your account {self.account}, or one above it,"
        if not self.above:
            return f"Your account {self.account}"
        above = " or ".join(self.above)
        if not self.account_limited:
            return f"Account {above}, above your account {self.account},"
        return f"Your account {self.account}, or {above} above it,"

    @property
    def all_qos(self) -> str:
        """The QOS in words; "" if none is known."""
        return f"QOS {' or '.join(self.qos)}" if self.qos else ""


UNKNOWN_CHARGE = Charge()


def charge_of(user: str, partition: str, options: SlurmOptions, limits: Limits | None) -> Charge:
    """The charge of a user's job with these options, with Slurm's defaults for missing ones."""
    chosen = Charge(
        account=options.account,
        qos=(options.qos,) if options.qos else (),
        reservation=options.reservation,
        constraint=options.constraint,
    )
    if limits is None:
        return chosen
    account, qos = options_in_effect(user, partition, options, limits)
    associations = list(_associations(user, account, limits))
    reservations = [
        reservation
        for reservation in limits.reservations
        if reservation.name == options.reservation
    ]
    return replace(
        chosen,
        account=account,
        above=tuple(
            row.account for row in associations if row.account != account and _limited(row)
        ),
        account_limited=any(row.account == account and _limited(row) for row in associations),
        qos=_limited_qos(qos, entry_of(partition, limits).qos, limits),
        reservation_active=any(reservation.active for reservation in reservations),
        resets=usage_reset_text(limits),
        by_time_limit="safe" in limits.enforced,
    )


def _associations(user: str, account: str, limits: Limits) -> Iterator[Association]:
    """The user's associations with an account, the account and its ancestors."""
    yield from (row for row in limits.users.get(user, ()) if row.account == account)
    yield from with_ancestors(account, limits)


def _limited(association: Association) -> bool:
    counts = association.group_jobs, association.group_submitted
    return association.group != Tres() or association.total != Minutes() or counts != (None, None)


def _limited_qos(of_job: str, of_partition: str, limits: Limits) -> tuple[str, ...]:
    """The QOS, of these two, that set limits; both if neither is known to."""
    names = tuple(dict.fromkeys(filter(None, (of_job, of_partition))))
    by_name = {qos.name: qos for qos in limits.qos}
    limiting = tuple(name for name in names if name in by_name and _sets_limits(by_name[name]))
    return limiting or names


def _sets_limits(qos: Qos) -> bool:
    bare = replace(qos, flags=(), used=Minutes(), description="", preempt=(), preempt_mode="")
    return bare != Qos(qos.name)
