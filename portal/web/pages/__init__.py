"""The pages, one package each, all on one blueprint."""

from __future__ import annotations

from portal.web.pages.account import notifications, registries, slurm_accounts
from portal.web.pages.account import views as account
from portal.web.pages.admin import nodes, notices, people, usage_report
from portal.web.pages.admin import views as admin
from portal.web.pages.apps import ssh, ssh_keys
from portal.web.pages.apps import views as apps
from portal.web.pages.blueprint import blueprint
from portal.web.pages.files import calls as file_calls
from portal.web.pages.files import shares as file_shares
from portal.web.pages.files import start as file_start
from portal.web.pages.files import views as files
from portal.web.pages.help import views as help_views
from portal.web.pages.jobs import detail as job_detail
from portal.web.pages.jobs import output as job_output
from portal.web.pages.jobs import script as job_script
from portal.web.pages.jobs import views as jobs
from portal.web.pages.jobs.compose import templates as job_templates
from portal.web.pages.jobs.compose import views as compose
from portal.web.pages.launch import folder_sizes, inside, presets
from portal.web.pages.launch import views as launch
from portal.web.pages.sessions import actions, detail, log
from portal.web.pages.sessions import views as sessions

__all__ = [
    "account",
    "actions",
    "admin",
    "apps",
    "blueprint",
    "compose",
    "detail",
    "file_calls",
    "file_shares",
    "file_start",
    "files",
    "folder_sizes",
    "help_views",
    "inside",
    "job_detail",
    "job_output",
    "job_script",
    "job_templates",
    "jobs",
    "launch",
    "log",
    "nodes",
    "notices",
    "notifications",
    "people",
    "presets",
    "registries",
    "sessions",
    "slurm_accounts",
    "ssh",
    "ssh_keys",
    "usage_report",
]
