"""Quota by statvfs, quota(1), lfs and a command of the site's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from portal.node.file_server import quota
from portal.node.file_server.errors import Refused
from portal.node.file_server.quota import (
    Quota,
    parse_lfs,
    parse_quota,
    parse_site,
    quota_of,
)
from portal.node.file_server.roots import Root
from tests.unit.node.file_server.conftest import Client

QUOTA = """\
Disk quotas for user alice (uid 1001):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
              /      28  2621440 2359296       0       5       0       0       0
          /home   10240*    5000   20000 1700000000   1627       0     100       0
"""
LFS = """\
        /lustre  299144     307200  309200       -   10101   10200   10300       -
"""


def test_the_quota_of_the_nearest_mount_point() -> None:
    assert parse_quota(QUOTA, "/home/alice") == Quota("quota", 10485760, 20480000, 1627, 100)
    assert parse_quota(QUOTA, "/homes") == Quota("quota", 28672, 2359296 * 1024, 5)
    assert parse_quota("Disk quotas for user alice (uid 1001): none\n", "/home") is None


@pytest.mark.parametrize(
    "output",
    [
        LFS,
        LFS.replace("/lustre  ", "/lustre/of/a/long/name\n     "),
        LFS.replace("299144 ", "299144*"),
        LFS.replace(" 299144 ", "[299144]"),
        LFS + "\nSome errors happened when getting quota info.\n",
    ],
)
def test_the_quota_of_lustre(output: str) -> None:
    assert parse_lfs(output) == Quota("lfs", 299144 * 1024, 309200 * 1024, 10101, 10300)


def test_lustre_without_limits_or_an_answer() -> None:
    unlimited = "/lustre 12 0 0 - 3 0 0 -\n"
    assert parse_lfs(unlimited) == Quota("lfs", 12288, None, 3, None)
    assert parse_lfs("Permission denied.\n") is None


def test_a_command_of_the_site() -> None:
    assert parse_site("5 10\n") == Quota("site", 5, 10)
    assert parse_site("5 0 7 -\n") == Quota("site", 5, None, 7, None)
    for output in ("", "5", "5 ten", "-1 5", "1 2 3"):
        with pytest.raises(Refused) as refused:
            parse_site(output)
        assert refused.value.status == 502


def test_the_commands_words_contain_the_user_and_the_path(tmp_path: Path) -> None:
    command = f"{sys.executable} -c 'import sys; print(len(sys.argv[1]), 9)' {{path}}"
    found = quota_of(Root("home", str(tmp_path)), {"home": command})
    assert (found["used"], found["limit"], found["source"]) == (len(str(tmp_path)), 9, "site")


def test_a_command_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota, "SECONDS", 0.1)
    with pytest.raises(Refused) as refused:
        quota_of(Root("home", str(tmp_path)), {"home": "sleep 60"})
    assert (refused.value.status, refused.value.code) == (503, "away")


def test_a_command_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="n0-such"):
        quota_of(Root("home", str(tmp_path)), {"home": "n0-such"})


def test_the_whole_file_system_or_nothing(control: Client) -> None:
    found = control("GET", "/v1/quota/home").json
    assert found["source"] == "df"
    assert 0 < found["used"] < found["limit"]
    assert control("GET", "/v1/quota/storage").json == {
        "source": "none",
        "used": None,
        "limit": None,
        "files": None,
        "files_limit": None,
    }
    assert control("GET", "/v1/quota/none").status == 404
