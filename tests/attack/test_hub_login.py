"""JupyterHub's log-in: strangers there lock nobody out, whatever address they claim to have."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping

import pytest

from tests.attack.throwaway import Account, throwaway
from tests.support.client import Api, Json
from tests.support.client_addresses import (
    FORGED_ADDRESS,
    address_of,
    logged_address,
    refused_address,
)
from tests.support.cluster import Cluster, wait_for
from tests.support.hubs import wait_back

LEFT, GUESSES = 10, 24
"""Wrong passwords that an address may still send, and more than these."""
PER_ACCOUNT = 20
"""Attempts per hour: `web.logins_per_account`."""
RIGHT, WRONG, LIMITED = 302, 403, 429

LOG_IN = r"""
import json, re, sys, urllib.error, urllib.parse, urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.cookiejar import CookieJar

class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args):
        return None

def send(browser, path, headers, fields=None):
    data = urllib.parse.urlencode(fields).encode() if fields else None
    request = urllib.request.Request(told["url"] + path, data, headers)
    try:
        with browser.open(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")

def attempt(one):
    cookies = urllib.request.HTTPCookieProcessor(CookieJar())
    browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies, Stay())
    page = send(browser, "/hub/login", one["headers"])[1]
    mark = re.search(r'name="_xsrf"[^>]*value="([^"]*)"', page)
    fields = {"_xsrf": mark[1], "username": one["user"], "password": one["password"]}
    found = [send(browser, "/hub/login", one["headers"], fields)[0]]
    if one["out"]:
        found.append(send(browser, "/hub/logout", one["headers"])[0])
    return found

told = json.loads(sys.stdin.read())
with ThreadPoolExecutor(8) as pool:
    print(json.dumps(list(pool.map(attempt, told["tries"]))))
"""

pytestmark = pytest.mark.timeout(300)


def attempt(
    user: str, password: str = "wrong", headers: Mapping[str, str] | None = None, out: bool = False
) -> Json:
    """One log-in of a browser of its own, with these headers; then its log-out."""
    return {"user": user, "password": password, "out": out, "headers": dict(headers or {})}


def at_hub(
    cluster: Cluster, machine: str, *tries: Json, url: str = "http://hub:8000"
) -> list[list[int]]:
    """Log in at JupyterHub from a machine, eight at once: the statuses of each one's forms."""
    told = json.dumps({"url": url, "tries": tries})
    found: list[list[int]] = json.loads(
        cluster.run(machine, "python3", "-c", LOG_IN, stdin=told, seconds=240)
    )
    return found


def ghosts(number: int) -> list[str]:
    """Names of accounts that do not exist: only the limit per address counts them together."""
    return [f"ghost{secrets.token_hex(4)}" for _ in range(number)]


@pytest.fixture(autouse=True)
def hub(cluster: Cluster) -> None:
    """JupyterHub answers."""
    assert cluster.hub_url
    wait_back(cluster)


def quiet(cluster: Cluster, *machines: str) -> None:
    """Have none of these addresses limited because of what other tests have guessed."""
    cluster.forget_attempts()
    for machine in machines:
        wait_for(
            f"a quiet minute at {machine}",
            lambda: at_hub(cluster, machine, attempt(ghosts(1)[0])) == [[WRONG]],  # noqa: B023
            120,
            5,
        )


def is_refused(cluster: Cluster, tried: Json, url: str = "http://hub:8000") -> None:
    """A log-in from n1, after `quiet`, is refused for its password.

    `quiet` may have used the last attempt that was left: the next one comes after some seconds.
    """
    wait_for("a refusal", lambda: at_hub(cluster, "n1", tried, url=url) == [[WRONG]], 60, 3)


def logs_in(cluster: Cluster, account: Account, machine: str = "login", out: bool = False) -> None:
    """The account's owner logs in, and out again if asked to."""
    found = at_hub(cluster, machine, attempt(account.name, account.password, out=out))
    assert found == [[RIGHT, RIGHT] if out else [RIGHT]]


def test_strangers_lock_nobody_out(cluster: Cluster) -> None:
    """Wrong passwords of anybody's refused everybody's right one, from anywhere."""
    quiet(cluster, "n1", "login")
    with throwaway(cluster, "login") as account:
        logs_in(cluster, account)
        cluster.use_up_attempts(LEFT)
        found = at_hub(cluster, "n1", *map(attempt, ghosts(GUESSES)))
        assert [LIMITED] in found, "the stranger is not limited"
        logs_in(cluster, account)


