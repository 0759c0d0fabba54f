"""Builds the real adapters and hands them to the story; used by the entry points alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from portal.access import Access
from portal.adapters.access_store import Doors
from portal.adapters.catalog import FolderCatalog
from portal.adapters.certificates import CertificateAuthority
from portal.adapters.preset_store import PresetTable
from portal.adapters.routes import HaproxyRoutes
from portal.adapters.rules_store import RulesTable
from portal.adapters.runners import GatewayRunners, resolve
from portal.adapters.slurm import HomeFiles, Slurm
from portal.adapters.store import Store, open_database
from portal.adapters.transport import PasswordCheck, SshTransport
from portal.administration import Administration
from portal.config import Settings
from portal.core.submission import Rules
from portal.folders import Folders
from portal.places import AppPlaces
from portal.presets import Presets
from portal.services import Services
from portal.sessions import Sessions
from portal.ssh import Ssh
from portal.starts import Starts
from portal.ways import Ways


def now() -> datetime:
    """The real clock."""
    return datetime.now(UTC)


def wire(settings: Settings) -> Services:
    """Everything, as the settings say."""
    authority = CertificateAuthority(settings.state.ca_file(""))
    transport = SshTransport(settings.login, authority)
    engine = open_database(settings.state.database_url)
    store, doors = Store(engine), Doors(engine)
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
    return Services(
        settings=settings,
        sessions=sessions,
        access=access,
        logins=doors,
        authenticate=PasswordCheck(settings.login),
        clock=now,
        folders=Folders(files, administration.note),
        presets=Presets(PresetTable(engine), now),
        administration=administration,
        ssh=Ssh(store, access, files, settings.web.ssh_host, administration.note),
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
