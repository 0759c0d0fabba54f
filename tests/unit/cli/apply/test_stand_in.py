"""While the worker of one of several hosts is restarted, somebody else follows the database."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

from portal.adapters.haproxy.agent import AgentSocket, follows
from portal.cli.apply import stand_in
from portal.cli.apply.stand_in import StandIn
from portal.config import Settings, load_settings
from tests.unit.cli.apply.site import Site


@pytest.fixture
def settings(site: Site) -> Settings:
    """One of several hosts."""
    text = site.config.read_text().replace("[state]\n", '[state]\nhosts = "several"\n')
    site.config.write_text(text)
    return load_settings(str(site.config))


@pytest.fixture
def worker(settings: Settings) -> Iterator[AgentSocket]:
    """The worker's answers."""
    made = AgentSocket(settings.state.run, lambda: True)
    made.start()
    yield made
    made.stop()


def test_somebody_answers_all_the_time(
    site: Site, settings: Settings, worker: AgentSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = settings.state.run
    ended: list[bool] = []
    monkeypatch.setattr(StandIn, "_until", noting(StandIn._until, ended))
    with StandIn(settings, site.config, time.sleep):
        assert worker.is_replaced()
        until = time.monotonic() + 2.0  # longer than one look is believed
        while time.monotonic() < until:
            assert follows(run)
            time.sleep(0.1)
        new = AgentSocket(run, lambda: True)
        new.start()
    assert ended == [True, True], "it began, and has ended by itself"
    assert follows(run)
    new.stop()


def noting(until: object, ended: list[bool]) -> object:
    """The function, whose results are noted."""

    def noted(*words: object) -> bool:
        ended.append(until(*words))  # type: ignore[operator]
        return ended[-1]

    return noted


def test_nobody_can(
    site: Site, settings: Settings, worker: AgentSocket,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(stand_in, "slipway", lambda *_words: [sys.executable, "-c", "exit(1)"])
    with StandIn(settings, site.config, time.sleep):
        assert not worker.is_replaced()
    assert "nobody stands in" in capsys.readouterr().err


@pytest.mark.parametrize("several", [False, True])
def test_nobody_is_needed_where_nobody_answers(
    site: Site, settings: Settings, several: bool
) -> None:
    """With one host, or one that is shut off anyway."""
    state = settings.state.model_copy(update={"hosts": "several" if several else "one"})
    made = StandIn(settings.model_copy(update={"state": state}), site.config, time.sleep)
    with made:
        assert made._process is None
