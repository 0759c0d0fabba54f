"""`slipway check --session` says at once what prevents it."""

from __future__ import annotations

import signal

import pytest

from portal.cli.checks.try_sessions import SIGNALS, ended_by_signals
from tests.unit.cli.checks.site import Site


def test_what_prevents_it(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert site.run("check", "--session") == 1
    assert "MISSING slurm.admins names nobody" in capsys.readouterr().out
    assert site.run("check", "--session", "alice") == 1
    assert "nothing listens there (connection refused)" in capsys.readouterr().out
    site.settings["sessions"]["templates"] = "/srv/nope"
    site.write()
    assert site.run("check", "--session", "alice") == 1
    assert "there is no folder /srv/nope" in capsys.readouterr().out


def test_keys_that_are_not_there(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    (site.folder / "state" / "ca" / "user_ca").unlink()
    assert site.run("check", "--session", "alice") == 1
    assert "run `slipway init`" in capsys.readouterr().out


@pytest.mark.parametrize("number", [*SIGNALS, signal.SIGINT])
def test_signals_end_it_once(number: signal.Signals) -> None:
    before, cleaned = signal.getsignal(number), []

    def interrupted() -> None:
        with ended_by_signals():
            try:
                signal.raise_signal(number)
            finally:
                signal.raise_signal(number)
                cleaned.append(number)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert cleaned == [number]
    assert signal.getsignal(number) is before
