"""Builds the real adapters and hands them to the story; used by the entry points alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from portal.adapters.catalog import FolderCatalog
from portal.adapters.certificates import CertificateAuthority
from portal.adapters.db.access import AccessTables
from portal.adapters.db.administration import AdministrationTables
from portal.adapters.db.attempts import AttemptTables
from portal.adapters.db.logins import LoginTables
from portal.adapters.db.presets import PresetTables
from portal.adapters.db.sessions import SessionTables, open_database
from portal.adapters.encryption import Sealer
from portal.adapters.haproxy.routes import HaproxyRoutes
from portal.adapters.runner_client import GatewayRunners, resolve
from portal.adapters.slurm.client import Slurm
from portal.adapters.ssh.accounts import LoginNodeAccounts
from portal.adapters.ssh.home_files import HomeFiles
from portal.adapters.ssh.transport import PasswordCheck, SshTransport
from portal.config import Settings
from portal.core.job.description import JobSettings
from portal.services.admin.administration import Administration, caller_address
from portal.services.apps.apps import Apps
from portal.services.apps.gate import AppGate
from portal.services.apps.origins import AppOrigins
from portal.services.apps.proxy import ProxyRoutes
from portal.services.apps.reports import AppReports
from portal.services.apps.ssh import SshAccess
from portal.services.apps.starter import AppStarter
from portal.services.auth.accounts import AccountWatch
from portal.services.auth.attempts import LoginAttempts
from portal.services.auth.logins import Logins
from portal.services.container import Services
from portal.services.launch.presets import Presets
from portal.services.session.sessions import Sessions
from portal.services.storage import Storage


def now() -> datetime:
    """The real clock."""
    return datetime.now(UTC)


def wire(settings: Settings) -> Services:
    """Everything, as the settings say."""
    authority = CertificateAuthority(settings.state.ca_file(""))
    transport = SshTransport(settings.login, authority, settings.slurm.operator)
    engine = open_database(settings.state.database_url)
    sealer = Sealer(settings.state.keys)
    store, doors = SessionTables(engine, sealer), AccessTables(engine)
    catalog = FolderCatalog(settings.sessions.apps, settings.sessions.images, doors.image_apps)
    administration = Administration(
        AdministrationTables(engine), store, now, settings.state.journal_days
    )
    origins = settings.web.origins
    proxy = ProxyRoutes(store, doors, HaproxyRoutes(settings.state.run), catalog)
    app_starter = AppStarter(
        doors, GatewayRunners(settings.state.ca_file("")), catalog, origins.url
    )
    app_reports = AppReports(doors, proxy, catalog, settings.slurm.admins.__contains__)
    apps = Apps(
        sessions=store,
        store=doors,
        proxy=proxy,
        starter=app_starter,
        origins=AppOrigins(doors, origins, administration.site_rules, settings.web.port_rules, now),
        catalog=catalog,
        site_rules=administration.site_rules,
        clock=now,
        record=administration.record,
        new_event=administration.new_event,
    )
    directory = settings.sessions.directory
    files = HomeFiles(transport, directory, settings.sessions.storage)
    sessions = Sessions(
        store=store,
        status=store,
        scheduler=Slurm(
            transport,
            settings.login.reader,
            directory,
            settings.slurm.command_seconds,
            settings.slurm.operator,
        ),
        files=files,
        certificates=authority,
        apps=apps,
        app_reports=app_reports,
        app_starter=app_starter,
        proxy=proxy,
        resolve=resolve,
        catalog=catalog,
        clock=now,
        rules=_rules(settings),
        administration=administration,
        gpus=settings.gpu.gpus,
        extend_minutes=settings.slurm.extend_minutes,
    )
    terms = settings.web.login_terms
    logins = Logins(
        store=LoginTables(engine),
        terms=terms,
        admins=settings.slurm.admins,
        clock=now,
        note=administration.record,
        shut=proxy.revoke,
        address=caller_address.get,
    )
    return Services(
        settings=settings,
        sessions=sessions,
        apps=apps,
        gate=AppGate(doors, proxy, catalog, now),
        proxy=proxy,
        app_starter=app_starter,
        app_reports=app_reports,
        logins=logins,
        attempts=LoginAttempts(
            AttemptTables(engine), terms, now, administration.record, caller_address
        ),
        authenticate=PasswordCheck(settings.login, transport.uid),
        clock=now,
        folders=Storage(files, administration.record),
        presets=Presets(PresetTables(engine, sealer), now),
        administration=administration,
        ssh=SshAccess(apps, files, settings.web.ssh_host, administration.record),
        accounts=AccountWatch(
            accounts=LoginNodeAccounts(settings.login, authority, transport),
            logins=logins,
            apps=apps,
            sessions=store,
            clock=now,
            note=administration.record,
            checks=settings.login.account_checks,
        ),
    )


def _rules(settings: Settings) -> JobSettings:
    template = Path(settings.sessions.templates) / "job" / "session.sh.j2"
    return JobSettings(
        template=template.read_text(encoding="utf-8"),
        toolkit=settings.sessions.toolkit,
        directory=settings.sessions.directory,
        callback=settings.sessions.callback,
        gateway_ports=settings.sessions.gateway_ports,
        heartbeat_seconds=settings.sessions.heartbeat_seconds,
        storage=settings.sessions.storage,
        dotfiles=settings.sessions.dotfiles,
    )
