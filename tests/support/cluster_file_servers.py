"""Users' file servers on a running cluster."""

from __future__ import annotations

from typing import Any

import requests

from tests.support.client import Api
from tests.support.cluster import Cluster, in_database

PORTAL_KEY = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=portal "
    "-keyout k -out c 2>/dev/null"
)


def end_file_servers(cluster: Cluster, user: str) -> None:
    cluster.shell("login", f"pkill -9 -u {user} -f '[f]ile-server' || true")


def file_server_port(cluster: Cluster, user: str) -> int:
    """The port of a user's file server."""
    rows = in_database(cluster, f"select port from file_server where owner = '{user}'")
    return int(rows.strip("[(,)]\n"))


def send_request(api: Api, method: str, path: str, **options: Any) -> requests.Response:
    """A request for files with the user's token; redirects are followed as curl does."""
    return api.http.request(method, f"{api.cluster.url}{path}", timeout=20, **options)
