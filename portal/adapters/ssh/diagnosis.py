"""Finds out step by step why the portal cannot log in to the login node."""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import paramiko
from paramiko.hostkeys import HostKeys, InvalidHostKey

from portal.adapters.certificates import CLOCK_SKEW, CertificateAuthority
from portal.adapters.ssh.command import execute
from portal.adapters.ssh.connect import CONNECT_SECONDS, open_transport
from portal.config import LoginSettings
from portal.core.account_names import is_safe

ANYWHERE = "0.0.0.0/0,::/0"
_LIFE = timedelta(minutes=1)
_ANY_CLOCK = timedelta(days=2)
"""Validity before and after now: clocks that differ by more are not recognised."""
_SECONDS = 10.0
_MAX_OTHERS = 3


def connection_problem(login: LoginSettings) -> str:
    """The reason why there is no trusted connection to the login node; "" if there is one."""
    endpoint = f"login.host {login.host}, port {login.port}"
    try:
        HostKeys(login.known_hosts)
    except OSError as error:
        text = f"{login.known_hosts}: {error.strerror}; write the login node's host key there"
        return f"{text} (ssh-keyscan {_scan(login)}, then compare)"
    except InvalidHostKey as error:
        return f"{login.known_hosts} has a line that is not a host key: {error.line}"
    try:
        socket.create_connection((login.host, login.port), CONNECT_SECONDS).close()
    except (OSError, UnicodeError) as error:
        return f"{endpoint}: {_unreachable(error)}"
    try:
        open_transport(login).close()
    except paramiko.BadHostKeyException as error:
        return _changed(login, error.key, [error.expected_key])
    except (paramiko.SSHException, OSError, EOFError) as error:
        return _not_trusted(login, error, endpoint)
    return ""


def _scan(login: LoginSettings) -> str:
    return login.host if login.port == 22 else f"-p {login.port} {login.host}"


def _unreachable(error: Exception) -> str:
    if isinstance(error, socket.gaierror | UnicodeError):
        return "there is no such name (DNS, /etc/hosts)"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there (connection refused): is sshd running, is the port right?"
    if isinstance(error, TimeoutError):
        return f"no answer in {CONNECT_SECONDS:.0f} s (timed out): a firewall, or a wrong address"
    if isinstance(error, OSError) and error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return "there is no route to it from this machine"
    return str(error)


def _not_trusted(login: LoginSettings, error: Exception, endpoint: str) -> str:
    """The reason why the connection failed before authentication."""
    key = _host_key(login)
    if key is None:
        reason = str(error) or type(error).__name__
        return (
            f"{endpoint}: what answers there does not speak SSH, or ends the connection "
            f"({reason}), as sshd does beyond MaxStartups, and for addresses in its "
            "PerSourcePenalties"
        )
    name = login.host if login.port == 22 else f"[{login.host}]:{login.port}"
    listed = HostKeys(login.known_hosts).lookup(name)
    if listed:
        return _changed(login, key, list(listed.values()))
    return (
        f"{login.known_hosts} has no key for {name}, whose {key.get_name()} key is "
        f"{fingerprint(key)}: compare it with the one that the login node itself shows "
        f"(ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub), then add it (ssh-keyscan {_scan(login)})"
    )


def _changed(login: LoginSettings, shown: paramiko.PKey, expected: Sequence[paramiko.PKey]) -> str:
    listed = ", ".join(f"{fingerprint(key)} ({key.get_name()})" for key in expected)
    return (
        f"THE HOST KEY OF {login.host} DIFFERS from {login.known_hosts}: it shows "
        f"{fingerprint(shown)} ({shown.get_name()}), the file has {listed}. Either the login node "
        "was installed anew, or somebody stands between it and the portal and would get people's "
        "passwords. Nobody can log in meanwhile. Compare on the login node itself "
        "(ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub) before you change the file"
    )


def _host_key(login: LoginSettings) -> paramiko.PKey | None:
    """The key that the host shows, which is not trusted; None without SSH."""
    try:
        with socket.create_connection((login.host, login.port), CONNECT_SECONDS) as sock:
            transport = paramiko.Transport(sock)
            try:
                transport.start_client(timeout=_SECONDS)
                return transport.get_remote_server_key()
            finally:
                transport.close()
    except (paramiko.SSHException, OSError, EOFError):
        return None


def fingerprint(key: paramiko.PKey) -> str:
    """A key's fingerprint as ssh-keygen -l prints it."""
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    return f"SHA256:{digest}"


