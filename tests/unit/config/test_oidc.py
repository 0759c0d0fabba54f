"""[oidc]: what does not fit together is refused, with its key."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from portal.config.oidc import OidcSettings

ISSUER = {"issuer": "https://login.example.org/realms/staff", "client_id": "slipway"}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"issuer": "login.example.org", "client_id": "x"}, "https://"),
        ({"issuer": "http://login.example.org", "client_id": "x"}, "https://"),
        ({"issuer": "https://login.example.org?x=1", "client_id": "x"}, "no query"),
        ({"issuer": "https://login.example.org"}, "client_id is missing"),
        ({"password": False}, "needs issuer"),
        (ISSUER | {"pattern": "[a-z]+"}, "exactly one group"),
        (ISSUER | {"pattern": "("}, "not a regular expression"),
        (ISSUER | {"pattern": "(a)", "accounts_file": "/x"}, "exclude each other"),
        (ISSUER | {"admin_groups": ["admins"]}, "need groups_claim"),
        (ISSUER | {"allowed_groups": ["staff"]}, "need groups_claim"),
        (ISSUER | {"scopes": ["profile"]}, "openid"),
        (ISSUER | {"scopes": ["openid", "a b"]}, "not a scope"),
        (ISSUER | {"client_secret": "s3cret"}, "client_secret"),
    ],
)
def test_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        OidcSettings.model_validate(values)


def test_without_an_issuer_passwords_are_accepted_and_no_group_administers() -> None:
    settings = OidcSettings()
    assert (settings.enabled, settings.passwords, settings.admin_issuer) == (False, True, "")


def test_a_provider_on_this_machine_may_use_http() -> None:
    assert OidcSettings(issuer="http://127.0.0.1:9000", client_id="slipway").enabled
