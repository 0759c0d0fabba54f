"""The database's tables. They do not validate: values are validated before they are stored."""

from portal.adapters.db.tables.admin import ImageRuleRow, JournalRow, SiteRuleRow
from portal.adapters.db.tables.apps import (
    AppRow,
    EndedAppRow,
    GrantRow,
    ImageAppsRow,
    OriginRow,
    PendingRemovalRow,
    TicketRow,
)
from portal.adapters.db.tables.auth import (
    AccountRow,
    AttemptRow,
    KnownNetworkRow,
    LoginRow,
    RefusalRow,
    ServiceTokenRow,
    ServiceUseRow,
)
from portal.adapters.db.tables.cluster import ClusterNodesRow, ClusterRow, HeartbeatRow
from portal.adapters.db.tables.columns import MountList, UtcDateTime, WordTuple
from portal.adapters.db.tables.compose import JobTemplateRow, SubmissionRow
from portal.adapters.db.tables.files import FileServerRow, FolderShareRow
from portal.adapters.db.tables.hosts import HostRow, LeaseRow, RemovedRow
from portal.adapters.db.tables.job_pages import JobReadingRow, JobUsageRow
from portal.adapters.db.tables.jobs import JobHistoryRow, JobRow, JobTextRow
from portal.adapters.db.tables.launch import PresetRow, RegistryLoginRow, TemplateRow
from portal.adapters.db.tables.notices import AnnouncementRow
from portal.adapters.db.tables.session import (
    LaunchKeyRow,
    SampleRow,
    SessionEnvRow,
    SessionRow,
)

__all__ = [
    "AccountRow",
    "AnnouncementRow",
    "AppRow",
    "AttemptRow",
    "ClusterNodesRow",
    "ClusterRow",
    "EndedAppRow",
    "FileServerRow",
    "FolderShareRow",
    "GrantRow",
    "HeartbeatRow",
    "HostRow",
    "ImageAppsRow",
    "ImageRuleRow",
    "JobHistoryRow",
    "JobReadingRow",
    "JobRow",
    "JobTemplateRow",
    "JobTextRow",
    "JobUsageRow",
    "JournalRow",
    "KnownNetworkRow",
    "LaunchKeyRow",
    "LeaseRow",
    "LoginRow",
    "MountList",
    "OriginRow",
    "PendingRemovalRow",
    "PresetRow",
    "RefusalRow",
    "RegistryLoginRow",
    "RemovedRow",
    "SampleRow",
    "ServiceTokenRow",
    "ServiceUseRow",
    "SessionEnvRow",
    "SessionRow",
    "SiteRuleRow",
    "SubmissionRow",
    "TemplateRow",
    "TicketRow",
    "UtcDateTime",
    "WordTuple",
]
