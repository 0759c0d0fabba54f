"""`slipway check --session`: chooses user, image and partitions, and runs the probes."""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial

from portal.adapters.certificates import CertificateAuthority
from portal.adapters.runner_client import resolve
from portal.adapters.slurm.client import Slurm
from portal.adapters.ssh.home_files import HomeFiles
from portal.adapters.ssh.transport import SshTransport, Transport
from portal.cli.checks.connection import check_connection
from portal.cli.checks.host import check_keys
from portal.cli.checks.places import check_templates
from portal.cli.checks.session import SessionCheck, Site
from portal.cli.findings import Finding
from portal.config import Settings
from portal.core.launch.own_image import OWN
from portal.errors import PortalError
from portal.wiring import real_systems

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end the check like Ctrl-C, which cancels its jobs."""


def try_sessions(settings: Settings, user: str) -> Generator[Finding, None, None]:
    """Test a session's start as this user, in each partition; "": the first administrator."""
    person = user or next(iter(settings.slurm.admins), "")
    if not person:
        text = "slurm.admins names nobody: say as whom, `slipway check --session USER`"
        yield Finding(False, text)
        return
    findings = [*check_templates(settings), check_keys(settings)]
    if all(finding.ok for finding in findings):
        findings += check_connection(settings)
    if failed := [finding for finding in findings if not finding.ok]:
        yield from failed
        return
    systems = real_systems(settings)
    images = [image for image in systems.catalog().images if image.environment != OWN]
    if not images:
        yield Finding(False, f"there is no image in {settings.sessions.images} to try it with")
        return
    authority = CertificateAuthority(settings.state.ca_file(""))
    transport = SshTransport(settings.login, authority, settings.slurm.operator)
    directory = settings.sessions.directory
    slurm = Slurm(
        transport,
        settings.login.reader,
        directory,
        settings.slurm.command_seconds,
        settings.slurm.operator,
    )
    files = HomeFiles(transport, directory, settings.sessions.storage)
    try:
        partitions = slurm.limits().partitions
    except PortalError as error:
        yield Finding(False, f"Slurm's partitions: {error.text}")
        return
    site = Site(
        scheduler=slurm,
        read_log=files.log_tail,
        remove=partial(remove, transport, directory),
        resolve=resolve,
        rules=systems.job_settings,
        image=images[0].path,
        callback_ca=authority.server_ca(),
        client_ca=authority.client_ca(),
    )
    with ended_by_signals():
        yield from SessionCheck(site, person).run(partitions)


def remove(transport: Transport, directory: str, user: str, name: str) -> None:
    """Remove a probe's folder and log from the user's home."""
    paths = [f"{directory}/logs/{name}.log", f"{directory}/sessions/{name}"]
    transport.run(user, ["rm", "-rf", "--", *paths])


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Make signals end the check like Ctrl-C; during the cleanup they are ignored."""

    def stop(_number: int, _frame: object) -> None:
        for number in (*SIGNALS, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (*SIGNALS, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
