"""Which tests run on which kind of cluster, and in which order.

There are two kinds of clusters: apps at subdomains over https, and apps at ports over http. Attacks
run on a cluster of each kind. For all other tests, and for the attacks in ONCE, the kind makes no
difference: `--share 1/2` gives the first of two kinds its half of them. The longest files come
first (durations.json, written by results.py after a run).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent

# A file of tests/attack, or a test in it, and what it covers other than app addresses.
ONCE = {
    "test_anonymous::test_long_callbacks_are_refused_immediately": "the runners' own port of the "
    "portal, inside the cluster",
    "test_bad_inputs": "what the API and the forms take, at the portal's own address",
    "test_choices": "which accounts, QOS and reservations the forms and the API name",
    "test_desktop::test_a_neighbour_on_the_node_finds_nothing_that_answers": "processes on a node",
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

SECONDS: dict[str, int] = json.loads((ROOT / "durations.json").read_text(encoding="utf-8"))
"""Durations of the slow files, only used for the order (tests/results.py --save)."""
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
