"""`slipway check`: problems of this site, in the order in which to fix them."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path

from portal.adapters.certificates import CertificateAuthority
from portal.adapters.slurm.asking import QueryRunner, RefusedError
from portal.adapters.slurm.users import user_argv, user_parse
from portal.adapters.ssh.transport import SshTransport
from portal.cli.check_certificates import certificate_findings
from portal.cli.check_slurm import check_slurm
from portal.cli.checks.connection import check_admin_groups, check_connection
from portal.cli.checks.database import check_database, check_hosts, check_jobs
from portal.cli.checks.host import (
    check_account,
    check_folders,
    check_haproxy,
    check_hub,
    check_keys,
    check_settings_file,
)
from portal.cli.checks.images import check_image_files
from portal.cli.checks.oidc import check_oidc
from portal.cli.checks.operator import check_operator
from portal.cli.checks.places import (
    check_catalog,
    check_logos,
    check_templates,
    check_toolkit,
)
from portal.cli.checks.queue_reader import check_queue_reader
from portal.cli.checks.running import check_worker
from portal.cli.checks.tls import check_browsers_tls, check_callback
from portal.cli.findings import Finding
from portal.config import LoginSettings, Settings, WebSettings
from portal.core.cluster.gpu_offers import Gpus, is_of_kind
from portal.core.cluster.inventory import Node
from portal.core.interfaces.systems import Scheduler
from portal.errors import PortalError
from portal.node.common.fgpu import GpuKind, to_number
from portal.store.encryption import read_keys
from portal.wiring import now, real_systems


def check(settings: Settings, file: Path | None = None) -> Generator[Finding, None, None]:
    """Check everything that the portal depends on; each finding as soon as it is known.

    `file`: the settings file. Checks that depend on a failed one are skipped.
    """
    yield from check_account(settings, os.getuid())
    if file is not None:
        yield from check_settings_file(file)
    yield from _names(settings.web)
    yield from check_browsers_tls(settings.web)
    yield from check_logos(settings)
    templates = list(check_templates(settings))
    yield from templates
    keys = check_keys(settings)
    yield keys
    if not keys.ok:
        return
    yield from check_folders(settings)
    yield from certificate_findings(settings.state.ca_file(""), now())
    sealing = len(read_keys(settings.state.keys))
    advice = "" if sealing else "; run `slipway init`, or restore the lost ones"
    yield Finding(bool(sealing), f"{sealing} keys for values in {settings.state.keys}{advice}")
    database = list(check_database(settings.state.database_url))
    yield from database
    yield from check_callback(settings)
    yield from check_oidc(settings)
    yield from check_hub(settings)
    yield from check_toolkit(Path(settings.sessions.toolkit))
    if templates or not all(finding.ok for finding in database):
        return
    yield from check_hosts(settings)
    yield from check_haproxy(settings)
    # Use squeue, the fallback of pyslurm; check_queue_reader checks pyslurm.
    commands = settings.slurm.model_copy(update={"reader": "commands"})
    systems = real_systems(settings.model_copy(update={"slurm": commands}))
    yield from check_worker(systems.stores.heartbeats, now())
    yield from check_jobs(systems.stores.jobs, settings, now())
    catalog = systems.catalog()
    yield from check_catalog(settings, catalog)
    rules = systems.stores.administration.image_rules()
    yield from check_image_files(settings, catalog, rules)
    yield from check_cluster(settings, systems.scheduler)


def check_cluster(settings: Settings, scheduler: Scheduler) -> Iterator[Finding]:
    """Check the login node and Slurm; ends after a failed connection."""
    login, slurm = settings.login, settings.slurm
    steps = list(check_connection(settings))
    yield from steps
    if not all(step.ok for step in steps) and len(login.all_hosts) == 1:
        return
    answered = False
    for finding in slurm_findings(login, scheduler):
        answered |= finding.ok
        yield finding
    if not answered:
        return
    yield from check_queue_reader(slurm)
    authority = CertificateAuthority(settings.state.ca_file(""))
    transport = SshTransport(login, authority, slurm.operator)
    yield from check_admin_groups(slurm.admin_groups, login.reader, transport)
    asker = QueryRunner(transport, login.reader, slurm.command_seconds)
    yield from check_operator(
        slurm.operator,
        transport.uid,
        lambda name: user_parse(asker.ask(user_argv(name)), name),
    )
    if settings.gpu.gpus.kinds:
        yield from compare_gpus(settings.gpu.gpus, scheduler)


def _names(web: WebSettings) -> Iterator[Finding]:
    """Whether portal and apps have separate domains, and https protects both."""
    if web.shared_domain:
        text = (
            f"a domain of their own for the apps: they and the portal are both in "
            f"{web.shared_domain}, so scripts of any app can set cookies for the portal as well"
        )
        yield Finding(False, text)
    if not (web.secure or web.only_here):
        text = (
            "https: passwords can be intercepted, and browsers omit the headers that protect "
            "users' apps from other pages (web.plain_http permits it)"
        )
        yield Finding(False, text)


def check_gpus(settings: Settings) -> Generator[Finding, None, None]:
    """Check everything that fractional GPUs need; `slipway-gpu check` does so on the nodes."""
    gpus, keys = settings.gpu.gpus, check_keys(settings)
    if not gpus.kinds:
        yield Finding(False, "the settings name no GPUs ([[gpu.kinds]])")
    elif not keys.ok:
        yield keys
    else:
        yield from compare_gpus(gpus, real_systems(settings).scheduler)


def compare_gpus(gpus: Gpus, scheduler: Scheduler) -> Iterator[Finding]:
    """Compare the settings' GPUs with Slurm's."""
    try:
        nodes = {node.name: node for node in scheduler.nodes()}
        partitions, limits = scheduler.partitions(), scheduler.limits()
    except PortalError as error:
        yield Finding(False, f"Slurm: {error}")
        return
    for kind in gpus.kinds:
        yield from _kind(kind, list(nodes.values()))
    yield from _unnamed(gpus, nodes.values())
    for word in ("gres/gpu", "gres/shard"):
        yield Finding(word in limits.tracked, f"AccountingStorageTRES has {word} (slurm.conf)")
    for partition in partitions:
        for offer in gpus.offers(partition):
            amounts = ", ".join(f"{to_number(amount.fgpu):g}" for amount in offer.amounts)
            yield Finding(True, f"{partition.name} offers {_title(offer.kind)}: {amounts} fGPU")
    for node in nodes.values():
        if node.gpus and not node.usable:
            text = (
                f"{node.name} takes no jobs: sinfo -R says why (a reason that begins with "
                '"slipway:" is the node\'s own, whose GPUs nobody watches)'
            )
            yield Finding(False, text)
    gpu_nodes = [node.name for node in nodes.values() if node.gpus]
    if gpu_nodes:
        yield Finding(True, f"to be run as root on {', '.join(gpu_nodes)}: slipway-gpu check")


def _kind(kind: GpuKind, nodes: Sequence[Node]) -> Iterator[Finding]:
    """One kind of the settings: its nodes, and whether Slurm has the right number of shards."""
    matching = [(node, f) for node in nodes for f in node.gpus if is_of_kind(f, kind) and f.gpus]
    names = ", ".join(node.name for node, _gpus in matching)
    if not matching:
        yield Finding(False, f"no node in Slurm has {_title(kind)}: gres.conf, Type={kind.name}")
        return
    yield Finding(True, f"{_title(kind)} on {names}")
    for node, gpus in matching:
        shards = gpus.gpus * kind.shards if kind.sharing == "shared" else 0
        if gpus.shards != shards:
            text = (
                f"{node.name} has {gpus.shards} shards of {_title(kind)}, the settings divide "
                f"its {gpus.gpus} GPUs into {shards}: run `slipway-gpu gres` there for gres.conf"
            )
            yield Finding(False, text)


def _unnamed(gpus: Gpus, nodes: Iterable[Node]) -> Iterator[Finding]:
    """GPUs in Slurm that the settings do not name."""
    types = {f.kind for node in nodes for f in node.gpus}
    configured = {name for name in types if any(kind.name in ("", name) for kind in gpus.kinds)}
    for name in sorted(types - configured):
        type_ = name or "without a Type"
        yield Finding(False, f"GPUs {type_}: not in the settings, so they are not offered")


def _title(kind: GpuKind) -> str:
    return f"{kind.title} ({kind.name})" if kind.name else kind.title


def slurm_findings(login: LoginSettings, scheduler: Scheduler) -> Iterator[Finding]:
    """Whether Slurm answers the reader, and unusual settings."""
    questions: list[tuple[str, Callable[[], object]]] = [
        (f"{login.reader}@{login.host} reads the queue (squeue)", scheduler.jobs),
        ("Slurm's partitions (sinfo)", scheduler.partitions),
        ("Slurm's limits (sacctmgr, scontrol)", scheduler.limits),
        ("Slurm's accounting (sacct)", lambda: scheduler.ended(["1"])),
    ]
    for text, ask in questions:
        try:
            ask()
        except PortalError as error:
            yield Finding(False, f"{text}: {error}{_advice(login, error)}")
            if not (isinstance(error, RefusedError) or "permission denied" in error.text):
                return  # the other commands would fail in the same way
        else:
            yield Finding(True, text)
    try:
        limits, read_at = scheduler.limits(), now()
    except PortalError:
        return  # reported above
    try:
        nodes = scheduler.nodes()
    except PortalError:
        nodes = []
    yield from check_slurm(limits, nodes, read_at)


def _advice(login: LoginSettings, error: PortalError) -> str:
    """What to do if Slurm hides something from the reader (PrivateData)."""
    if "permission denied" not in error.text:
        return ""
    return f"; PrivateData hides it: give {login.reader} AdminLevel=Operator in sacctmgr"