def test_guesses_at_an_account_do_not_lock_its_owner_out(cluster: Cluster) -> None:
    """Wrong passwords for one account, of two strangers: more than it has from new networks."""
    quiet(cluster, "n1", "n2", "ctl", "login")
    with throwaway(cluster, "login") as account:
        logs_in(cluster, account)
        tries = [attempt(account.name)] * (PER_ACCOUNT // 2)
        found = [one for machine in ("n1", "n2", "ctl") for one in at_hub(cluster, machine, *tries)]
        assert found.count([WRONG]) <= PER_ACCOUNT
        assert [LIMITED] in found
        logs_in(cluster, account)


@pytest.mark.parametrize(
    "claim",
    ["X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Client-IP", "Slipway-Client"],
)
def test_no_claimed_address_gives_further_guesses(cluster: Cluster, claim: str) -> None:
    def claimed(number: int) -> str:
        return f"for=203.0.113.{number}" if claim == "Forwarded" else f"203.0.113.{number}"

    quiet(cluster, "n1")
    cluster.use_up_attempts(LEFT)
    users = ghosts(GUESSES)
    tries = [attempt(user, headers={claim: claimed(number)}) for number, user in enumerate(users)]
    found = at_hub(cluster, "n1", *tries)
    assert [LIMITED] in found, found
    cluster.use_up_attempts(1)  # those that were tried at once may have used more than were left
    (user,) = ghosts(1)
    tried = attempt(user, headers={claim: claimed(GUESSES)})
    is_refused(cluster, tried)
    assert logged_address(cluster, user) == address_of(cluster, "n1")


def test_whoever_avoids_the_proxy_is_the_client(cluster: Cluster) -> None:
    """Nodes reach JupyterHub's own port; with internal_ssl, only with a certificate of its."""
    if cluster.secure:
        argv = ("curl", "--insecure", "--silent", "--max-time", "20", "https://hub:8081/hub/login")
        assert cluster.run("n1", *argv, check=False) == ""
        return
    quiet(cluster, "n1")
    (user,) = ghosts(1)
    tried = attempt(user, headers={"X-Forwarded-For": FORGED_ADDRESS, "X-Real-IP": FORGED_ADDRESS})
    is_refused(cluster, tried, url="http://hub:8081")
    assert logged_address(cluster, user) == address_of(cluster, "n1")


@pytest.mark.parametrize("proof", ["", "x", "0" * 64])
def test_nobody_but_jupyterhub_names_a_client_to_the_portal(cluster: Cluster, proof: str) -> None:
    headers = {"Slipway-Client": FORGED_ADDRESS, "Slipway-Front-End": proof}
    assert refused_address(cluster, "n1", headers=headers) == address_of(cluster, "n1")


def test_users_cannot_read_the_proof(cluster: Cluster) -> None:
    """It is in two files; HAProxy's configuration, which others may read, has its hash."""
    file = "/etc/slipway/hub/front_end_token"
    proof = cluster.run("portal", "cat", file).strip()
    assert re.fullmatch("[0-9a-f]{64}", proof)
    assert proof == cluster.run("hub", "cat", file).strip()
    for machine in ("portal", "hub"):
        argv = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "cat", file)
        assert proof not in cluster.run(machine, *argv, check=False)
    assert proof not in cluster.run("portal", "cat", "/run/slipway/haproxy.cfg")
    for machine in ("portal", "hub"):
        assert proof not in cluster.ctl("logs", machine, check=False)


def hubs_tokens(cluster: Cluster, account: Account, token: str) -> list[str]:
    """The ids of the account's tokens that JupyterHub has."""
    listed = Api(cluster, account.name, token).ask("GET", "/tokens")["tokens"]
    return [one["id"] for one in listed if one["purpose"] == "jupyterhub"]


def test_a_log_out_leaves_no_token(cluster: Cluster) -> None:
    """It was valid for a week, and each log-in added one."""
    quiet(cluster, "login")
    with throwaway(cluster, "login") as account:
        own = account.token()
        logs_in(cluster, account)
        (first,) = hubs_tokens(cluster, account, own)
        logs_in(cluster, account)
        (second,) = hubs_tokens(cluster, account, own)
        assert second != first
        logs_in(cluster, account, out=True)
        # A log-out waits for the portal, but not for ever.
        gone = lambda: not hubs_tokens(cluster, account, own)  # noqa: E731
        wait_for("no token of JupyterHub's", gone, 60)
