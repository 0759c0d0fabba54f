"""The embedded cluster's accounts of people: each has what the scripts of cluster/ expect."""

from __future__ import annotations

import re
import tomllib

from tests.support.paths import ROOT

PEOPLE = ROOT / "cluster" / "people"
LINES = (PEOPLE / "accounts").read_text().splitlines()
ACCOUNTS = [line.split() for line in LINES if line.strip() and not line.startswith("#")]


def test_each_account_has_four_words_and_an_id_of_its_own() -> None:
    assert {len(words) for words in ACCOUNTS} == {4}
    ids = {int(words[1]) for words in ACCOUNTS}
    assert len(ids) == len(ACCOUNTS)
    assert ids.isdisjoint(range(1000, 1100))  # build/add-users


def test_each_account_has_dotfiles_and_none_is_without_account() -> None:
    folders = {path.name for path in (PEOPLE / "home").iterdir()}
    assert folders == {words[0] for words in ACCOUNTS}
    assert all(any((PEOPLE / "home" / name).rglob("*")) for name in folders)


def test_the_portal_of_the_cluster_lets_them_in() -> None:
    settings = tomllib.loads((ROOT / "cluster" / "etc" / "slipway.toml").read_text())
    pattern = settings["login"]["account_pattern"]
    assert [name for name, *_ in ACCOUNTS if not re.fullmatch(pattern, name)] == []


def test_they_get_into_the_images() -> None:
    assert "!cluster/people" in (ROOT / ".dockerignore").read_text().splitlines()
    for program in {words[2] for words in ACCOUNTS} - {"/bin/bash"}:
        name = program.rpartition("/")[2]
        lines = (ROOT / "cluster" / "Containerfile").read_text().splitlines()
        packages = [line for line in lines if "install-packages" in line and f" {name} " in line]
        assert len(packages) == 2, program  # the login node and the nodes
