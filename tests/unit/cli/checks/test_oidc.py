"""What `slipway check` says of log-in by OpenID Connect."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from portal.cli.checks.oidc import check_oidc
from portal.config import Settings
from tests.support.openid_provider import CLIENT, OpenIdServer


@pytest.fixture
def provider() -> Iterator[OpenIdServer]:
    """A provider."""
    with OpenIdServer(lambda: datetime.now(UTC)) as server:
        yield server


def findings(provider: OpenIdServer, folder: Path, **oidc: Any) -> tuple[str, str]:
    """What fails, and all else."""
    secret = folder / "secret"
    if not secret.exists():
        secret.write_text("s3cret\n")
        secret.chmod(0o400)
    values = {"issuer": provider.issuer, "client_id": CLIENT, "client_secret_file": str(secret)}
    found = list(check_oidc(Settings.model_validate({"oidc": values | oidc})))
    failed = "\n".join(one.text for one in found if not one.ok)
    return failed, "\n".join(one.text for one in found if one.ok)


def test_nothing_without_an_issuer() -> None:
    assert list(check_oidc(Settings())) == []


def test_all_is_well(provider: OpenIdServer, tmp_path: Path) -> None:
    failed, fine = findings(provider, tmp_path)
    assert failed == ""
    assert "http://localhost:8080/login/oidc/callback" in fine
    assert "http://localhost:8080/login/oidc/logged-out" in fine


def test_a_secret_that_others_can_read(provider: OpenIdServer, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    (tmp_path / "secret").chmod(0o640)
    assert "can be read by others: chmod 400" in findings(provider, tmp_path)[0]


@pytest.mark.parametrize(
    ("oidc", "words"),
    [
        ({"client_secret_file": "/nowhere/secret"}, "No such file"),
        ({"accounts_file": "/nowhere/accounts"}, "No such file"),
        ({"issuer": "http://127.0.0.1:1"}, "127.0.0.1:1"),
    ],
)
def test_what_is_missing(
    provider: OpenIdServer, tmp_path: Path, oidc: dict[str, str], words: str
) -> None:
    assert words in findings(provider, tmp_path, **oidc)[0]


def test_a_file_of_accounts_with_a_mistake(provider: OpenIdServer, tmp_path: Path) -> None:
    file = tmp_path / "accounts"
    file.write_text("u1 alice\nu2\n")
    failed, _fine = findings(provider, tmp_path, accounts_file=str(file))
    assert "line 2: write a claim and an account" in failed


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"issuer": "https://other.example.org"}, "not what it calls itself"),
        ({"token_endpoint": None}, "metadata is not valid"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE with S256"),
    ],
)
def test_a_provider_that_does_not_fit(
    provider: OpenIdServer, tmp_path: Path, metadata: dict[str, Any], words: str
) -> None:
    provider.metadata = metadata
    assert words in findings(provider, tmp_path)[0]
