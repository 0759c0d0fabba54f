"""Reads all limits: each query once for all users, accounting's only on sites with accounting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter

from portal.adapters.slurm.asking import RefusedError
from portal.adapters.slurm.limits import associations, config, partitions, qos, reservations, used
from portal.adapters.slurm.limits.words import described
from portal.core.cluster.limits import Association, Limits, NodeFeatures, Qos

Ask = Callable[[Sequence[str]], str]


class LimitsReader:
    """Limits of associations, QOS, partitions and reservations, by Slurm's command line tools."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def read(self) -> Limits:
        """Read all limits; raises Unavailable, UnexpectedOutput."""
        conf = config.config_parse(self._ask(config.config_argv()))
        entries = tuple(partitions.entries_parse(self._ask(partitions.entries_argv())))
        limits = Limits(
            enforced=conf.enforced,
            partitions=entries,
            tracked=conf.tracked,
            reservations=tuple(
                reservations.reservations_parse(self._optional(reservations.reservations_argv()))
            ),
            features=self._features(),
            accounting=conf.accounting,
            private=conf.private,
            preempt_type=conf.preempt_type,
            preempt_mode=conf.preempt_mode,
            usage_reset=conf.usage_reset,
            decay_minutes=conf.decay_minutes,
            fenced=conf.fenced,
            site=conf.site,
        )
        return self._with_accounting(limits, conf) if conf.accounting else limits

    def _features(self) -> tuple[NodeFeatures, ...]:
        """In order: sinfo prints a node's partitions in another order each time."""
        lines = self._optional(partitions.features_argv())
        return tuple(sorted(partitions.features_parse(lines), key=attrgetter("node", "partition")))

    def _with_accounting(self, limits: Limits, conf: config.Config) -> Limits:
        entries = tuple(
            associations.associations_parse(
                self._ask(associations.associations_argv()), conf.cluster
            )
        )
        usage = used.used_parse(self._optional(used.used_argv()), conf.cluster, shared=conf.shared)
        return replace(
            limits,
            default_accounts=associations.users_parse(self._ask(associations.users_argv())),
            associations=tuple(map(usage.of, self._with_descriptions(entries))),
            qos=tuple(map(usage.of_qos, self._qos())),
        )

    def _with_descriptions(self, entries: Sequence[Association]) -> list[Association]:
        texts = described(self._optional(associations.accounts_argv()))
        return [
            entry if entry.user else replace(entry, description=texts.get(entry.account, ""))
            for entry in entries
        ]

    def _qos(self) -> list[Qos]:
        texts = described(self._optional(qos.qos_texts_argv()))
        entries = qos.qos_parse(self._ask(qos.qos_argv()))
        return [replace(entry, description=texts.get(entry.name, "")) for entry in entries]

    def _optional(self, argv: Sequence[str]) -> str:
        """The output of a command; "" if Slurm does not permit the reader to see it."""
        try:
            return self._ask(argv)
        except RefusedError:
            return ""
