"""The spawn form: the portal's offers as fields, and the fields as the portal's request."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from portal.client import Client
from portal.client_offers import Choice, Offers
from portal.core.cluster.limits import Association, Limits, Qos
from portal.hub.form import chosen_before, options_from_form, page
from tests.support.fakes import World


class Fields(HTMLParser):
    """Names of the fields with their choices, and what they are labelled with."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.choices: dict[str, list[str]] = {}
        self.ids: set[str] = set()
        self.labelled: set[str] = set()
        self._select = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a field, a choice or a label."""
        at = dict(attrs)
        if tag in ("input", "select", "textarea"):
            self._select = at["name"] or ""
            self.ids.add(at["id"] or "")
            self.choices.setdefault(self._select, [])
            if at.get("type") == "checkbox":
                self.choices[self._select].append(at["value"] or "")
        elif tag == "option":
            self.choices[self._select].append(at["value"] or "")
        elif tag == "label":
            self.labelled.add(at["for"] or "")


def test_the_form_has_what_the_portal_offers(client: Client) -> None:
    fields = Fields(page(client.offers()))
    assert fields.ids == fields.labelled
    assert "python/3.13" in fields.choices["image"]
    assert set(fields.choices) >= {"image", "cpus", "memory", "time_limit", "env"}


def test_words_of_the_site_are_escaped() -> None:
    offers = Offers.model_validate(
        {
            "environments": [
                {
                    "name": "a",
                    "title": "x",
                    "versions": [{"version": "1", "title": "<script>", "apps": []}],
                }
            ],
            "resource_groups": [],
            "templates": [{"name": 'x"y', "title": "<b>", "fits": True}],
            "folders": [{"name": "a&b", "path": "/<i>", "mountable": True}],
        }
    )
    text = page(offers)
    assert not [tag for tag in ("<script>", "<b>", "<i>", 'x"y') if tag in text]


def test_images_with_the_server_come_first_and_others_say_so() -> None:
    versions = [
        {"version": "1", "title": "Debian", "apps": [{"name": "terminal"}]},
        {"version": "2", "title": "Python", "apps": [{"name": "jupyterhub"}]},
    ]
    offers = Offers.model_validate(
        {
            "environments": [{"name": "e", "title": "E", "versions": versions}],
            "resource_groups": [],
            "templates": [],
            "folders": [],
        }
    )
    text = page(offers)
    assert Fields(text).choices["image"] == ["e/2", "e/1"]
    assert "Debian (not known to have JupyterHub&#x27;s server)" in text


@pytest.mark.parametrize(
    ("form", "options"),
    [
        (
            {"image": ["python/3.13"], "cpus": ["2"], "memory": ["1 GB"], "time_limit": [""]},
            {
                "environment": "python",
                "version": "3.13",
                "resources": {"cpus": 2, "memory": "1 GB"},
            },
        ),
        (
            {"image": ["python/3.13"], "template": ["small"], "cpus": ["2"], "memory": ["1 GB"]},
            {"environment": "python", "version": "3.13", "template": "small"},
        ),
        (
            {"gpu": ["demo/0.5"], "cpus": ["two"], "mounts": ["home", "data"], "env": ["A=1\nB=x"]},
            {
                "resources": {"cpus": "two", "fgpu": 0.5, "gpu_kind": "demo"},
                "mounts": [{"folder": "home"}, {"folder": "data"}],
                "env": {"A": "1", "B": "x"},
            },
        ),
        ({}, {"resources": {}}),
    ],
)
def test_fields_become_the_portals_request(
    form: dict[str, list[str]], options: dict[str, Any]
) -> None:
    assert options_from_form(form) == options


def test_a_wrong_line_of_a_variable_is_named() -> None:
    with pytest.raises(ValueError, match="write line 2 as NAME=value"):
        options_from_form({"env": ["A=1\nnonsense"]})


GROUPS = [
    {"name": "main", "default": True, "max_cpus": 2, "max_memory": "3g", "max_time_limit": 480,
     "default_time_limit": 90, "gpus": [{"kind": "demo", "title": "Demo", "amounts": [
         {"fgpu": 0.5}, {"fgpu": 1.0}]}]},
    {"name": "long", "default": False, "max_cpus": 1, "max_memory": "1g"},
]  # fmt: skip
OFFERS = Offers.model_validate(
    {
        "environments": [
            {
                "name": "python",
                "title": "Python",
                "versions": [
                    {"version": "3.13", "title": "3.13", "apps": [{"name": "jupyterhub"}]},
                    {"version": "3.11", "title": "3.11", "apps": []},
                ],
            }
        ],
        "resource_groups": GROUPS,
        "templates": [{"name": "small", "title": "Small", "fits": True}],
        "folders": [{"name": "home", "path": "/home/alice", "mountable": True}],
    }
)


def test_partitions_say_their_limits_and_the_usual_time_limit_is_shown() -> None:
    text = page(OFFERS)
    assert "main (up to 2 cores, 3 GB, 8 h)" in text
    assert "long (up to 1 core, 1 GB)" in text
    assert 'value="main" selected' in text
    assert 'placeholder="1 h 30 min"' in text


def test_the_last_choices_are_proposed_again() -> None:
    form = {
        "image": ["python/3.11"], "cpus": ["2"], "memory": ["1 GB"], "gpu": ["demo/0.5"],
        "resource_group": ["long"], "time_limit": ["2 h"], "mounts": ["home"],
        "env": ["KEY=secret"],
    }  # fmt: skip
    text = page(OFFERS, last=options_from_form(form))
    for shown in (
        'value="python/3.11" selected',
        'name="cpus" value="2"',
        'name="memory" value="1 GB"',
        'value="demo/0.5" selected',
        'value="long" selected',
        'name="time_limit" value="2 h"',
        'value="home" checked',
    ):
        assert shown in text
    assert "secret" not in text
    assert 'value="small" selected' in page(OFFERS, last={"template": "small"})


@pytest.mark.parametrize(
    "last", [{"resources": "x", "mounts": "y"}, {"resources": {"fgpu": "<"}, "mounts": [1, {}]}]
)
def test_odd_options_of_an_earlier_start_are_no_problem(last: dict[str, Any]) -> None:
    assert Fields(page(OFFERS, last=last)).choices.keys() == Fields(page(OFFERS)).choices.keys()


CHOICE = Choice.model_validate(
    {
        "accounts": [
            {"name": "research", "title": "research", "default": True},
            {"name": "crystals", "title": "Crystal <growth>", "note": "75 core hours left"},
        ],
        "qos": [{"name": "normal", "default": True}],
        "reservations": [{"name": "course"}],
    }
)


def test_slurms_options_are_asked_for_where_there_is_more_than_one() -> None:
    text = page(OFFERS.model_copy(update={"choice": CHOICE}))
    fields = Fields(text)
    assert fields.choices["account"] == ["", "crystals"]
    assert fields.choices["reservation"] == ["", "course"]
    assert "qos" not in fields.choices
    assert "research (default)" in text
    assert "crystals: Crystal &lt;growth&gt; (75 core hours left)" in text
    assert fields.ids == fields.labelled
    assert not {"account", "qos", "reservation"} & set(Fields(page(OFFERS)).choices)


def test_the_default_account_is_not_sent_and_the_last_one_is_proposed() -> None:
    assert "account" not in options_from_form({"account": [""], "reservation": [""]})
    last = options_from_form({"account": ["crystals"], "qos": ["long"], "reservation": ["course"]})
    assert chosen_before(last) == {"account": "crystals", "qos": "long", "reservation": "course"}
    text = page(OFFERS.model_copy(update={"choice": CHOICE}), last=last)
    assert 'value="crystals" selected' in text
    assert 'value="course" selected' in text
    assert chosen_before(["account"]) == chosen_before({"account": 7, "qos": ""}) == {}


def test_the_portals_offers_follow_an_earlier_choice(client: Client, world: World) -> None:
    world.status.save_partitions(world.scheduler.partitions())
    world.status.save_limits(
        Limits(
            enforced=("associations", "limits", "qos"),
            default_accounts={"alice": "research"},
            associations=(
                Association("research", "alice", qos=("normal",)),
                Association("crystals", "alice", qos=("normal", "long")),
            ),
            qos=(Qos("normal"), Qos("long")),
        )
    )
    names = [one.name for one in client.offers().choice.accounts]
    assert names == ["research", "crystals"]
    every = [("normal", ""), ("long", "with account crystals")]
    assert [(one.name, one.note) for one in client.offers().choice.qos] == every
    chosen = client.offers(account="crystals").choice
    assert [(one.name, one.note) for one in chosen.qos] == [("normal", ""), ("long", "")]
    assert Fields(page(client.offers())).choices["qos"] == ["", "normal", "long"]
    for gone in ("law", "two words"):  # no longer open, or never a name
        assert [one.name for one in client.offers(account=gone).choice.accounts] == names
