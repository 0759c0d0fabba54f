"""All that an entry point needs, wired once: the only place that knows every room."""

from __future__ import annotations

from dataclasses import dataclass

from portal.access import Access
from portal.accounts import AccountWatch
from portal.administration import Administration
from portal.attempts import Attempts
from portal.config import Settings
from portal.core.ports import Authenticator, Clock
from portal.folders import Folders
from portal.logins import Logins
from portal.presets import Presets
from portal.sessions import Sessions
from portal.ssh import Ssh


@dataclass(frozen=True)
class Services:
    """What the web layer works with; tests hand in their own."""

    settings: Settings
    sessions: Sessions
    access: Access
    logins: Logins
    attempts: Attempts
    authenticate: Authenticator
    clock: Clock
    folders: Folders
    presets: Presets
    administration: Administration
    ssh: Ssh
    accounts: AccountWatch
