"""Which tests run on which kind of cluster, and in which order.

There are two kinds of clusters: apps at subdomains over https, and apps at ports over http. Attacks
run on a cluster of each kind. For all other tests, and for the attacks in ONCE, the kind makes no
difference: `--share 1/2` gives the first of two kinds its half of them. The longest files come
first.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent

# A file of tests/attack, or a test in it, and what it covers other than app addresses.
ONCE = {
    "test_bad_inputs": "what the API and the forms take, at the portal's own address",
    "test_choices": "which accounts, QOS and reservations the forms and the API name",
    "test_file_servers": "file servers, at the portal's own address",
    "test_files": "files, at the portal's own address",
    "test_forged_addresses": "clients' addresses, at the portal's own address",
    "test_gpu_root": "root's side of GPUs on a node",
    "test_hidden_images": "images by other names, at the portal's own address and on nodes",
    "test_hostile_runner": "a runner's answers to the portal, inside the cluster",
    "test_hostile_shell": "the shell on the login node",
    "test_hub": "JupyterHub, which is at an address of its own on either kind",
    "test_hub_impostor": "a program in the place of a server, behind JupyterHub's proxy",
    "test_hub_login": "JupyterHub's log-in, at an address of its own on either kind",
    "test_hub_node": "JupyterHub's servers on a node, and their way from the proxy",
    "test_image_claims": "what a runner says about its image",
    "test_job_numbers": "what sbatch prints",
    "test_jobs": "others' jobs, at the portal's own address",
    "test_jobs_composer": "requests to submit jobs, at the portal's own address",
    "test_jobs_floods": "what shells print about jobs, and long requests",
    "test_jobs_node": "batch jobs on a node",
    "test_jobs_output": "files in users' homes",
    "test_jobs_texts": "what Slurm's commands print of jobs",
    "test_keys": "private keys in a session's files",
    "test_login_limits": "tries at passwords, from the machines of the cluster",
    "test_login_node": "sshd on the login node",
    "test_logs": "log files in users' homes",
    "test_more_time": "Slurm's time limits",
    "test_neighbour": "processes and files on a node",
    "test_own_images": "images in users' folders, which jobs open on a node",
    "test_secrets": "the key that the database is encrypted with",
    "test_service_tokens": "the API, at the portal's own address",
    "test_shared_folder": "files, at the portal's own address and on the login node",
    "test_shares": "files, at the portal's own address",
    "test_sockets": "Unix sockets on the portal's machine",
    "test_solid_addresses": "pages and operations, at the portal's own address",
    "test_solid_callbacks": "the runners' own port of the portal, inside the cluster",
    # HAProxy logs on either kind: test_no_daemon_logs_a_secret.
    "test_solid_canaries::test_bob_sees_no_secret": "what another user reads on a machine",
    "test_solid_canaries::test_no_process_has_a_secret_in_its_arguments": "processes",
    "test_solid_canaries::test_no_secret_is_logged_as_json_with_all_details": "how the portal logs",
    "test_solid_canaries::test_the_accounting_database_has_no_secret": "Slurm's accounting",
    "test_solid_canaries::test_the_portals_database_has_no_credentials": "the portal's database",
    "test_solid_canaries::test_the_sessions_own_log_has_no_secret": "what a session logs",
    "test_solid_gpu": "Slurm's GRES on a node",
    # The gate is at the app's address on either kind: test_the_gate_shows_nothing_without_a_login.
    "test_solid_html::test_a_log_is_not_served_as_html": "the portal's own pages",
    "test_solid_html::test_a_refused_form_repeats_its_values_as_text": "the portal's own pages",
    "test_solid_html::test_administrators_pages_show_it_as_text": "the portal's own pages",
    "test_solid_html::test_the_values_are_shown": "the portal's own pages",
    "test_solid_html::test_values_of_a_session_are_shown_as_text": "the portal's own pages",
    "test_solid_html::test_values_of_a_url_are_shown_as_text": "the portal's own pages",
    "test_solid_limits::test_forged_addresses_do_not_raise_the_login_limit": "tries at "
    "passwords, at the portal's own address",
    "test_solid_neighbour": "the network between nodes",
    "test_storage_links": "symbolic links in users' homes",
    # Revoking closes apps on either kind: test_m5_revoking_a_token_closes_the_apps_it_opened.
    "test_tokens::test_m5_a_closed_account_loses_access_within_a_minute": "login accounts",
    "test_tokens::test_m5_a_login_has_a_last_day": "logins, at the portal's own address",
    "test_tokens::test_m5_a_token_cannot_exceed_its_own_rights": "the API",
    "test_tokens::test_m5_an_outage_of_the_login_node_logs_nobody_out": "the login node",
    "test_tokens::test_m5_other_users_cannot_see_or_revoke_a_token": "the API",
    "test_tokens::test_m5_tokens_are_listed_without_their_secrets_and_revoked_alone": "the API",
    "test_variables": "environment variables of sessions",
}

SECONDS = {
    "slurm/test_peoples_accounts": 480,
    "slurm/test_adoption": 370,
    "slurm/test_hub": 310,
    "slurm/test_oracle": 300,
    "slurm/test_node_root": 300,
    "slurm/test_people": 300,
    "browser/test_wizard": 290,
    "attack/test_forged_addresses": 270,
    "attack/test_shared_folder": 255,
    "slurm/test_batch_clients": 260,
    "slurm/test_crashes": 250,
    "attack/test_hostile_shell": 240,
    "browser/test_jobs": 215,
    "slurm/test_cluster_settings": 215,
    "slurm/test_sbatch_hostile": 215,
    "browser/test_time_left": 200,
    "browser/test_list": 190,
    "attack/test_tokens": 175,
    "slurm/test_image_signals": 175,
    "slurm/test_hub_crashes": 170,
    "browser/test_researcher": 165,
    "browser/test_terminal": 165,
    "browser/test_admin": 160,
    "browser/test_day": 155,
    "attack/test_file_servers": 150,
    "browser/test_list_layout": 150,
    "slurm/test_foreign_apps": 145,
    "browser/test_idle": 140,
    "slurm/test_check": 135,
    "attack/test_hostile_page": 130,
    "slurm/test_apply": 130,
    "browser/test_ended_lately": 115,
    "attack/test_impostor": 110,
    "browser/test_apps": 110,
    "slurm/test_ends": 110,
    "browser/test_job_page": 105,
    "browser/test_terminal_input": 105,
    "attack/test_bad_inputs": 100,
    "browser/test_file_views": 100,
    "slurm/test_database_away": 100,
    "slurm/test_idle": 100,
    "slurm/test_persistent_home": 100,
    "browser/test_hub": 95,
    "browser/test_composer": 90,
    "browser/test_job_output": 85,
    "browser/test_gpu": 80,
    "browser/test_launcher": 80,
    "slurm/test_monitoring": 80,
    "browser/test_what_stays": 75,
    "slurm/test_launcher": 75,
    "attack/test_own_images": 70,
    "browser/test_ends": 70,
    "browser/test_session_page": 70,
    "slurm/test_outages": 70,
    "slurm/test_rotation": 70,
    "attack/test_slow_clients": 65,
    "slurm/test_packages": 65,
    "attack/test_solid_canaries": 65,
    "attack/test_solid_limits": 65,
    "browser/test_time_limits": 65,
    "browser/test_wizard_start": 65,
    "slurm/test_image_changes": 65,
    "attack/test_hidden_images": 65,
    "attack/test_anonymous": 60,
    "browser/test_announcements": 60,
    "browser/test_web_app": 60,
    "slurm/test_image_builds": 60,
    "slurm/test_schema": 60,
    "slurm/test_usage": 60,
    "browser/test_files": 55,
    "browser/test_site_pages": 55,
    "attack/test_two_users": 50,
    "browser/test_firefox": 50,
    "slurm/test_backup": 50,
    "slurm/test_notebooks": 50,
    "slurm/test_load": 50,
    "attack/test_keys": 45,
    "attack/test_solid_callbacks": 45,
    "browser/test_oidc": 45,
    "attack/test_login_limits": 40,
    "browser/test_many_images": 40,
    "slurm/test_drift": 40,
    "attack/test_hostile_runner": 35,
    "attack/test_tickets": 35,
    "browser/test_admin_nodes": 35,
    "browser/test_wizard_kept": 35,
    "slurm/test_sbatch": 35,
    "slurm/test_sbatch_options": 35,
}
"""Approximate durations of the slow files, in seconds; only used for the order."""
USUAL = 15


def file_of(item: pytest.Item) -> str:
    """The file's name as in SECONDS: "slurm/test_ends"."""
    return item.path.relative_to(ROOT).with_suffix("").as_posix()


def is_once(item: pytest.Item) -> bool:
    """Whether running it on a single cluster, of either kind, is enough."""
    folder, _, name = file_of(item).rpartition("/")
    test = getattr(item, "originalname", item.name)
    return folder != "attack" or name in ONCE or f"{name}::{test}" in ONCE


def deal(files: Iterable[str], loads: list[float]) -> dict[str, int]:
    """Assign each file to a share so that all shares take about as long; longest files first."""
    found = {}
    for file in sorted(files, key=lambda file: (-SECONDS.get(file, USUAL), file)):
        found[file] = loads.index(min(loads))
        loads[found[file]] += SECONDS.get(file, USUAL)
    return found


def choose(items: list[pytest.Item], share: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests of a share ("1/2") in their order, and all others."""
    which, _, count = share.partition("/")
    shares = deal({file_of(item) for item in items if is_once(item)}, [0.0] * int(count))
    ours = [item for item in items if not is_once(item) or shares[file_of(item)] == int(which) - 1]
    kept = set(ours)
    ours.sort(key=lambda item: (-SECONDS.get(file_of(item), USUAL), file_of(item)))
    return ours, [item for item in items if item not in kept]
