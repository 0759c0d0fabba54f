"""TLS and cookies on the wire, as the cluster is configured.

Over https, cookies are bound to their exact host and to TLS; over http (a single machine, a test)
they are restricted as far as browsers permit.
"""

from __future__ import annotations

import re
import ssl
from http.cookiejar import Cookie
from urllib.parse import urlsplit

import pytest
import requests

from tests.attack.conftest import LoggedIn
from tests.attack.wire import exchange
from tests.support.client import LOOPBACK, TIMEOUT, Api, Json, Visitor, http_session
from tests.support.cluster import Cluster, authority


@pytest.fixture(scope="module")
def lab(researcher: Api, session: Json) -> Visitor:
    """Alice's JupyterLab, opened by her."""
    return researcher.open(session["id"], "jupyterlab")


def _judge(cluster: Cluster, cookie: Cookie) -> None:
    assert cookie.has_nonstandard_attr("HttpOnly"), cookie
    assert cookie.get_nonstandard_attr("SameSite") == "Lax", cookie
    assert not cookie.domain_specified, cookie
    assert cookie.path == "/", cookie
    assert cookie.secure == cluster.secure
    assert cookie.name.startswith("__Host-") == cluster.secure


def test_cookies_are_as_restricted_as_possible(
    cluster: Cluster, logged_in: LoggedIn, lab: Visitor
) -> None:
    # Without that of the files, which a browser has only after it has opened some.
    login = [c for c in logged_in("alice").http.cookies if c.name in ("slipway", "__Host-slipway")]
    app = [c for c in lab.http.cookies if "slipway_app" in c.name]
    assert len(login) == len(app) == 1
    for cookie in (*login, *app):
        _judge(cluster, cookie)


def test_with_https_nothing_is_served_in_clear(cluster: Cluster, lab: Visitor) -> None:
    for origin in (cluster.url, lab.origin):
        plain = origin.replace("https:", "http:")
        host = urlsplit(origin).netloc
        answer = exchange(plain, f"GET /login HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert (b"HTTP/" in answer) is not cluster.secure, answer[:100]


def test_clients_verify_the_certificate(cluster: Cluster, lab: Visitor) -> None:
    """A precondition of these tests and of users' browsers: an unknown CA is rejected."""
    for origin in (cluster.url, lab.origin):
        stranger = http_session()
        stranger.verify = True
        if not cluster.secure:
            assert not authority()
            assert stranger.get(f"{origin}/login", timeout=TIMEOUT).status_code < 500
            continue
        with pytest.raises(requests.exceptions.SSLError):
            stranger.get(f"{origin}/login", timeout=TIMEOUT)
        evil = f"https://evil.example.org:{urlsplit(origin).port}/login"
        with pytest.raises(requests.exceptions.SSLError, match=r"evil\.example\.org|name"):
            http_session().get(evil, timeout=TIMEOUT)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1])
def test_old_tls_is_refused(cluster: Cluster, version: ssl.TLSVersion) -> None:
    """Checked with HAProxy's own configuration: current libraries hardly support old TLS."""
    rendered = cluster.run("portal", "cat", "/run/slipway/haproxy.cfg")
    assert "ssl-default-bind-options ssl-min-ver TLSv1.2" in rendered
    assert "ssl-min-ver TLSv1.1" not in rendered
    option = "-tls1_1" if version == ssl.TLSVersion.TLSv1_1 else "-tls1"
    ask = (
        f"openssl s_client {option} -cipher 'ALL:@SECLEVEL=0' -connect {LOOPBACK}:8080 < /dev/null"
    )
    output = cluster.shell("portal", f"timeout 10 {ask} 2>&1", check=False)
    assert not re.search(r"Cipher is [A-Z0-9-]{5,}(?<!NONE)\)?\n", output.replace("(NONE)", "")), (
        output
    )


def test_this_machines_name_is_not_pinned_to_https(cluster: Cluster) -> None:
    """A browser would remember it for everything else on this machine."""
    answer = http_session().get(f"{cluster.url}/login", timeout=TIMEOUT)
    assert "Strict-Transport-Security" not in answer.headers
