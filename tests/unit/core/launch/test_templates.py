"""Templates: applied before the request is checked, and whether they fit."""

from __future__ import annotations

from typing import Any

import pytest

from portal.core.cluster.gpu_offers import NO_GPUS
from portal.core.cluster.inventory import Partition
from portal.core.launch.request import LaunchRequest, parse_launch
from portal.core.launch.templates import Template, fill, options_with
from portal.core.policy import misfit
from portal.core.site_rules import SiteRules
from portal.core.slurm_options import NO_OPTIONS, SlurmOptions
from portal.errors import FieldError, InvalidRequest

SMALL = Template(name="small", title="Small", cpus=1, memory_mb=1536)
BIG = Template(
    name="big",
    title="Big",
    cpus=8,
    memory_mb=8192,
    shared_memory_mb=1024,
    time_limit=90,
    resource_group="long",
)
ASKED = {"environment": "python", "template": "big"}
NO_CAP = SiteRules()
MAIN = Partition("main", True, True, 4, 4096, 60)
LONG = Partition("long", False, True, 16, 16384, None)


def filled(**more: object) -> Any:
    return fill(ASKED | more, [SMALL, BIG])


def test_a_template_supplies_its_fields() -> None:
    request = parse_launch(filled())
    assert (request.resources.cpus, request.resources.memory) == (8, 8192)
    assert request.resources.shared_memory == 1024
    assert (request.time_limit, request.resource_group) == (90, "long")


def test_fields_missing_in_it_stay_open() -> None:
    request = parse_launch(filled(template="small"))
    assert request.resources.shared_memory is None
    assert (request.time_limit, request.resource_group) == (None, None)


def test_explicit_fields_override_it() -> None:
    request = parse_launch(filled(time_limit=10, resource_group="main", name=None, count=2))
    assert (request.time_limit, request.resource_group, request.count) == (10, "main", 2)
    assert parse_launch(filled(time_limit=None, resource_group=None)).time_limit == 90


def test_slurms_options_come_from_it_unless_others_are_chosen() -> None:
    options: dict[str, Any] = {"account": "physics", "qos": "long", "exclusive": True}
    special = SMALL.model_copy(update=options)
    asked = ASKED | {"template": "small"}

    def launched(**more: object) -> SlurmOptions:
        return parse_launch(fill(asked | more, [special])).slurm

    assert launched() == SlurmOptions(**options)
    assert launched(qos=None).qos == "long"
    assert launched(qos="short", exclusive=False) == SlurmOptions("physics", "short")
    assert options_with(special, SlurmOptions(qos="short", constraint="ssd")) == SlurmOptions(
        "physics", "short", constraint="ssd", exclusive=True
    )
    assert options_with(SMALL, NO_OPTIONS) == NO_OPTIONS


def test_a_template_whose_options_slurm_refuses_does_not_fit() -> None:
    special = SMALL.model_copy(update={"qos": "long"})

    def refused(request: LaunchRequest) -> list[FieldError]:
        return [FieldError("qos", "not for you")] if request.qos == "long" else []

    def why(template: Template, chosen: SlurmOptions = NO_OPTIONS) -> str:
        return misfit(template, [MAIN], NO_CAP, NO_GPUS, chosen=chosen, refused=refused)

    assert (why(special), why(SMALL)) == ("not for you", "")
    assert why(special, SlurmOptions(qos="short")) == ""
    assert why(SMALL, SlurmOptions(qos="long")) == "not for you"


@pytest.mark.parametrize("data", [None, [], "template", {"environment": "python"}, {}])
def test_without_one_nothing_changes(data: object) -> None:
    assert fill(data, [BIG]) == data
    assert fill({"template": None, "x": 1}, [BIG]) == {"x": 1}


@pytest.mark.parametrize(
    "more",
    [
        {"template": "huge"},
        {"template": ""},
        {"template": 7},
        {"template": ["big"]},
        {"template": {}},
        {"resources": {"cpus": 1, "memory": "1g"}},
        {"resources": None},
        {"resources": []},
    ],
)
def test_the_field_is_named(more: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        filled(**more)
    assert [error.field for error in caught.value.errors] == ["template"]


def test_an_empty_part_of_a_form_does_not_override_it() -> None:
    assert parse_launch(filled(resources={})).resources.cpus == 8


def test_whether_it_fits() -> None:
    assert misfit(SMALL, [MAIN, LONG], NO_CAP, NO_GPUS) == ""
    assert misfit(BIG, [MAIN, LONG], NO_CAP, NO_GPUS) == ""
    assert misfit(BIG, None, NO_CAP, NO_GPUS) == ""
    assert misfit(BIG, [MAIN], NO_CAP, NO_GPUS) == "choose one of: main"
    assert misfit(SMALL, [], NO_CAP, NO_GPUS).startswith(
        "Slurm lets your account use no resource group"
    )
    assert misfit(BIG, [MAIN, LONG], NO_CAP, NO_GPUS, "main") == (
        "8 is too many: the largest node here has 4 cores; "
        "8 GB is too much: the largest node here has 4g; "
        "1 h 30 min is too long: sessions here may run 1 h at most"
    )

    capped = misfit(BIG, [LONG], SiteRules(max_shared_memory_mb=512), NO_GPUS)
    assert capped == "1 GB is too much: an administrator allows 0.5 GB at most"


def test_a_contradictory_template_fits_nobody() -> None:
    odd = SMALL.model_copy(update={"shared_memory_mb": 2048})
    assert "shared memory is part of the memory" in misfit(odd, [MAIN], NO_CAP, NO_GPUS)
