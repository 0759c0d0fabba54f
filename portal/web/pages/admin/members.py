"""The fair share of an account's members, of which Slurm keeps a factor each."""

from __future__ import annotations

from portal.core.cluster.limits import Limits


def fair_shares(limits: Limits | None) -> dict[str, str]:
    """By account: the factor of its members, or the lowest and the highest of them."""
    found: dict[str, list[float]] = {}
    for one in limits.associations if limits else ():
        if one.user and one.fair_share is not None:
            found.setdefault(one.account, []).append(one.fair_share)
    return {account: _span(min(some), max(some)) for account, some in found.items()}


def _span(least: float, most: float) -> str:
    low, high = (f"{value:.3f}".rstrip("0").rstrip(".") for value in (least, most))
    return low if low == high else f"{low} to {high}"
