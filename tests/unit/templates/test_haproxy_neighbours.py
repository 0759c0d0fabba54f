"""What pages of other origins can do with an app through a real HAProxy: open it, nothing else."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from portal.core.apps.access import public_key
from tests.unit.web.front import Front, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

NAVIGATION = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}


@pytest.fixture(scope="module", params=["ports", "subdomains"])
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """One HAProxy for all tests here, in each mode, with the app's route added."""
    with running_front(tmp_path_factory.mktemp("front"), request.param) as running:
        running.routes.add(running.key, running.target)
        yield running


@pytest.fixture
def public(front: Front) -> Iterator[None]:
    """The app is open to everybody."""
    key = public_key(front.label)
    front.routes.add(key, front.target)
    yield
    front.routes.remove(key)


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
@pytest.mark.parametrize(
    ("mode", "destination", "passes"),
    [
        ("navigate", "document", True),
        ("navigate", "iframe", False),
        ("navigate", "object", False),
        ("no-cors", "script", False),
        ("no-cors", "image", False),
        ("cors", "empty", False),
        ("no-cors", "document", False),
        ("websocket", "empty", False),
    ],
)
def test_other_origins_may_open_a_window_only(
    front: Front, site: str, mode: str, destination: str, passes: bool
) -> None:
    headers = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": mode, "Sec_Fetch_Dest": destination}
    for path in ("/lab", "/.slipway/status"):
        assert front.app(path, **headers).status == (200 if passes else 403)


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_its_own_pages_may_do_everything(front: Front, site: str) -> None:
    headers = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": "cors", "Sec_Fetch_Dest": "iframe"}
    assert front.app("/lab", **headers).seen["who"] == "app"


def test_public_apps_may_be_read_from_anywhere(front: Front, public: None) -> None:
    headers = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "cors", "Sec_Fetch_Dest": "empty"}
    answer = front.app("/", cookie="theme=dark", **headers)
    assert answer.seen["who"] == "app"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "X-Frame-Options" not in answer.headers
    # The owner's own cookie selects the owner's route, which is not public.
    assert front.app("/", **headers).status == 403


def test_public_until_revoked(front: Front) -> None:
    key = public_key(front.label)
    assert front.app(cookie="a=1").seen["who"] == "portal"
    front.routes.add(key, front.target)
    assert front.app(cookie="a=1").seen["who"] == "app"
    foreign = front.app("/", "POST", cookie="", origin="http://evil.example.org")
    assert foreign.status == 403
    front.routes.remove(key)
    assert front.app(cookie="a=1").seen["who"] == "portal"


def test_private_apps_are_not_framed_or_read(front: Front) -> None:
    answer = front.app()
    assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert "Access-Control-Allow-Origin" not in answer.headers
    own = front.app(X_Answer='{"Content-Security-Policy": "frame-ancestors https://x.example.org"}')
    assert "X-Frame-Options" not in own.headers


def test_ports_keep_no_data_for_the_next_app(front: Front) -> None:
    in_ports = front.web.apps == "ports"
    answer = front.app()
    assert "Vary" not in answer.headers  # the browser cache of a user stays valid the next time
    front.routes.add(public_key(front.label), front.target)
    everybody = front.app(cookie="")
    front.routes.remove(public_key(front.label))
    assert (everybody.headers.get("Vary") == "Cookie") is in_ports
    assert ("Service-Worker-Allowed" in answer.headers) is not in_ports
    for path, refused in (("/sw.js", True), ("/sw.js?a=/b/c", True), ("/static/sw.js", False)):
        worker = front.app(path, Service_Worker="script")
        assert (worker.status == 403) is (refused and in_ports), path


@pytest.mark.parametrize(
    "host",
    ["evil.example.org", "evil.example.org:{port}", "localhost:{port}", "127.0.0.1", "127.0.0.1:1",
     "127.0.0.1:{port}0", "{own}.evil.example.org", "[::1]:{port}", "127.1:{port}", ""],
)  # fmt: skip
@pytest.mark.parametrize("front", ["ports"], indirect=True)
def test_a_port_responds_to_its_own_name_only(front: Front, host: str) -> None:
    name = host.format(port=front.app_port, own=front.origin.removeprefix("http://"))
    assert front.app(host=name).status in (400, 421)


@pytest.mark.parametrize("front", ["ports"], indirect=True)
def test_the_portals_port_has_no_apps(front: Front) -> None:
    for host in (front.origin.removeprefix("http://"), f"127.0.0.1:{front.port}"):
        answer = front.ask(host, "/lab", cookie=front.cookie)
        assert answer.status in (301, 404)


@pytest.mark.parametrize(
    ("path", "kind", "squeezed"),
    [
        ("/static/lab/main.0a1b.js", "text/javascript", True),
        ("/lab/extensions/x/static/a.css", "text/css", True),
        ("/static/lab/main.0a1b.js", "text/html", False),
        ("/api/contents/static/a.js", "application/json", False),
        ("/files/a.js", "text/javascript", False),
        ("/lab", "text/html", False),
        ("/", "text/html", False),
    ],
)
def test_only_static_files_are_compressed(
    front: Front, path: str, kind: str, squeezed: bool
) -> None:
    """The length of a compressed page would leak its secrets."""
    assert _is_compressed(front, path, kind) is squeezed


def test_a_static_page_is_compressed(front: Front) -> None:
    front.routes.set_background_requests(["jupyterlab/STATIC"])
    assert _is_compressed(front, "/", "text/html")
    assert not _is_compressed(front, "/lab", "text/html")
    front.routes.set_background_requests([])
    assert not _is_compressed(front, "/", "text/html")


def _is_compressed(front: Front, path: str, kind: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", front.app_port, timeout=10)
    headers = {
        "Host": urlsplit(front.origin).netloc,
        "Cookie": front.cookie,
        "Accept-Encoding": "gzip",
        "X-Answer": json.dumps({"Content-Type": kind}),
    }
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    assert answer.status == 200
    connection.close()
    return answer.headers.get("Content-Encoding") == "gzip"
