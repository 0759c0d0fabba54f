"""Tests against a real cluster: `bash tests/run.sh slurm`, or all of them by `make test`.

SLIPWAY_PROJECT and PORT name a running cluster; its users should have no sessions of their own
meanwhile, since the tests use up their limits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from http import HTTPStatus

import pytest

from tests.support.built_images import pytest_collection_modifyitems, pytest_terminal_summary
from tests.support.client import Api, Json, login
from tests.support.cluster import Cluster, healthy, wait_for
from tests.support.hubs import HubApi, HubLogin, wait_back

__all__ = ["pytest_collection_modifyitems", "pytest_terminal_summary"]

MakeApi = Callable[[str], Api]
MakeHub = Callable[[str], HubApi]


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The running cluster."""
    found = Cluster.from_environment()
    wait_for("a healthy portal", lambda: healthy(found), 60)
    return found


@pytest.fixture(scope="session")
def tokens(cluster: Cluster) -> dict[str, str]:
    """One token per user: login attempts are limited."""
    return {user: login(cluster, user) for user in ("alice", "bob", "admin")}


@pytest.fixture(scope="session")
def make_api(cluster: Cluster, tokens: dict[str, str]) -> MakeApi:
    """Creates API clients and cleans up after them."""
    return lambda user: Api(cluster, user, tokens[user])


@pytest.fixture(scope="module", autouse=True)
def clean_accounts(cluster: Cluster, make_api: MakeApi) -> None:
    """End sessions and remove storage folders that earlier files left, on clusters for tests only.

    A session that holds a core would fail many others, and a folder changes what pages list.
    """
    if cluster.project.startswith("slipway-test-"):
        wait_for("the portal", lambda: healthy(cluster), 60)
        for user in ("alice", "bob"):
            api = make_api(user)
            if api("GET", "/sessions").status_code == HTTPStatus.OK:
                api.clean_all()
            folders = f"/home/{user}/storage"
            cluster.shell("login", f"chmod -R u+w {folders}; rm -rf {folders}", user, check=False)


@pytest.fixture(scope="session")
def hub_logins(cluster: Cluster) -> dict[str, HubLogin]:
    """Users' logins at JupyterHub by name: login attempts are limited."""
    return {}


@pytest.fixture(scope="session")
def make_hub(cluster: Cluster, hub_logins: dict[str, HubLogin]) -> MakeHub:
    """Creates clients of JupyterHub's REST API."""
    tokens: dict[str, str] = {}

    def make(user: str) -> HubApi:
        if user not in tokens:
            wait_back(cluster)
            hub_logins[user] = HubLogin(cluster, user)
            tokens[user] = hub_logins[user].make_token()
        return HubApi(cluster, user, tokens[user])

    return make


@pytest.fixture
def alice(make_api: MakeApi) -> Iterator[Api]:
    """A researcher; her sessions end with the test."""
    api = make_api("alice")
    yield api
    api.clean()


@pytest.fixture
def bob(make_api: MakeApi) -> Iterator[Api]:
    """Another researcher."""
    api = make_api("bob")
    yield api
    api.clean()


@pytest.fixture
def admin(make_api: MakeApi) -> Iterator[Api]:
    """The administrator."""
    api = make_api("admin")
    yield api
    api.clean()


@pytest.fixture(scope="module")
def researcher(make_api: MakeApi) -> Iterator[Api]:
    """Alice, for sessions shared by the tests of a file."""
    api = make_api("alice")
    yield api
    api.clean()


@pytest.fixture(scope="module")
def session(researcher: Api) -> Json:
    """A running session of alice's shared by several tests."""
    return researcher.running()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write the logs of the portal, of Slurm and of the sessions next to a failure."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        for title, text in _logs(item):
            report.sections.append((title, text))
    return report


def _logs(item: pytest.Function) -> Iterator[tuple[str, str]]:
    found = item.funcargs.get("cluster")
    cluster = found if isinstance(found, Cluster) else Cluster.from_environment()
    for service in ("portal", "ctl"):
        yield service, cluster.log_tail(service)
    people = [value for value in item.funcargs.values() if isinstance(value, Api)]
    for api in people:
        for session in api.launched:
            log = f"/home/{api.user}/.slipway/logs/{session}.log"
            yield f"session {session}", cluster.run("login", "tail", "-n40", log, check=False)
