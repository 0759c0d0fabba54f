"""Builds the log-in by OpenID Connect from the site's settings."""

from __future__ import annotations

from portal.config import Settings
from portal.services.admin.administration import Administration
from portal.services.auth.attempts import LoginAttempts
from portal.services.auth.logins import Logins
from portal.services.auth.provider_logins import ProviderLogins, ProviderTerms
from portal.services.systems import Systems


def build_provider_logins(
    systems: Systems,
    settings: Settings,
    logins: Logins,
    administration: Administration,
    attempts: LoginAttempts,
) -> ProviderLogins | None:
    """The log-in by OpenID Connect; None where the site has no provider."""
    if systems.identity_provider is None:
        return None
    login, oidc = settings.login, settings.oidc
    return ProviderLogins(
        provider=systems.identity_provider,
        terms=ProviderTerms(
            issuer=oidc.issuer,
            rule=oidc.rule,
            minimum_uid=login.minimum_uid,
            reserved=frozenset({login.reader, settings.slurm.operator}),
            logout=oidc.logout,
        ),
        accounts=systems.accounts,
        accounts_file=systems.accounts_file,
        attempts=systems.stores.attempts,
        logins=logins,
        clock=systems.clock,
        record=administration.record,
        count_refusal=attempts.refused,
    )
