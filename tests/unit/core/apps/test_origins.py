"""The assignment of ports to apps, and the addresses of apps."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from portal.core.apps.origins import (
    BAD_PORTS,
    KnownOrigins,
    Origin,
    OriginRequest,
    Origins,
    OriginUse,
    PortChooser,
    PortPolicy,
    choose_name,
    claim_origin,
)

SITE = Origins("http", "ports", "apps.localhost", "127.0.0.1", 8080, (10078, 10082), (10083, 10085))


def test_ports_that_browsers_refuse_are_left_out() -> None:
    assert SITE.usable("web") == [10078, 10079, 10081, 10082]
    assert SITE.label_at("127.0.0.1:10079") == "10079"
    assert SITE.label_at("127.0.0.1:10080") is None
    assert not SITE.fits("10080", "web")


def test_ssh_may_use_ports_that_browsers_refuse() -> None:
    site = replace(SITE, ports=(10083, 10085), ssh_ports=(10078, 10082))
    assert site.usable("ssh") == [10078, 10079, 10080, 10081, 10082]
    assert site.fits("10080", "ssh")


def test_names_and_ports_side_by_side() -> None:
    both = replace(SITE, mode="subdomains")
    name = "0a" * 10
    assert both.url("10079") == "http://127.0.0.1:10079"
    assert both.url(name) == f"http://{name}.apps.localhost:8080"
    for label in ("10079", name):
        assert both.label_at(both.url(label).removeprefix("http://")) == label
        assert both.fits(label, "web")
    assert both.label_at("127.0.0.1:8080") is None
    alone = replace(both, ports=None)
    assert alone.usable("web") == []
    assert not alone.fits("10079", "web")
    assert alone.label_at("127.0.0.1:10079") is None
    assert not SITE.fits(name, "web")
    assert SITE.label_at(f"{name}.apps.localhost:8080") is None


def test_a_number_in_other_digits_is_not_a_port() -> None:
    for odd in ("010079", "\u0661\u0660\u0660\u0667\u0669", "+10079", "10079 "):
        assert SITE.label_at(f"127.0.0.1:{odd}") is None
        assert not SITE.fits(odd, "web")


def test_the_list_is_from_the_standard() -> None:
    # Those that a site might well choose: X11, SIP, IRC, Amanda.
    assert {6000, 5060, 5061, 6667, 6697, 10080} < BAD_PORTS
    assert len(BAD_PORTS) == 19
    assert min(BAD_PORTS) >= 1024
    assert not {8080, 8443, 8888, 10000, 10079, 10081} & BAD_PORTS


NOW = datetime(2026, 11, 20, tzinfo=UTC)
RULES = PortPolicy(per_person=2, quarantine=timedelta(days=30))
LAB = OriginUse("alice", "python", "3.13", "jupyterlab")
ALICE = OriginRequest(LAB, "web", keep=True, may_be_public=False)
PUBLIC = OriginRequest(replace(LAB, app="webapp"), "web", keep=False, may_be_public=True)


def released(
    port: int, use: OriginUse, days: int = 1, *, kept: bool = False, shared: bool = False
) -> Origin:
    """A port that was released this many days ago."""
    return Origin(str(port), use, kept, shared, "m", NOW - timedelta(days=days))


def chooser(
    *known: Origin, taken: tuple[int, ...] = (), wanted: OriginRequest = ALICE
) -> PortChooser:
    """Choose among the ports 1 to 3."""
    origins = KnownOrigins(
        {str(port) for port in taken}, {origin.label: origin for origin in known}
    )
    return PortChooser([1, 2, 3], origins, wanted, RULES, NOW)


BOBS = replace(LAB, owner="bob")
OTHER = replace(LAB, app="terminal")


@pytest.mark.parametrize(
    ("known", "taken", "port"),
    [
        ([], (), 1),
        ([], (1,), 2),
        ([released(3, LAB)], (), 3),
        ([released(3, LAB)], (3,), 1),
        ([released(2, OTHER)], (), 2),
        ([released(2, OTHER, kept=True)], (), 1),
        ([released(2, OTHER, kept=True), released(1, BOBS), released(3, BOBS)], (), 2),
        ([released(1, BOBS)], (), 2),
        ([released(1, BOBS), released(2, BOBS), released(3, BOBS)], (), None),
        ([released(1, BOBS, 31), released(2, BOBS, 40), released(3, BOBS)], (), 2),
        ([released(1, BOBS, 31), released(2, BOBS, 40)], (), 3),
        ([released(1, LAB), released(2, OTHER)], (1, 2), None),
        ([released(1, LAB, 31), released(2, OTHER, 31)], (), 1),
    ],
)  # fmt: skip
def test_ports_are_chosen_own_first_then_unused_then_long_released(
    known: list[Origin], taken: tuple[int, ...], port: int | None
) -> None:
    """H1, C1: a released port stays its owner's, and users hold a limited number of ports."""
    assert chooser(*known, taken=taken).choose(min) == port


