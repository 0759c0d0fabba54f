"""The connection to the login node: its host key, and the login of the portal's account."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from portal.adapters.certificates import CertificateAuthority
from portal.adapters.ssh.diagnosis import connection_problem, login_problem
from portal.adapters.ssh.transport import Transport
from portal.cli.findings import Finding
from portal.config import LoginSettings, Settings
from portal.errors import PortalError


def check_connection(settings: Settings) -> Iterator[Finding]:
    """Check each login node; the first failure ends the checks of a node."""
    for host in settings.login.all_hosts:
        yield from _check_host(settings, settings.login.at(host))


def _check_host(settings: Settings, login: LoginSettings) -> Iterator[Finding]:
    if problem := connection_problem(login):
        yield Finding(False, problem)
        return
    yield Finding(True, f"{login.host} has the host key in {login.known_hosts}")
    ca = settings.state.ca_file("user_ca.pub")
    others = [name for name in (settings.slurm.operator, *settings.slurm.admins) if name]
    if problem := login_problem(login, CertificateAuthority(ca.parent), ca, others):
        yield Finding(False, problem)


def check_admin_groups(
    groups: Sequence[str], reader: str, transport: Transport
) -> Iterator[Finding]:
    """Whether the login node knows the groups of administrators."""
    for group in groups:
        try:
            result = transport.run(reader, ["getent", "group", "--", group])
        except PortalError as error:
            yield Finding(False, f"slurm.admin_groups: {error.text}")
            return
        text = f"slurm.admin_groups: the login node knows the group {group}"
        if result.code != 0:
            text = f"slurm.admin_groups: the login node has no group {group} (getent group)"
        yield Finding(result.code == 0, text)
