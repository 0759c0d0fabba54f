"""Days of validity in `slipway check`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from portal.adapters.certificates import prepare_authorities
from portal.adapters.rotation import begin_gateways, begin_user, finish_gateways, finish_user
from portal.cli.check_certificates import certificate_findings


def test_days_left_and_what_to_do(tmp_path: Path) -> None:
    prepare_authorities(tmp_path, "portal.example.org")
    now = datetime.now(UTC)
    fresh = list(certificate_findings(tmp_path, now))
    assert [found.ok for found in fresh] == [True] * 4
    assert fresh[0].text == "authority gateway_ca: valid for 3649 more days"
    late = list(certificate_findings(tmp_path, now + timedelta(days=3630)))
    assert not any(found.ok for found in late)
    assert "rotate gateways" in late[0].text
    assert "slipway init" in late[2].text
    over = list(certificate_findings(tmp_path, now + timedelta(days=3660)))
    assert "expired 11 days ago" in over[0].text


def test_a_rotation_is_named_until_it_is_finished(tmp_path: Path) -> None:
    prepare_authorities(tmp_path, "portal.example.org")
    begin_gateways(tmp_path, "portal.example.org")
    begin_user(tmp_path)
    texts = [found.text for found in certificate_findings(tmp_path, datetime.now(UTC))]
    assert texts[4:] == [
        "a rotation is not finished: slipway rotate gateways",
        "a rotation is not finished: slipway rotate user",
    ]
    finish_gateways(tmp_path, "portal.example.org")
    finish_user(tmp_path)
    assert len(list(certificate_findings(tmp_path, datetime.now(UTC)))) == 4
