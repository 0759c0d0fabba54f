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
    "test_files": "files, at the portal's own address",
    "test_forged_addresses": "clients' addresses, at the portal's own address",
    "test_gpu_root": "root's side of GPUs on a node",
    "test_hostile_runner": "a runner's answers to the portal, inside the cluster",
    "test_hostile_shell": "the shell on the login node",
    "test_hub": "JupyterHub, which is at an address of its own on either kind",
    "test_hub_impostor": "a program in the place of a server, behind JupyterHub's proxy",
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
    "test_secrets": "the key that the database is encrypted with",
    "test_service_tokens": "the API, at the portal's own address",
    "test_sockets": "Unix sockets on the portal's machine",
    "test_solid_callbacks": "the runners' own port of the portal, inside the cluster",
    "test_solid_gpu": "Slurm's GRES on a node",
    "test_solid_limits::test_forged_addresses_do_not_raise_the_login_limit": "tries at "
    "passwords, at the portal's own address",
    "test_solid_neighbour": "the network between nodes",
    "test_storage_links": "symbolic links in users' homes",
    # Revoking closes apps on either kind: test_m5_revoking_a_token_closes_the_apps_it_opened.
    "test_tokens::test_m5_a_closed_account_loses_access_within_a_minute": "login accounts",
    "test_tokens::test_m5_an_outage_of_the_login_node_logs_nobody_out": "the login node",
    "test_variables": "environment variables of sessions",
}

SECONDS = {
    "slurm/test_adoption": 250,
    "slurm/test_people": 180,
    "attack/test_forged_addresses": 150,
    "slurm/test_odd_clusters": 150,
    "slurm/test_apply": 130,
    "slurm/test_database_away": 100,
    "slurm/test_check": 140,
    "slurm/test_slurm_options": 90,
    "slurm/test_crashes": 395,
    "slurm/test_hub": 350,
    "attack/test_hostile_shell": 300,
    "browser/test_time_left": 245,
    "attack/test_bad_inputs": 220,
    "attack/test_tokens": 220,
    "browser/test_terminal": 200,
    "browser/test_day": 195,
    "slurm/test_sbatch_hostile": 190,
    "browser/test_jobs": 170,
    "attack/test_impostor": 165,
    "browser/test_list": 155,
    "browser/test_wizard": 150,
    "browser/test_idle": 145,
    "slurm/test_ends": 145,
    "browser/test_researcher": 140,
    "slurm/test_hub_crashes": 130,
    "slurm/test_idle": 120,
    "browser/test_ended_lately": 115,
    "attack/test_anonymous": 110,
    "attack/test_solid_limits": 100,
    "browser/test_job_page": 100,
    "slurm/test_launcher": 100,
    "slurm/test_persistent_home": 100,
    "attack/test_keys": 95,
    "browser/test_hub": 95,
    "browser/test_list_layout": 95,
    "slurm/test_sbatch": 95,
    "slurm/test_sbatch_options": 95,
    "attack/test_two_users": 90,
    "slurm/test_usage": 90,
    "browser/test_file_views": 90,
    "browser/test_session_page": 85,
    "browser/test_terminal_input": 85,
    "browser/test_what_stays": 85,
    "slurm/test_outages": 85,
    "attack/test_hostile_page": 80,
    "attack/test_solid_callbacks": 80,
    "browser/test_admin": 80,
    "browser/test_apps": 80,
    "browser/test_ends": 80,
    "browser/test_job_output": 80,
    "browser/test_use": 75,
    "browser/test_web_app": 75,
    "slurm/test_drift": 70,
    "slurm/test_load": 70,
    "attack/test_login_limits": 65,
    "slurm/test_folders": 65,
    "slurm/test_image_changes": 65,
    "attack/test_hub": 60,
    "attack/test_hostile_runner": 55,
    "browser/test_firefox": 55,
    "browser/test_gpu": 55,
    "browser/test_wizard_kept": 55,
    "browser/test_wizard_start": 55,
    "attack/test_solid_neighbour": 50,
    "attack/test_tickets": 50,
    "browser/test_time_limits": 50,
    "attack/test_solid_gpu": 45,
    "browser/test_admin_nodes": 45,
    "browser/test_composer_kept": 45,
    "browser/test_launcher": 45,
    "slurm/test_admin": 45,
    "browser/test_composer": 40,
    "browser/test_folders_asked": 40,
    "browser/test_keyboard": 40,
    "browser/test_tokens": 40,
    "attack/test_hub_node": 35,
}
"""Approximate durations of the slow files, in seconds; only used for the order."""
USUAL = 25


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
