"""Names of accounts: the site's pattern, within what is safe in every layer."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import SSHCertificate, load_ssh_public_identity

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.slurm.queue import squeue_argv
from portal.core.account_names import DEFAULT, WIDEST, AccountNames, is_safe
from portal.core.launch.hub import check_prefix
from portal.core.launch.mounts import Mount, mount_points, path_of_shared, storage_of
from portal.core.session_job.batch_script import render_script
from portal.node.batch import request as batch_request
from portal.node.common.folder_name import PATTERN
from tests.support.batch_scripts import PLAIN, TEMPLATE

ANY = AccountNames(WIDEST)
ODD = ("John.Doe", "j.doe@example.org", "x" * 64, "a-b_c.d@e", "_svc", "1a")
DANGEROUS = [
    *("a/b", "..", ".", ".hidden", "-rf", "@a", "", "x" * 65, "0", "1000", "root"),
    *(f"a{one}b" for one in map(chr, range(256)) if not re.match("[A-Za-z0-9._@-]", one)),
]


@pytest.mark.parametrize("name", ODD)
def test_a_site_may_permit_them_and_the_default_does_not(name: str) -> None:
    assert ANY.permits(name)
    assert AccountNames().permits(name) == (re.fullmatch(DEFAULT, name) is not None)


def test_no_site_can_permit_them() -> None:
    assert [name for name in DANGEROUS if is_safe(name)] == []
    for names in (ANY, AccountNames("[a-z]+|[0-9]+")):
        assert [name for name in DANGEROUS if names.permits(name)] == []


def test_the_pattern_is_for_the_whole_name_and_ascii() -> None:
    names = AccountNames("[a-z]+@example[.]org|[A-Z][a-z]+")
    assert names.permits("jo@example.org") and names.permits("Jo")
    for name in ("jo@example.orgs", "jo@example_org", "xJo", "jo", "Jö"):
        assert not names.permits(name)
    assert not ANY.permits("jo\n")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "use 1 to 200"),
        ("a" * 201, "use 1 to 200"),
        ("[a-z", "is not a regular expression"),
        ("a{5,1}", "is not a regular expression"),
        (".*", "permits names with"),
        ("[^/]+", "permits names with"),
        ("[a-z ]+", "permits names with ' '"),
        ("[a-z][a-z/]*", "permits names with '/'"),
        ("[a-z]+[$]?", "permits names with '$'"),
        ("[a-z]+:[a-z]+", "permits names with ':'"),
        ("-?[a-z]+", "begin with '-'"),
        ("[a-z.]+", "begin with '.'"),
        ("([a-z]+)+", "repeat no group"),
        ("([a-z]|[a-z])*@", "repeat no group"),
        (r"[a-z]+\s", "use characters"),
        (r"(a)\1", "use characters"),
        ("(?i)[a-z]+", "use characters"),
        ("(?=a)[a-z]+", "use characters"),
    ],
)
def test_a_pattern_that_permits_too_much_is_refused_with_the_reason(
    pattern: str, words: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        AccountNames(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        DEFAULT,
        WIDEST,
        r"[a-z]+(\.[a-z]+)?@example\.org",
        "[A-Za-z][A-Za-z0-9._@-]{0,63}",
        "(?:a|b)[0-9]{6}",
    ],
)
def test_usual_patterns_are_accepted(pattern: str) -> None:
    assert AccountNames(pattern).pattern == pattern


def test_the_command_on_the_cluster_has_the_same_rule() -> None:
    """It is Python's standard library alone, and so has a copy."""
    assert batch_request._SHARED.pattern == f"({WIDEST})/{PATTERN}"


@pytest.mark.parametrize("name", ODD)
def test_every_layer_takes_them_as_one_word(name: str, tmp_path: Path) -> None:
    # A batch script, in which bash finds the home directory by "~NAME".
    mounts = mount_points("bob", [Mount(folder=f"{name}/data")], "storage")
    script = render_script(dataclasses.replace(PLAIN, user=name, mounts=mounts), TEMPLATE)
    assert f' ~{name}/storage/data "" {name}\n' in script
    assert f":/home/{name} " in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    found = subprocess.run(
        ["bash", "-c", f"h=~{name}; set -- ~{name}/data; echo $# $h"],
        text=True,
        capture_output=True,
        check=True,
    )
    assert found.stdout == f"1 ~{name}\n"  # this machine has no such account
    # Paths: one component each.
    assert storage_of(name, "/lustre/{user}") == f"/lustre/{name}"
    assert path_of_shared(name, "data", "/lustre/{user}") == f"/lustre/{name}/data"
    assert Path("/lustre", name).parts == ("/", "lustre", name)
    # Arguments of Slurm's commands, lists of which are separated by commas.
    assert f"--user={name}" in squeue_argv(user=name)
    # JupyterHub's paths.
    assert check_prefix(f"/user/{name}/", name, "/") == []
    assert check_prefix(f"/user/{name}x/", name, "/") != []
    # A certificate's principal.
    prepare_authorities(tmp_path, "portal")
    authority = CertificateAuthority(tmp_path)
    _, certificate = authority.sign_user(name, timedelta(minutes=1), "127.0.0.1")
    read = load_ssh_public_identity(certificate.encode())
    assert isinstance(read, SSHCertificate)
    assert read.valid_principals == [name.encode()]
