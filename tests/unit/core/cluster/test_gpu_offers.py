"""What a request for a GPU is granted in a group, and the text of its refusal."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from portal.core.cluster.effective_limits import partitions_for
from portal.core.cluster.gpu_offers import NO_GPUS, Gpus
from portal.core.cluster.inventory import NodeGpus, Partition
from portal.core.cluster.limits import Association, Limits, Qos, Tres
from portal.core.launch.request import parse_launch
from portal.core.launch.templates import Template
from portal.core.policy import decide, misfit
from portal.core.site_rules import SiteRules
from portal.errors import InvalidRequest
from portal.node.common.fgpu import GpuKind, Slice, to_number
from tests.support.fakes import CATALOG

NO_LIMIT = Tres()
HALF = Fraction(1, 2)
A100 = GpuKind("a100", "NVIDIA A100", 40_960, Fraction(1), Fraction(1, 4))
H200 = GpuKind("h200", "NVIDIA H200", 143_360, HALF, HALF)
MIG = GpuKind("1g.18gb", "An eighth of an H200", 18_432, Fraction(8), Fraction(1), "mig")
SITE = Gpus((A100, H200, MIG))
DEMO = Gpus((GpuKind("", "Demo", 8192, HALF, HALF),))

MAIN = Partition("main", True, True, 4, 4096, 60)
GPU = replace(
    MAIN,
    name="gpu",
    default=False,
    gpus=(NodeGpus("h200", 2, 8), NodeGpus("a100", 1, 4), NodeGpus("1g.18gb", 7), NodeGpus("x", 1)),
)
PLAIN = replace(MAIN, gpus=(NodeGpus("", 1, 4),))


def grant(
    *groups: Partition, site: Gpus = SITE, group: str | None = None, **asked: object
) -> Slice | None:
    """The grant for a request."""
    data = {"environment": "python", "resources": {"memory": "1g", **asked}}
    request = parse_launch(data | {"resource_group": group})
    return decide(request, CATALOG, list(groups) or None, SiteRules(), site).gpu


def refusal(*groups: Partition, **asked: Any) -> tuple[str, str]:
    """The field and text of a refusal."""
    with pytest.raises(InvalidRequest) as caught:
        grant(*groups, **asked)
    (error,) = caught.value.errors
    return error.field, error.message


def test_without_a_request_there_is_no_gpu() -> None:
    assert grant(GPU) is None
    assert grant(MAIN, site=NO_GPUS) is None


def test_the_amount_is_rounded_up_to_an_offered_one() -> None:
    found = grant(GPU, fgpu=0.3)
    assert found == Slice("a100", HALF, 2, 0, 20_480, 50)


def test_the_first_configured_kind_that_the_group_has() -> None:
    found = grant(replace(GPU, gpus=GPU.gpus[:1]), fgpu=0.3)
    assert found is not None
    assert (found.kind, found.gres) == ("h200", "shard:h200:1")
    named = grant(GPU, fgpu=3, gpu_kind="h200")
    assert named is not None
    assert (named.gres, named.fgpu, named.memory_mb) == ("gpu:h200:2", Fraction(4), 286_720)
    mig = grant(GPU, fgpu=0.1, gpu_kind="1g.18gb")
    assert mig is not None
    assert (mig.gres, mig.fgpu) == ("gpu:1g.18gb:1", Fraction(1, 8))


def test_gpus_without_a_type() -> None:
    found = grant(PLAIN, site=DEMO, fgpu=0.5)
    assert found == Slice("", HALF, 1, 0, 2048, 25)
    assert grant(GPU, site=DEMO, fgpu=0.5) == found  # the only kind stands for all


def test_before_slurm_is_read_only_the_settings_limit() -> None:
    found = grant(fgpu=3)
    assert found is not None
    assert found.gres == "gpu:a100:3"
    assert refusal(fgpu=1, gpu_kind="1g.18gb") == (
        "resources.fgpu", "a session here can have 0.125 fGPU at most",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("group", "asked", "field", "text"),
    [
        ("main", {"fgpu": 1}, "fgpu", "main has no GPUs; choose the resource group gpu"),
        ("gpu", {"fgpu": 1.5}, "fgpu", "a session here can have 1 fGPU at most"),
        ("gpu", {"fgpu": 9, "gpu_kind": "h200"}, "fgpu", "a session here can have 4 fGPU at most"),
        ("gpu", {"fgpu": 1, "gpu_kind": "v100"}, "gpu_kind", "choose one of: a100, h200, 1g.18gb"),
        ("gpu", {"gpu_kind": "a100"}, "gpu_kind", "also set how much of it (fgpu)"),
        ("gpu", {"fgpu": 0}, "fgpu", "write an amount above 0, for example 0.5"),
        ("gpu", {"fgpu": float("nan")}, "fgpu", "write an amount above 0, for example 0.5"),
        ("gpu", {"fgpu": True}, "fgpu", "this must be a number, for example 0.5"),
        ("gpu", {"fgpu": "1"}, "fgpu", "this must be a number, for example 0.5"),
    ],
)
def test_impossible_requests(group: str, asked: dict[str, Any], field: str, text: str) -> None:
    assert refusal(MAIN, GPU, group=group, **asked) == (f"resources.{field}", text)


def test_a_site_without_gpus() -> None:
    words = ("resources.fgpu", "there are no GPUs here")
    assert refusal(GPU, site=NO_GPUS, fgpu=1) == words
    assert refusal(MAIN, fgpu=1) == ("resources.fgpu", "main has no GPUs")
    unshared = replace(MAIN, gpus=(NodeGpus("", 1, 0),))
    assert "no shards" in refusal(unshared, site=DEMO, fgpu=1)[1]


def test_an_unknown_group_is_the_only_error() -> None:
    assert refusal(MAIN, GPU, group="nowhere", fgpu=1)[0] == "resource_group"


def limits(user: Tres, account: Tres = NO_LIMIT) -> Limits:
    """Per-user limits of the QOS, and limits of the account."""
    return Limits(
        ("associations", "limits"),
        {"alice": "lab"},
        (Association("lab", "alice", default_qos="normal"), Association("lab", group=account)),
        (Qos("normal", user=user),),
    )


def test_the_limits_origin_is_named_in_fgpu() -> None:
    (group,) = partitions_for("alice", [GPU], limits(Tres(shards=2, gpus=1), Tres(shards=3)))
    assert (group.max_shards, group.max_gpus) == (2, 1)
    expected = "you may use 0.5 fGPU at once (QOS normal, MaxTRESPerUser)"
    assert refusal(group, fgpu=0.6) == ("resources.fgpu", expected)
    expected = "you may use 1 fGPU at once (QOS normal, MaxTRESPerUser)"
    assert refusal(group, fgpu=1.5, gpu_kind="h200") == ("resources.fgpu", expected)
    (group,) = partitions_for("alice", [GPU], limits(Tres(), Tres(shards=3)))
    expected = "account lab may use 0.75 fGPU at once (GrpTRES)"
    assert refusal(group, fgpu=1) == ("resources.fgpu", expected)


def test_whole_gpus_have_a_limit_of_their_own() -> None:
    (group,) = partitions_for("alice", [GPU], limits(Tres(gpus=1)))
    two = {"fgpu": 4, "gpu_kind": "h200"}
    assert refusal(group, **two)[1] == "you may use 2 fGPU at once (QOS normal, MaxTRESPerUser)"
    (group,) = partitions_for("alice", [GPU], limits(Tres(shards=1)))
    found = grant(group, fgpu=0.125, gpu_kind="1g.18gb")
    assert found is not None  # Slurm does not track shards of it


def test_the_offers_of_a_group() -> None:
    a100, h200, mig = SITE.offers(GPU)
    assert [to_number(one.fgpu) for one in a100.amounts] == [0.25, 0.5, 0.75, 1]
    assert [to_number(one.fgpu) for one in h200.amounts] == [0.5, 1, 1.5, 2, 4]
    assert [one.memory_mb for one in mig.amounts] == [18_432]
    assert SITE.offers(MAIN) == []
    (group,) = partitions_for("alice", [GPU], limits(Tres(shards=0)))
    assert [offer.kind for offer in SITE.offers(group)] == [MIG]


def test_templates_request_gpus_too() -> None:
    template = Template(name="t", title="T", cpus=1, memory_mb=1024, fgpu=0.5, gpu_kind="a100")
    assert misfit(template, [GPU], SiteRules(), SITE) == ""
    assert misfit(template, [MAIN], SiteRules(), SITE) == "main has no GPUs"
    assert misfit(template, [MAIN, GPU], SiteRules(), SITE, "gpu") == ""


def test_titles() -> None:
    assert SITE.title("a100") == "NVIDIA A100"
    assert SITE.title("gone") == "gone"
    assert DEMO.title("") == "Demo"
