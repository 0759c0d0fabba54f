"""Login by OpenID Connect: the files with secret and accounts, and the provider's metadata."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from portal.adapters.oidc.metadata import Metadata
from portal.adapters.oidc.provider import CALLBACK, LOGGED_OUT
from portal.cli.checks.host import check_secret
from portal.cli.findings import Finding, warn
from portal.config import OidcSettings, Settings
from portal.core.auth.oidc import read_accounts
from portal.errors import Unavailable


def check_oidc(settings: Settings) -> Iterator[Finding]:
    """Check everything that login at the provider needs; nothing without a provider."""
    oidc = settings.oidc
    if not oidc.enabled:
        return
    yield from _secret(oidc)
    yield from _accounts(oidc)
    if oidc.claim == "email" and not oidc.require_verified_email:
        yield warn(
            "oidc.require_verified_email is off: whoever may enter any address may be anybody"
        )
    yield from _provider(oidc, settings.web.own_origin)


def _secret(oidc: OidcSettings) -> Iterator[Finding]:
    if not oidc.client_secret_file:
        yield warn(
            "oidc.client_secret_file is not set: the portal is a public client, without secret"
        )
        return
    yield from check_secret("oidc.client_secret_file", Path(oidc.client_secret_file))


def _accounts(oidc: OidcSettings) -> Iterator[Finding]:
    if not oidc.accounts_file:
        return
    file = Path(oidc.accounts_file)
    try:
        accounts = read_accounts(file.read_text(encoding="utf-8"))
        mode = file.stat().st_mode
    except (OSError, ValueError) as error:
        yield Finding(False, f"oidc.accounts_file {file}: {error}")
        return
    if mode & stat.S_IWOTH:
        yield Finding(
            False, f"oidc.accounts_file {file} can be written by everybody: chmod o-w {file}"
        )
    yield Finding(True, f"{len(accounts)} accounts in {file}")


def _provider(oidc: OidcSettings, portal: str) -> Iterator[Finding]:
    metadata = Metadata(oidc)
    try:
        published = metadata.get()
        for name in ("authorization_endpoint", "token_endpoint"):
            metadata.endpoint(name)
        metadata.keys()
    except Unavailable as error:
        cause = f": {error.__cause__}" if error.__cause__ else ""
        text = "its metadata is not valid, or oidc.issuer is not what it calls itself"
        yield Finding(False, f"OpenID provider {oidc.issuer}: {cause.removeprefix(': ') or text}")
        return
    yield Finding(
        True, f"OpenID provider {oidc.issuer}; to be registered there: {portal}{CALLBACK}"
    )
    methods = published.code_challenge_methods_supported
    if methods is not None and "S256" not in methods:
        yield Finding(False, f"{oidc.issuer} does not support PKCE with S256")
    if oidc.logout and not metadata.optional_endpoint("end_session_endpoint"):
        yield warn(
            "oidc.logout: the provider has no end_session_endpoint; users stay logged in there"
        )
    elif oidc.logout:
        yield Finding(True, f"and, for logging out: {portal}{LOGGED_OUT}")
