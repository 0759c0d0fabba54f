"""The fair shares of accounts' members, from Slurm's factor for each association."""

from __future__ import annotations

from portal.core.cluster.limits import Limits


def fair_shares(limits: Limits | None) -> dict[str, str]:
    """The fair-share factor of each account's members: one value, or the range of several."""
    factors: dict[str, list[float]] = {}
    for association in limits.associations if limits else ():
        if association.user and association.fair_share is not None:
            factors.setdefault(association.account, []).append(association.fair_share)
    return {account: _span(min(values), max(values)) for account, values in factors.items()}


def _span(least: float, most: float) -> str:
    low, high = (f"{value:.3f}".rstrip("0").rstrip(".") for value in (least, most))
    return low if low == high else f"{low} to {high}"
