"""Requests that can never be granted are refused with a reason; the rest is up to Slurm."""

from __future__ import annotations

from typing import Any

import pytest

from portal.core.cluster.gpu_offers import NO_GPUS
from portal.core.cluster.inventory import Partition
from portal.core.launch.request import parse_launch
from portal.core.policy import decide, with_refusals
from portal.core.site_rules import SiteRules
from portal.errors import FieldError, InvalidRequest
from tests.support.fakes import CATALOG

GROUPS = [
    Partition("main", True, True, 4, 3500, 480),
    Partition("big", False, True, 64, 512_000, None),
]


def ask(**changes: Any) -> str:
    """The image that a request would run."""
    data = {"environment": "python", "resources": {"cpus": 1, "memory": "1g"}, **changes}
    return decide(parse_launch(data), CATALOG, GROUPS, SiteRules(), NO_GPUS).image.version


def test_the_selected_version_or_the_newest() -> None:
    assert ask() == "3.13"
    assert ask(version="3.12") == "3.12"


def test_a_retired_version_cannot_be_launched() -> None:
    retired = CATALOG.images[1].model_copy(update={"retired": True})
    catalog = CATALOG.model_copy(update={"images": CATALOG.images[:1], "retired": (retired,)})
    request = {"environment": "python", "resources": {"cpus": 1, "memory": "1g"}}
    launch = parse_launch({**request, "version": retired.version})
    with pytest.raises(InvalidRequest) as caught:
        decide(launch, catalog, GROUPS, SiteRules(), NO_GPUS)
    (error,) = caught.value.errors
    assert error.field == "version"
    assert error.message == "python 3.12 was retired by an administrator; choose 3.13"
    newest = decide(parse_launch(request), catalog, GROUPS, SiteRules(), NO_GPUS)
    assert newest.image.version == "3.13"


def test_a_bigger_group_has_room() -> None:
    assert ask(resource_group="big", resources={"cpus": 64, "memory": "500g"}, time_limit=9999)


@pytest.mark.parametrize(
    ("changes", "field", "word"),
    [
        ({"environment": "rust"}, "environment", "rust"),
        ({"version": "2.7"}, "version", "2.7"),
        ({"resource_group": "nowhere"}, "resource_group", "main, big"),
        ({"resources": {"cpus": 5, "memory": "1g"}}, "resources.cpus", "4 cores"),
        ({"resources": {"cpus": 1, "memory": "4g"}}, "resources.memory", "3500m"),
        ({"time_limit": 481}, "time_limit", "8 h"),
    ],
)
def test_a_request_that_never_fits_names_the_limit(
    changes: dict[str, Any], field: str, word: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        ask(**changes)
    (error,) = caught.value.errors
    assert error.field == field
    assert word in error.message


def test_a_refused_group_says_what_is_open_instead() -> None:
    refused = [FieldError("resource_group", "main is closed to account physics")]
    others = [FieldError("resource_group", "choose one of: short"), FieldError("version", "gone")]
    assert with_refusals(refused, others) == [
        FieldError("resource_group", "main is closed to account physics; choose one of: short"),
        FieldError("version", "gone"),
    ]


def test_a_refused_account_says_nothing_about_groups() -> None:
    refused = [FieldError("account", "you are not in account physics")]
    assert with_refusals(refused, [FieldError("resource_group", "choose one of: short")]) == refused