def login_problem(
    login: LoginSettings, authority: CertificateAuthority, ca: Path, others: Sequence[str]
) -> str:
    """The reason why the reader's certificate is refused; "" if it is accepted.

    `others`: further accounts, to tell a missing reader from an authority that is not trusted.
    """
    reader = login.reader
    if not is_safe(reader):
        return f"login.reader {reader!r} is not an account name"
    accepted, methods = _log_in(login, authority, reader, login.source_address)
    if accepted:
        return ""
    if methods and "publickey" not in methods:
        return (
            f"sshd on {login.host} offers {', '.join(methods)} only: set PubkeyAuthentication yes "
            "in its sshd_config, and reload it"
        )
    if (address := _observed_address(login, authority, reader)) is not None:
        origin = login.source_address or "this machine's own address"
        return (
            f"{reader}@{login.host} is refused from {origin}, as certificates are restricted to "
            f"it: the login node sees the portal as {address}; set "
            f'login.source_address = "{address}"'
        )
    if (difference := _clock_difference(login, authority, reader)) is not None:
        ahead = f"{abs(difference) / 60:.0f} minutes {'ahead of' if difference > 0 else 'behind'}"
        return (
            f"the clocks differ: this machine's is {ahead} {login.host}'s, which therefore refuses "
            "the portal's certificates; synchronise both (chrony, systemd-timesyncd)"
        )
    for account in others[:_MAX_OTHERS]:
        if is_safe(account) and _log_in(login, authority, account, ANYWHERE)[0]:
            return (
                f"sshd trusts the portal's certificates ({account} can log in), but not for "
                f"login.reader {reader}: is there such an account on {login.host}, with a shell, "
                "not locked, and permitted by AllowUsers, AllowGroups and pam_access?"
            )
    return (
        f"sshd on {login.host} refuses the portal's certificate for {reader}. Either it does not "
        f"trust the portal's authority: TrustedUserCAKeys must name a file with the line of {ca} "
        f"({_ca_fingerprint(ca)}), and sshd be reloaded; or there is no account {reader}, or it "
        "may not log in (AllowUsers, AllowGroups, a locked account). sshd's log there says which: "
        "journalctl -u ssh -u sshd"
    )


def _ca_fingerprint(ca: Path) -> str:
    with suppress(OSError, IndexError, ValueError):
        digest = hashlib.sha256(base64.b64decode(ca.read_text().split()[1])).digest()
        return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"
    return "unreadable"


def _log_in(
    login: LoginSettings, authority: CertificateAuthority, user: str, source: str
) -> tuple[bool, list[str]]:
    """Whether a certificate for this address is accepted; if not, the methods that sshd offers."""
    try:
        transport = open_transport(login)
    except (paramiko.SSHException, OSError, EOFError):
        return False, []
    try:
        _authenticate(transport, authority, user, source)
    except paramiko.BadAuthenticationType as error:
        return False, list(error.allowed_types)
    except (paramiko.SSHException, OSError, EOFError):
        return False, []
    else:
        return transport.is_authenticated(), []
    finally:
        transport.close()


def _authenticate(
    transport: paramiko.Transport,
    authority: CertificateAuthority,
    user: str,
    source: str,
    times: tuple[timedelta, timedelta] = (_LIFE, CLOCK_SKEW),
) -> None:
    assert isinstance(transport.sock, socket.socket)  # noqa: S101  # open_transport created it
    source = source or str(transport.sock.getsockname()[0])
    private, certificate = authority.sign_user(user, times[0], source, times[1])
    key = paramiko.Ed25519Key.from_private_key(io.StringIO(private))
    key.load_certificate(certificate)
    transport.auth_timeout = _SECONDS
    transport.auth_publickey(user, key)


def _observed_address(
    login: LoginSettings, authority: CertificateAuthority, user: str
) -> str | None:
    """The portal's address as the login node sees it, by a certificate without a fixed address.

    None if that certificate is refused as well. It is valid for a minute, and the key stays in
    this process.
    """
    command = "exec printenv SSH_CONNECTION"
    words = _command_output(login, authority, user, ANYWHERE, (_LIFE, CLOCK_SKEW), command)
    if words is None:
        return None
    return words[0] if words and all(c in "0123456789abcdef.:" for c in words[0]) else "another"


def _clock_difference(
    login: LoginSettings, authority: CertificateAuthority, user: str
) -> float | None:
    """Seconds by which this clock is ahead, by a certificate that is valid now by any clock.

    None if that certificate is refused as well. The key stays in this process.
    """
    times = (_ANY_CLOCK, _ANY_CLOCK)
    words = _command_output(login, authority, user, login.source_address, times, "exec date +%s")
    return time.time() - int(words[0]) if words and words[0].isdecimal() else None


def _command_output(
    login: LoginSettings,
    authority: CertificateAuthority,
    user: str,
    source: str,
    times: tuple[timedelta, timedelta],
    command: str,
) -> list[str] | None:
    """The words that a command prints, run with this certificate; None if it is refused."""
    try:
        transport = open_transport(login)
    except (paramiko.SSHException, OSError, EOFError):
        return None
    try:
        _authenticate(transport, authority, user, source, times)
        channel = transport.open_session(timeout=_SECONDS)
        channel.settimeout(_SECONDS)
        execute(channel, command, time.monotonic() + _SECONDS)
        return channel.recv(1000).decode(errors="replace").split()
    except (paramiko.SSHException, OSError, EOFError):
        return None
    finally:
        transport.close()
