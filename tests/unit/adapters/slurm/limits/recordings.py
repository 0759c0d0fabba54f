"""Recorded answers to the reader's queries."""

from __future__ import annotations

from collections.abc import Sequence

from portal.adapters.slurm.limits import associations, config, partitions, qos, reservations, used
from portal.adapters.slurm.limits.reader import LimitsReader
from portal.core.cluster.limits import Limits
from tests.support.recordings import recorded

QUERIES = {
    "assoc": associations.associations_argv(),
    "accounts": associations.accounts_argv(),
    "users": associations.users_argv(),
    "qos": qos.qos_argv(),
    "qos-texts": qos.qos_texts_argv(),
    "used": used.used_argv(),
    "partition": partitions.entries_argv(),
    "features": partitions.features_argv(),
    "reservations": reservations.reservations_argv(),
    "config": config.config_argv(),
}


class Recorded:
    """Answers each query with what a real Slurm printed, or with other words."""

    def __init__(self, version: str, **other: str | Exception) -> None:
        self.version = version
        self.other = {name.replace("_", "-"): words for name, words in other.items()}
        self.asked: list[str] = []

    def __call__(self, argv: Sequence[str]) -> str:
        name = next(name for name, known in QUERIES.items() if known == argv)
        self.asked.append(name)
        words = self.other.get(name, "")
        if isinstance(words, Exception):
            raise words
        return words or recorded(self.version, name)


def read(version: str, **other: str | Exception) -> Limits:
    """The limits that these answers make."""
    return LimitsReader(Recorded(version, **other)).read()