@pytest.mark.parametrize(
    ("known", "taken", "wanted", "words"),
    [
        ([], (), ALICE, ""),
        ([], (2,), ALICE, "Port 2 is taken"),
        ([released(2, BOBS)], (), ALICE, "Port 2 was another user's until recently"),
        ([released(2, BOBS, 30)], (), ALICE, ""),
        ([released(2, BOBS, 30)], (), PUBLIC, "Port 2 was another user's before"),
        ([released(2, LAB, shared=True)], (), ALICE, ""),
        ([released(2, LAB, shared=True)], (), PUBLIC, "Port 2 was another user's before"),
        ([released(1, LAB), released(3, LAB)], (), ALICE, "You hold 2 ports"),
        ([released(1, LAB), released(3, LAB, 31)], (), ALICE, ""),
        ([released(1, LAB), released(2, LAB)], (), ALICE, ""),
    ],
)
def test_a_preferred_port_gives_no_further_access(
    known: list[Origin], taken: tuple[int, ...], wanted: OriginRequest, words: str
) -> None:
    """H1: requesting a port gives access to no other ports."""
    assert chooser(*known, taken=taken, wanted=wanted).refusal(2).startswith(words)
    assert bool(chooser(*known, taken=taken, wanted=wanted).refusal(2)) == bool(words)


def test_ssh_needs_no_quarantine() -> None:
    wanted = replace(ALICE, kind="ssh")
    assert not chooser(released(2, BOBS), wanted=wanted).refusal(2)


def test_an_origin_is_marked_if_its_use_changes() -> None:
    first = claim_origin(None, "2", ALICE, NOW, "new")
    assert (first.mark, first.shared) == ("", False)
    assert claim_origin(first, "2", ALICE, NOW, "new").mark == ""
    image = replace(ALICE, use=replace(LAB, version="3.14"))
    second = claim_origin(first, "2", image, NOW, "new")
    assert (second.mark, second.shared) == ("new", False)
    third = claim_origin(second, "2", replace(ALICE, use=BOBS), NOW, "newer")
    assert (third.mark, third.shared) == ("newer", True)
    assert claim_origin(third, "2", ALICE, NOW, "newest").shared


def test_the_same_name_for_the_same_use_unless_it_is_taken() -> None:
    name = Origin("ab" * 10, LAB, kept=True, shared=False, mark="", used=NOW)
    known = {name.label: name}
    assert choose_name(KnownOrigins(set(), known), ALICE) == name.label
    assert choose_name(KnownOrigins({name.label}, known), ALICE) is None
    assert choose_name(KnownOrigins(set(), known), replace(ALICE, keep=False)) is None
    assert choose_name(KnownOrigins(set(), known), replace(ALICE, use=BOBS)) is None
    port = {"2": released(2, LAB, kept=True)}
    assert choose_name(KnownOrigins(set(), port), ALICE) is None
