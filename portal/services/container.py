"""All that an entry point needs, wired once: the only place that knows every room."""

from __future__ import annotations

from dataclasses import dataclass

from portal.config import Settings
from portal.core.interfaces.systems import Authenticator, Clock
from portal.services.admin.administration import Administration
from portal.services.apps.apps import Apps
from portal.services.apps.gate import AppGate
from portal.services.apps.proxy import ProxyRoutes
from portal.services.apps.reports import AppReports
from portal.services.apps.ssh import SshAccess
from portal.services.apps.starter import AppStarter
from portal.services.auth.accounts import AccountWatch
from portal.services.auth.attempts import LoginAttempts
from portal.services.auth.logins import Logins
from portal.services.launch.presets import Presets
from portal.services.session.sessions import Sessions
from portal.services.storage import Storage


@dataclass(frozen=True)
class Services:
    """What the web layer works with; tests hand in their own."""

    settings: Settings
    sessions: Sessions
    apps: Apps
    gate: AppGate
    proxy: ProxyRoutes
    app_starter: AppStarter
    app_reports: AppReports
    logins: Logins
    attempts: LoginAttempts
    authenticate: Authenticator
    clock: Clock
    folders: Storage
    presets: Presets
    administration: Administration
    ssh: SshAccess
    accounts: AccountWatch
