"""Nobody learns of others' accounts, QOS, reservations and budgets by what may be chosen.

Names that exist are refused in the words for names that do not, and no list has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.client import SMALL, Api, Browser, Json
from tests.support.cluster import Cluster, wait_for

ACCOUNT, QOS, RESERVATION = "alices_secret", "alices_qos", "alices_nodes"
BUDGET = 7654321
WORDS = "alices_description"
MAKE = (
    f"add account {ACCOUNT} Description={WORDS} Organization=demo GrpTRESMins=cpu={BUDGET}",
    f"add qos {QOS} Description={WORDS}",
    f"add user alice Account={ACCOUNT}",
    f"modify user alice where Account={ACCOUNT} set QOS+={QOS}",
)
REMOVE = (
    f"remove user alice Account={ACCOUNT}",
    f"remove account {ACCOUNT}",
    f"remove qos {QOS}",
)
NOWHERE = {ACCOUNT: "nobodys_secret", QOS: "nobodys_qos", RESERVATION: "nobodys_nodes"}
SECRETS = (ACCOUNT, WORDS, str(BUDGET), "127572")  # the last one: the budget in hours


@pytest.fixture(scope="module")
def hers(cluster: Cluster, researcher: Api) -> Iterator[None]:
    """A second account of alice's with a budget, a QOS and a reservation, once they are known."""
    for change in MAKE:
        cluster.shell("ctl", f"sacctmgr -i -Q {change} || [ $? -eq 1 ]")
    reservation = f"ReservationName={RESERVATION} Users=alice Nodes=n1 StartTime=now+2days"
    cluster.shell("ctl", f"scontrol create {reservation} Duration=10 || true")

    def known() -> bool:
        found = researcher.ask("GET", f"/launch-options?account={ACCOUNT}")
        return QOS in _names(found["qos"]) and RESERVATION in _names(found["reservations"])

    wait_for("the portal has not read alice's account", known, 150, 2)
    yield
    cluster.shell("ctl", f"scontrol delete ReservationName={RESERVATION} || true")
    for change in REMOVE:
        cluster.shell("ctl", f"sacctmgr -i -Q {change} || [ $? -eq 1 ]")


def _names(offers: list[Json]) -> list[str]:
    return [one["name"] for one in offers]


def _same(text: str) -> str:
    """An answer with what does not exist in the place of what is hers."""
    for name, other in NOWHERE.items():
        text = text.replace(name, other)
    return text


@pytest.mark.usefixtures("hers")
def test_no_list_of_bobs_has_what_is_alices(bob: Api, cluster: Cluster) -> None:
    for path in ("/launch-options", "/accounts", "/resource-groups", "/usage"):
        answer = bob("GET", path)
        assert answer.status_code == 200, path
        assert not [word for word in (*SECRETS, QOS, RESERVATION) if word in answer.text], path
    browser = Browser(cluster, "bob")
    for page in ("/sessions/new", "/jobs/new", "/accounts", "/sessions"):
        text = browser.get(page).text
        assert not [word for word in (*SECRETS, QOS, RESERVATION) if word in text], page
    for everybody in ("true", "1", "yes"):
        answer = bob("GET", "/accounts", params={"everybody": everybody})
        assert answer.status_code in (403, 422)
        assert not [word for word in SECRETS if word in answer.text]


@pytest.mark.usefixtures("hers")
@pytest.mark.parametrize(
    "chosen",
    [
        {"account": ACCOUNT},
        {"account": ACCOUNT, "qos": QOS},
        {"account": ACCOUNT, "reservation": RESERVATION},
    ],
)
def test_an_account_of_alices_is_refused_as_one_that_nobody_has(bob: Api, chosen: Json) -> None:
    """By every address that takes one: the same status, and the same words."""
    before = [one["id"] for one in bob.list()]
    none = {name: NOWHERE.get(value, value) for name, value in chosen.items()}
    body = SMALL | {"image": None}
    plain = {"account": chosen["account"]}
    asked = [
        ("GET", "/launch-options", {"params": chosen}, {"params": none}),
        ("GET", "/resource-groups", {"params": plain}, {"params": {"account": none["account"]}}),
        ("GET", "/usage", {"params": plain}, {"params": {"account": none["account"]}}),
        ("POST", "/sessions/estimate", {"json": body | chosen}, {"json": body | none}),
        ("POST", "/sessions", {"json": body | chosen}, {"json": body | none}),
    ]
    for method, path, real, unreal in asked:
        answer, other = bob(method, path, **real), bob(method, path, **unreal)
        assert answer.status_code == other.status_code, (path, answer.text, other.text)
        accounts = re.compile(r"(account|QOS|reservation) \w+")
        hers, nobodys = _fields(answer.json(), "account"), _fields(other.json(), "account")
        assert [accounts.sub("", _same(one)) for one in hers] == [
            accounts.sub("", one) for one in nobodys
        ], path
        for word in (WORDS, str(BUDGET), "127572"):
            assert word not in answer.text, path
    assert [one["id"] for one in bob.list()] == before


def _fields(answer: Json, field: str) -> list[str]:
    """What is said of a field."""
    found = answer.get("errors") or answer.get("problems") or []
    return [one["message"] for one in found if one["field"] == field]


@pytest.mark.usefixtures("hers")
def test_a_reservation_of_alices_names_nobody(bob: Api) -> None:
    """Slurm's own commands list it, so that it exists is no secret; whose it is stays untold."""
    answer = bob("POST", "/sessions", json=SMALL | {"reservation": RESERVATION})
    assert answer.status_code == 422
    assert "alice" not in answer.text.replace(RESERVATION, "")


@pytest.mark.usefixtures("hers")
def test_a_composed_job_is_refused_as_well(bob: Api) -> None:
    body = {"script": "#!/bin/sh\ntrue\n", "account": ACCOUNT, "qos": QOS}
    none = body | {"account": NOWHERE[ACCOUNT], "qos": NOWHERE[QOS]}
    real, unreal = bob("POST", "/jobs", json=body), bob("POST", "/jobs", json=none)
    assert (real.status_code, unreal.status_code) == (422, 422)
    assert not [word for word in (WORDS, str(BUDGET)) if word in real.text]
    assert "account" in [one["field"] for one in real.json()["errors"]]


@pytest.mark.usefixtures("hers")
def test_alice_sees_them_herself(researcher: Api) -> None:
    """So that the tests above look for what would be shown."""
    accounts = researcher.ask("GET", "/accounts")["accounts"]
    (found,) = [one for one in accounts if one["name"] == ACCOUNT]
    assert found["title"] == WORDS
    assert found["budgets"][0]["total"] == round(BUDGET / 60, 2)
