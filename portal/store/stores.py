"""All stores of the database, in one value."""

from __future__ import annotations

from functools import partial

from sqlalchemy import Engine

from portal.store.access import AccessStore
from portal.store.administration import AdministrationStore
from portal.store.attempts import AttemptStore
from portal.store.changes import ChangeStore
from portal.store.encryption import Sealer
from portal.store.figures import FigureStore
from portal.store.file_servers import FileServerStore
from portal.store.heartbeats import HeartbeatStore
from portal.store.hosts import HostStore
from portal.store.job_templates import JobTemplateStore
from portal.store.jobs.pages import JobPageStore
from portal.store.jobs.store import JobStore
from portal.store.logins import LoginStore
from portal.store.mail import MailStore
from portal.store.notices import NoticeStore
from portal.store.presets import PresetStore
from portal.store.reading import snapshot
from portal.store.registry_logins import RegistryLoginStore
from portal.store.samples import SampleStore
from portal.store.service_tokens import ServiceTokenStore
from portal.store.sessions import SessionStore
from portal.store.shares import ShareStore
from portal.store.status import StatusStore
from portal.store.submissions import SubmissionStore
from portal.store.usage_report import UsageStore


class Stores:
    """The database's stores, by subject."""

    def __init__(self, engine: Engine, sealer: Sealer) -> None:
        """`sealer` encrypts the values of environment variables."""
        self.sessions = SessionStore(engine, sealer)
        self.samples = SampleStore(engine)
        self.presets = PresetStore(engine, sealer)
        self.registry_logins = RegistryLoginStore(engine, sealer)
        self.jobs = JobStore(engine)
        self.job_pages = JobPageStore(engine)
        self.job_templates = JobTemplateStore(engine)
        self.submissions = SubmissionStore(engine)
        self.access = AccessStore(engine)
        self.files = FileServerStore(engine)
        self.shares = ShareStore(engine)
        self.logins = LoginStore(engine)
        self.service_tokens = ServiceTokenStore(engine)
        self.attempts = AttemptStore(engine)
        self.administration = AdministrationStore(engine)
        self.notices = NoticeStore(engine)
        self.mail = MailStore(engine)
        self.usage = UsageStore(engine)
        self.status = StatusStore(engine)
        self.heartbeats = HeartbeatStore(engine)
        self.figures = FigureStore(engine)
        self.hosts = HostStore(engine)
        self.changes = ChangeStore(engine)
        self.snapshot = partial(snapshot, engine)
        """Reads inside are one transaction of one state; nothing inside may wait for others."""
