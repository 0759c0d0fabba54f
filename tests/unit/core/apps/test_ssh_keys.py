"""Public keys that users add: one line of OpenSSH's format, without options."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from portal.core.apps.ssh_keys import parse_public_keys, read_public_key
from portal.errors import InvalidRequest

ED = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFMVzBnv6ZMm8BpxbFvIOFCYSD4x2bw0bLUYUmkyRxQa"


@pytest.mark.parametrize("options", [("ed25519",), ("rsa", "-b", "2048"), ("ecdsa", "-b", "521")])
def test_keys_of_ssh_keygen_are_read_with_their_fingerprint(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    file = tmp_path / "key"
    made = ["ssh-keygen", "-q", "-N", "", "-C", "me@laptop", "-f", str(file), "-t", *options]
    subprocess.run(made, check=True)
    text = file.with_suffix(".pub").read_text()
    key = read_public_key(text)
    assert (key.line, key.comment) == (text.strip(), "me@laptop")
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", f"{file}.pub"], capture_output=True, text=True, check=True
    )
    assert key.fingerprint in shown.stdout
    with pytest.raises(InvalidRequest, match="private key"):
        read_public_key(file.read_text())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "ssh-ed25519",
        "ssh-ed25519 AAAA",
        f"ssh-rsa {ED.split()[1]}",  # the type does not match
        f'command="rm -rf ~" {ED}',
        f"no-pty {ED}",
        f"{ED[:-8]}",
        f"{ED}A",
        f"{ED} me\n{ED} you",
        f"{ED} caf\u00e9",
        f"{ED} \x1b[31m",
        "ssh-dss AAAAB3NzaC1kc3MAAACBAP",
        "A" * 5000,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_public_key(text)
    assert [error.field for error in refused.value.errors] == ["public_key"]


def test_short_rsa_keys_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    made = ["ssh-keygen", "-q", "-N", "", "-t", "rsa", "-b", "1024", "-f", str(file)]
    subprocess.run(made, check=True)
    with pytest.raises(InvalidRequest):
        read_public_key(file.with_suffix(".pub").read_text())


def test_a_file_of_keys_counts_each_once_and_skips_the_rest() -> None:
    assert [k.comment for k in parse_public_keys(f"{ED} a\nnonsense\n\n{ED} b\n")] == ["b"]
