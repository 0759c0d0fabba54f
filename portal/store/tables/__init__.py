"""The database's tables. They do not validate: values are validated before they are stored."""

from portal.store.tables.admin import AnnouncementRow, AuditRow, ImageRuleRow, SiteRuleRow
from portal.store.tables.apps import (
    AppRow,
    EndedAppRow,
    GrantRow,
    ImageAppsRow,
    OriginRow,
    PendingRemovalRow,
    TicketRow,
)
from portal.store.tables.auth import (
    AccountRow,
    AttemptRow,
    KnownNetworkRow,
    LoginRow,
    RefusalRow,
    ServiceTokenRow,
    ServiceUseRow,
)
from portal.store.tables.changes import ChangeCountRow
from portal.store.tables.cluster import ClusterNodesRow, ClusterRow, HeartbeatRow, NodeRow
from portal.store.tables.columns import MountList, UtcDateTime, WordTuple
from portal.store.tables.files import FileServerRow, FolderShareRow
from portal.store.tables.hosts import HostRow, LeaseRow, RemovedRow
from portal.store.tables.jobs import (
    CountedTasksRow,
    JobHistoryRow,
    JobReadingRow,
    JobRow,
    JobTemplateRow,
    JobTextRow,
    JobUsageRow,
    SubmissionRow,
)
from portal.store.tables.launch import PresetRow, RegistryLoginRow, TemplateRow
from portal.store.tables.mail import MailChoiceRow, MessageRow
from portal.store.tables.session import (
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
    "AuditRow",
    "ChangeCountRow",
    "ClusterNodesRow",
    "ClusterRow",
    "CountedTasksRow",
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
    "KnownNetworkRow",
    "LaunchKeyRow",
    "LeaseRow",
    "LoginRow",
    "MailChoiceRow",
    "MessageRow",
    "MountList",
    "NodeRow",
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
