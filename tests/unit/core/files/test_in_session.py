"""Where a file is in a session that has its folder mounted."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote, unquote

import pytest

from portal.core.files.in_session import location_of, path_in_session
from portal.core.files.location import canonical
from portal.core.launch.mounts import Mount
from portal.core.session.session import Home, Session

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def session(*folders: str, home: Home = Home.SESSION) -> Session:
    return Session(
        id="0" * 32,
        name="s",
        owner="alice",
        environment="python",
        version="3",
        cpus=1,
        memory_mb=100,
        created=NOW,
        submitted=NOW,
        token_hash="",
        mounts=tuple(Mount(folder=folder) for folder in folders),
        home=home,
    )


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("storage/data/a%20b/x.ipynb", "data/a%20b/x.ipynb"),
        ("storage/data", "data"),
        ("storage/data2/x", ""),
        ("home/x", ""),
        ("storage", ""),
        ("shared/bob/data/x", "bob-data/x"),
        ("shared/bob/other/x", ""),
        ("storage/data/%FF", ""),
    ],
)
def test_a_mounted_folder_has_its_files_below_its_place(location: str, path: str) -> None:
    assert path_in_session(session("data", "bob/data"), location, "storage") == path


@pytest.mark.parametrize(
    "name", ["über", "데이터", "a b", "50%", "x (2)", "🧪", "u\u0308", "-x", "a "]
)
def test_a_folder_of_any_name_is_found_in_the_session(name: str) -> None:
    for folder, place in ((name, "storage"), (f"bob/{name}", "shared/bob")):
        location = canonical(f"{place}/{quote(name)}")
        assert location_of(Mount(folder=folder)) == location
        path = path_in_session(session(folder), f"{location}/x", "storage")
        assert unquote(path) == f"{name}/x"


def test_a_mounted_home_has_its_files_below_home() -> None:
    assert path_in_session(session("home"), "home/x/y", "storage") == "home/x/y"


@pytest.mark.parametrize(
    ("location", "storage", "path"),
    [
        ("home/x%20y", "storage", "x%20y"),
        ("storage/data/x", "my storage", "my%20storage/data/x"),
        ("storage/data/x", "/storage/alice", ""),
        ("scratch/x", "storage", ""),
    ],
)
def test_in_their_owners_home_all_of_it_is_there(location: str, storage: str, path: str) -> None:
    assert path_in_session(session(home=Home.PERSISTENT), location, storage) == path
