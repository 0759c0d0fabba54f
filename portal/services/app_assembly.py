"""Builds the services of apps, and of logins, with which apps' routes are cut."""

from __future__ import annotations

from functools import cached_property

from portal.services.admin.administration import caller_address
from portal.services.apps.apps import Apps
from portal.services.apps.control import AppControl
from portal.services.apps.gate import AppGate
from portal.services.apps.host_agent import HostAgent, agent_of, hosts_of
from portal.services.apps.origins import AppOrigins
from portal.services.apps.proxy import ProxyRoutes
from portal.services.apps.reports import AppReports
from portal.services.apps.ssh import SshAccess
from portal.services.apps.starter import AppStarter
from portal.services.auth.accounts import AccountWatch
from portal.services.auth.logins import Logins
from portal.services.auth_assembly import AuthAssembly
from portal.services.job_control import JobControl
from portal.services.owner_queue import SessionQueue


class AppAssembly(AuthAssembly):
    """Builds each service once."""

    @cached_property
    def job_control(self) -> JobControl:
        return JobControl(self._systems.scheduler, self._run_for_owner)

    @cached_property
    def session_queue(self) -> SessionQueue:
        return SessionQueue(self._run_for_owner, self._stores.sessions)

    # Apps

    @cached_property
    def proxy(self) -> ProxyRoutes:
        stores = self._stores
        files, hosts = self.file_servers.expected_routes, hosts_of(self._settings.state, stores)
        return ProxyRoutes(
            stores.sessions, stores.access, self._systems.routes, self._catalog, files, hosts
        )

    @cached_property
    def host_agent(self) -> HostAgent | None:
        return agent_of(self._settings.state, self._systems, self.proxy)

    @cached_property
    def app_starter(self) -> AppStarter:
        origin = self._settings.web.origins.url
        systems, access = self._systems, self._stores.access
        return AppStarter(access, systems.runners, self._catalog, origin, self._hub_env)

    def _hub_env(self, session: str) -> dict[str, str]:
        """The variables of JupyterHub's server, with the portal's address for its windows."""
        sessions = f"{self._settings.web.public_url.rstrip('/')}/sessions"
        return self._stores.sessions.hub_env(session) | {"SLIPWAY_SESSIONS": sessions}

    @cached_property
    def apps(self) -> Apps:
        web = self._settings.web
        return Apps(
            sessions=self._stores.sessions,
            store=self._stores.access,
            proxy=self.proxy,
            starter=self.app_starter,
            origins=AppOrigins(
                self._stores.access,
                web.origins,
                self.administration.site_rules,
                web.port_rules,
                self._clock,
            ),
            catalog=self._catalog,
            site_rules=self.administration.site_rules,
            clock=self._clock,
            record=self.administration.record,
            new_event=self.administration.new_event,
        )

    @cached_property
    def app_control(self) -> AppControl:
        return AppControl(
            self.apps,
            self._stores.access,
            self.app_starter,
            self.proxy,
            self._catalog,
            self.administration.record,
        )

    @cached_property
    def gate(self) -> AppGate:
        return AppGate(self._stores.access, self.proxy, self._catalog, self._clock)

    @cached_property
    def app_reports(self) -> AppReports:
        parts = (self._stores.access, self.proxy, self._catalog)
        return AppReports(*parts, self.logins.may_administer)

    @cached_property
    def ssh(self) -> SshAccess:
        return SshAccess(
            self.apps,
            self._stores.sessions,
            self._systems.files,
            self._settings.web.ssh_host,
            self.administration.record,
        )

    # Logins

    @cached_property
    def logins(self) -> Logins:
        return Logins(
            store=self._stores.logins,
            terms=self._settings.web.login_terms,
            administrators=self.administrators,
            admin_issuer=self._settings.oidc.admin_issuer,
            clock=self._clock,
            record=self.administration.record,
            revoke_routes=self.proxy.revoke,
            address=caller_address.get,
        )

    @cached_property
    def account_watch(self) -> AccountWatch:
        return AccountWatch(
            accounts=self._systems.accounts,
            logins=self.logins,
            login_store=self._stores.logins,
            apps=self.apps,
            sessions=self._stores.sessions,
            clock=self._clock,
            record=self.administration.record,
            checks=self._settings.login.account_checks,
        )
