"""Builds the real adapters and hands them to the story; used by the entry points alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from portal.adapters.catalog import FolderCatalog
from portal.adapters.certificates import CertificateAuthority
from portal.adapters.db.access import Doors
from portal.adapters.db.administration import RulesTable
from portal.adapters.db.attempts import AttemptTable
from portal.adapters.db.logins import LoginTable
from portal.adapters.db.presets import PresetTable
from portal.adapters.db.sessions import Store, open_database
from portal.adapters.encryption import Sealer
from portal.adapters.haproxy.routes import HaproxyRoutes
from portal.adapters.runner_client import GatewayRunners, resolve
from portal.adapters.slurm.client import Slurm
from portal.adapters.ssh.accounts import LoginNodeAccounts
from portal.adapters.ssh.home_files import HomeFiles
from portal.adapters.ssh.transport import PasswordCheck, SshTransport
from portal.config import Settings
from portal.core.job.description import Rules
from portal.services.admin.administration import Administration, caller_address
from portal.services.apps.apps import Access
from portal.services.apps.origins import AppPlaces
from portal.services.apps.proxy import Ways
from portal.services.apps.ssh import Ssh
from portal.services.apps.starter import Starts
from portal.services.auth.accounts import AccountWatch
from portal.services.auth.attempts import Attempts
from portal.services.auth.logins import Logins
from portal.services.container import Services
from portal.services.launch.presets import Presets
from portal.services.session.sessions import Sessions
from portal.services.storage import Folders


def now() -> datetime:
    """The real clock."""
    return datetime.now(UTC)


def wire(settings: Settings) -> Services:
    """Everything, as the settings say."""
    authority = CertificateAuthority(settings.state.ca_file(""))
    transport = SshTransport(settings.login, authority, settings.slurm.operator)
    engine = open_database(settings.state.database_url)
    sealer = Sealer(settings.state.keys)
    store, doors = Store(engine, sealer), Doors(engine)
    catalog = FolderCatalog(settings.sessions.apps, settings.sessions.images, doors.image_apps)
    administration = Administration(RulesTable(engine), store, now, settings.state.journal_days)
    origins = settings.web.origins
    access = Access(
        sessions=store,
        store=doors,
        ways=Ways(store, doors, HaproxyRoutes(settings.state.run), catalog),
        starts=Starts(doors, GatewayRunners(settings.state.ca_file("")), catalog, origins.url),
        places=AppPlaces(doors, origins, administration.rules, settings.web.port_rules, now),
        catalog=catalog,
        rules=administration.rules,
        is_admin=settings.slurm.admins.__contains__,
        clock=now,
        note=administration.note,
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
        access=access,
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
        store=LoginTable(engine),
        terms=terms,
        admins=settings.slurm.admins,
        clock=now,
        note=administration.note,
        shut=access.ways.shut,
        address=caller_address.get,
    )
    return Services(
        settings=settings,
        sessions=sessions,
        access=access,
        logins=logins,
        attempts=Attempts(AttemptTable(engine), terms, now, administration.note, caller_address),
        authenticate=PasswordCheck(settings.login, transport.uid),
        clock=now,
        folders=Folders(files, administration.note),
        presets=Presets(PresetTable(engine, sealer), now),
        administration=administration,
        ssh=Ssh(store, access, files, settings.web.ssh_host, administration.note),
        accounts=AccountWatch(
            accounts=LoginNodeAccounts(settings.login, authority, transport),
            logins=logins,
            access=access,
            sessions=store,
            clock=now,
            note=administration.note,
            checks=settings.login.account_checks,
        ),
    )


def _rules(settings: Settings) -> Rules:
    template = Path(settings.sessions.templates) / "job" / "session.sh.j2"
    return Rules(
        template=template.read_text(encoding="utf-8"),
        toolkit=settings.sessions.toolkit,
        directory=settings.sessions.directory,
        callback=settings.sessions.callback,
        gateway_ports=settings.sessions.gateway_ports,
        heartbeat_seconds=settings.sessions.heartbeat_seconds,
        storage=settings.sessions.storage,
        dotfiles=settings.sessions.dotfiles,
    )
