"""Log-in by OpenID Connect: maps the provider's claims to an account of the cluster."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass

from portal.core.auth.logins import OIDC, Login, Proof
from portal.core.auth.oidc import (
    ATTEMPT_SECONDS,
    AccountRule,
    AuthorizationResponse,
    LoginAttempt,
    account_of,
    is_admin,
)
from portal.core.auth.person import hash_secret
from portal.core.interfaces.auth import Accounts, AccountsFile, IdentityProvider
from portal.core.interfaces.systems import Clock, RecordEvent
from portal.errors import Forbidden, PortalError, Unauthorized, visible
from portal.services.auth.logins import Logins
from portal.store.attempts import AttemptStore, Limit

USED = "This log-in was used before, or has expired. Please log in again."
_ONCE = 2 * ATTEMPT_SECONDS * 1000
"""Milliseconds for which a used state, or logout token, is remembered; longer than it is valid."""


@dataclass(frozen=True)
class ProviderTerms:
    """The site's rules of log-ins by OpenID Connect."""

    issuer: str
    rule: AccountRule
    minimum_uid: int
    reserved: Collection[str]
    """The portal's own accounts on the cluster, with which no person may log in."""
    logout: bool


class ProviderLogins:
    """Starts and finishes log-ins at the provider."""

    def __init__(
        self,
        *,
        provider: IdentityProvider,
        terms: ProviderTerms,
        accounts: Accounts,
        accounts_file: AccountsFile,
        attempts: AttemptStore,
        logins: Logins,
        clock: Clock,
        record: RecordEvent,
        count_refusal: Callable[[str], None],
    ) -> None:
        """`count_refusal` counts refused log-ins without a known account."""
        self._provider = provider
        self._terms = terms
        self._accounts = accounts
        self._accounts_file = accounts_file
        self._attempts = attempts
        self._logins = logins
        self._clock = clock
        self._record = record
        self._count_refusal = count_refusal

    def begin(self, target: str) -> tuple[str, LoginAttempt]:
        """The provider's address for the browser, and the attempt that it stores in a cookie.

        Raises Unavailable.
        """
        attempt = LoginAttempt(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            target=target,
            started=self._now() // 1000,
        )
        return self._provider.authorization_url(attempt), attempt

    def finish(self, attempt: LoginAttempt, answer: AuthorizationResponse) -> tuple[str, Proof]:
        """The account that the provider has authenticated, and the proof of that.

        Raises Unauthorized or Forbidden, which the audit log records, and Unavailable.
        """
        subject: list[str] = []
        try:
            return self._finish(attempt, answer, subject)
        except (Unauthorized, Forbidden) as error:
            if subject:
                detail = f"{OIDC}: {visible(subject[0])}: {error.text}"
                self._record("", "login.refused", "", detail)
            else:
                self._count_refusal("")
            raise

    def _finish(
        self, attempt: LoginAttempt, answer: AuthorizationResponse, subject: list[str]
    ) -> tuple[str, Proof]:
        self._use_once("state", attempt.state)
        age = self._now() // 1000 - attempt.started
        if answer.state != attempt.state or not 0 <= age <= ATTEMPT_SECONDS:
            raise Unauthorized(USED)
        redeemed = self._provider.redeem(answer, attempt)
        subject.append(redeemed.claims["sub"])
        user = account_of(redeemed.claims, self._terms.rule, self._accounts_file())
        admin = is_admin(redeemed.claims, self._terms.rule)
        self._check_account(user)
        sid = redeemed.claims.get("sid")
        proof = Proof(
            method=OIDC,
            issuer=self._terms.issuer,
            subject=subject[0],
            sid=sid if isinstance(sid, str) else "",
            admin=admin,
            id_token=redeemed.id_token,
        )
        return user, proof

    def _check_account(self, user: str) -> None:
        """Raise Forbidden unless it is a person's account that may log in at the login node."""
        refused = f"The account “{user[:64]}” does not exist on the cluster, or may not be used."
        if user in self._terms.reserved:
            raise Forbidden(refused)
        # Names without an account, or spelled in another case, have no identity.
        identity = self._accounts.identity(user)
        if identity is None or identity.uid < self._terms.minimum_uid:
            raise Forbidden(refused)
        if not self._accounts.standing(user).may_log_in:
            raise Forbidden(refused)

    def _use_once(self, kind: str, value: str) -> Limit:
        once = Limit(f"{OIDC} {kind} {hash_secret(value)}", _ONCE, 1)
        if self._attempts.take(once, self._now()):
            raise Unauthorized(USED)
        return once

    def logout_url(self, login: Login) -> str:
        """The provider's address for logging out there as well; "" if that is off or impossible."""
        ours = (login.method, login.issuer) == (OIDC, self._terms.issuer)
        if not self._terms.logout or not ours:
            return ""
        try:
            return self._provider.logout_url(login.id_token)
        except PortalError:
            return ""  # its cause is in the portal's log

    def end_session(self, token: str) -> int:
        """Revoke the logins that a logout token names; their number.

        Raises Unauthorized for an invalid or repeated token, and Unavailable.
        """
        notice = self._provider.read_logout(token)
        used = self._use_once("logout", notice.id)
        try:
            return self._logins.revoke_provided(self._terms.issuer, notice.subject, notice.session)
        except Exception:
            self._attempts.give_back(used)  # the provider may repeat what failed
            raise

    def _now(self) -> int:
        return int(self._clock().timestamp() * 1000)
