"""Fractional GPUs over the REST API: offered, granted, waited for, used, launched again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portal.adapters.ssh.transport import Completed
from portal.core.admin.audit import AuditFilter
from portal.core.auth.person import Person
from portal.core.session.session import Session
from tests.support.fakes import World, make_world
from tests.support.slurm import FakeJob
from tests.unit.web.conftest import LAUNCH, Runner, make_settings, with_gpus

MakeApi = Callable[[str], Any]
Launched = Callable[..., Runner]
ADMIN = Person("admin", True, "x")
DEMO = {"kind": "demo", "title": "Demo GPU", "memory": "2g", "sm_percent": 25}
BEAT: dict[str, object] = {
    "cpu_seconds": 1.5,
    "memory_bytes": 123,
    "memory_limit": None,
    "oom_kills": 0,
    "apps": {},
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A portal whose node n1 has a GPU of 8 GB: 2 fGPU."""
    made = make_world(with_gpus(make_settings(tmp_path)))
    made.slurm.gres = {"n1": "gpu:demo:1,shard:demo:4"}
    made.slurm.per_user = "cpu=9,mem=9G,gres/shard=3"
    reconciler = made.worker
    reconciler.read_partitions()
    reconciler.read_limits()
    assert reconciler.poll()
    return made


def body(**asked: object) -> dict[str, Any]:
    """A launch that requests a GPU."""
    return LAUNCH | {"resources": LAUNCH["resources"] | asked}


def holding(world: World, job: FakeJob, tres: str) -> None:
    """The job runs with this allocation."""
    world.slurm.start(job)
    job.tres = f"cpu=1,mem=1G,node=1,billing=1,{tres}"


def poll_slurm(world: World, kept: Session) -> Session:
    """The session after another poll of Slurm."""
    reconciler = world.worker
    reconciler.read_partitions()
    assert reconciler.poll()
    found = world.store.get(kept.id)
    assert found is not None
    return found


def test_the_offer_describes_each_amount(api: MakeApi) -> None:
    answer = api("alice")("GET", "/resource-groups").json
    (group,) = answer["resource_groups"]
    (offer,) = group["gpus"]
    assert offer == {
        "kind": "demo",
        "title": "Demo GPU",
        "max_fgpu": 1.5,
        "bounded_by": "you may use 1.5 fGPU at once (QOS normal, MaxTRESPerUser)",
        "amounts": [
            {"fgpu": 0.5, "memory": "2g", "sm_percent": 25},
            {"fgpu": 1, "memory": "4g", "sm_percent": 50},
            {"fgpu": 1.5, "memory": "6g", "sm_percent": 75},
        ],
    }
    assert set(group["bounded_by"]) == {"cpus", "memory", "time"}


def test_the_granted_amount_is_launched(world: World, launched: Launched) -> None:
    session = launched(**body(fgpu=0.3, gpu_kind="demo")).session
    assert (session.fgpu, session.gpu_kind, session.gres) == (0.5, "demo", "shard:demo:1")
    assert (session.gpu_memory_mb, session.gpu_sm_percent) == (2048, 25)
    assert '"gpu": true' in world.slurm.jobs[0].spec
    assert '"gpu": false' in launched().job.spec
    entries = world.services.administration.events(ADMIN, AuditFilter(), 9, None)[0]
    assert any(", 0.5 fGPU demo, " in entry.detail for entry in entries)


def test_the_session_shows_its_slice(api: MakeApi, launched: Launched) -> None:
    runner = launched(**body(fgpu=0.3))
    shown = api("alice")("GET", f"/sessions/{runner.session.id}").json
    assert shown["resources"]["fgpu"] == 0.5
    assert shown["resources"]["gpu"] == DEMO


@pytest.mark.parametrize(
    ("asked", "field", "text"),
    [
        ({"fgpu": 2}, "resources.fgpu", "you may use 1.5 fGPU at once (QOS normal, "),
        ({"fgpu": 1, "gpu_kind": "x"}, "resources.gpu_kind", "choose one of: demo"),
        ({"gpu_kind": "demo"}, "resources.gpu_kind", "also set how much of it"),
        ({"fgpu": -1}, "resources.fgpu", "write an amount above 0"),
    ],
)
def test_refusals_change_nothing(
    world: World, api: MakeApi, asked: dict[str, object], field: str, text: str
) -> None:
    answer = api("alice")("POST", "/sessions", json=body(**asked))
    assert answer.status_code == 422
    (error,) = answer.json["errors"]
    assert error["field"] == field
    assert error["message"].startswith(text)
    assert world.slurm.jobs == []


def test_gpus_that_slurm_does_not_know_yet_are_no_refusal(world: World, api: MakeApi) -> None:
    world.slurm.refuse = "Invalid generic resource (gres) specification"
    answer = api("alice")("POST", "/sessions", json=body(fgpu=1))
    assert answer.status_code == 503
    assert "does not know the GPUs of its nodes yet" in answer.json["detail"]
    assert world.store.live() == []
    world.slurm.refuse = ""
    assert api("alice")("POST", "/sessions", json=body(fgpu=1)).status_code == 201


def test_the_plug_ins_message_replaces_slurms(world: World, api: MakeApi) -> None:
    own = "One GPU has 4 shards, and you asked for 9."
    last = "Invalid generic resource (gres) specification"
    output = f"sbatch: error: {own}\nsbatch: error: Batch job submission failed: {last}\n"
    world.slurm.refusal = Completed(1, b"", output)
    (error,) = api("alice")("POST", "/sessions", json=body(fgpu=1)).json["errors"]
    assert error == {"field": "resources.fgpu", "message": f"Slurm refused it: {own}"}


def test_the_estimate_reports_rounding(api: MakeApi) -> None:
    ask = api("alice")
    answer = ask("POST", "/sessions/estimate", json=body(fgpu=0.3)).json
    assert answer["gpu"] == {"asked": 0.3, "fgpu": 0.5, "rounded": True, **DEMO}
    assert answer["free"]["fgpu"] == 1.5
    exact = ask("POST", "/sessions/estimate", json=body(fgpu=1)).json
    assert exact["gpu"]["rounded"] is False
    assert ask("POST", "/sessions/estimate", json=LAUNCH).json["gpu"] is None


def test_the_third_bar(world: World, api: MakeApi, launched: Launched) -> None:
    ask = api("alice")
    assert ask("GET", "/usage").json["fgpu"] == {
        "mine": 0,
        "elsewhere": 0,
        "others": 0,
        "allowed": 1.5,
        "available": 1.5,
    }
    mine = launched(**body(fgpu=0.5))
    holding(world, mine.job, "gres/shard=1")
    holding(world, launched("bob", **body(fgpu=1)).job, "gres/shard=2")
    poll_slurm(world, mine.session)
    assert ask("GET", "/usage").json["fgpu"] == {
        "mine": 0.5,
        "elsewhere": 0,
        "others": 0.5,
        "allowed": 1.5,
        "available": 0.5,
    }
    assert (
        "until other sessions have ended: you may use 1.5 fGPU at once"
        in (ask("POST", "/sessions/estimate", json=body(fgpu=1.5)).json["reason"])
    )


@pytest.mark.parametrize("reason", ["Resources", "Priority"])
def test_waiting_for_a_share_is_shown(
    world: World, api: MakeApi, launched: Launched, reason: str
) -> None:
    for owner in ("alice", "bob"):
        holding(world, launched(owner, **body(fgpu=1)).job, "gres/shard=2")
    third, plain = launched("admin", **body(fgpu=1)), launched("admin")
    third.job.reason = plain.job.reason = reason
    poll_slurm(world, third.session)
    ask = api("admin")
    shown = ask("GET", f"/sessions/{third.session.id}").json["reason"]
    assert shown["text"] == "It waits for a GPU share: 2 of 2 fGPU are in use."
    assert (shown["code"], shown["advice"]) == (reason, "It starts by itself when there is room.")
    assert "GPU" not in ask("GET", f"/sessions/{plain.session.id}").json["reason"]["text"]
    world.slurm.gres = {}
    poll_slurm(world, third.session)  # the node is gone: nothing is known about GPUs
    assert "GPU" not in ask("GET", f"/sessions/{third.session.id}").json["reason"]["text"]
    world.slurm.gres = {"n1": "gpu:demo:1,shard:demo:4"}
    poll_slurm(world, third.session)
    assert "GPU" in ask("GET", f"/sessions/{third.session.id}").json["reason"]["text"]
    world.slurm.finish(world.slurm.jobs[0], "COMPLETED")
    poll_slurm(world, third.session)  # there is capacity now; why it still waits is unrelated
    shown = ask("GET", f"/sessions/{third.session.id}").json["reason"]
    assert "GPU" not in shown["text"]


def test_usage_of_the_gpu_is_shown(world: World, api: MakeApi, launched: Launched) -> None:
    runner = launched(**body(fgpu=0.5))
    runner.ready()
    more = {"gpu_memory_bytes": 5_000_000_000, "gpu_percent": 12.5, "gpu_kills": 1}
    assert runner("usage", BEAT | more).status_code == 200
    usage = api("alice")("GET", f"/sessions/{runner.session.id}").json["usage"]
    assert (usage["gpu_memory"], usage["gpu_percent"]) == (5_000_000_000, 12.5)
    assert usage["gpu_kills"] == 1
    unknown = {"gpu_memory_bytes": None, "gpu_percent": None}
    assert runner("usage", BEAT | unknown).status_code == 200
    usage = api("alice")("GET", f"/sessions/{runner.session.id}").json["usage"]
    assert (usage["gpu_memory"], usage["gpu_percent"], usage["gpu_kills"]) == (None, None, 0)


@pytest.mark.parametrize(
    "more", [{"gpu_memory_bytes": -1}, {"gpu_percent": -0.5}, {"gpu_kills": "1"}, {"gpu_kills": -1}]
)
def test_odd_figures_are_refused(launched: Launched, more: dict[str, object]) -> None:
    runner = launched(**body(fgpu=0.5))
    runner.ready()
    assert runner("usage", BEAT | more).status_code == 422


@pytest.mark.parametrize(("percent", "used"), [(None, False), (1.9, False), (2.0, True)])
def test_a_computing_gpu_keeps_its_session(
    world: World, launched: Launched, percent: float | None, used: bool
) -> None:
    runner = launched(**body(fgpu=0.5))
    runner.ready()
    runner("usage", BEAT)
    begun = world.clock()
    for _ in range(3):
        world.clock.advance(seconds=60)
        runner("usage", BEAT | {"gpu_percent": percent})
    session = world.store.get(runner.session.id)
    assert session is not None
    assert session.last_used is not None
    assert (session.last_used > begun) is used


def test_relaunches_and_presets_request_the_same(api: MakeApi, launched: Launched) -> None:
    first = launched(**body(fgpu=0.3)).session
    ask = api("alice")
    again = ask("POST", f"/sessions/{first.id}/relaunch").json["sessions"][0]
    assert again["resources"]["fgpu"] == 0.5
    assert again["resources"]["gpu"] == DEMO
    kept = ask("PUT", "/presets/mine", json=body(fgpu=0.3, gpu_kind="demo")).json
    assert kept["launch"]["resources"]["fgpu"] == 0.3
    made = ask("POST", "/presets/mine/launch").json["sessions"][0]
    assert made["resources"]["fgpu"] == 0.5


def test_templates_carry_a_gpu(api: MakeApi) -> None:
    resources = {"cpus": 1, "memory": "600m", "fgpu": 0.4, "gpu_kind": "demo"}
    made = api("admin")("PUT", "/admin/templates/half", json={"title": "H", "resources": resources})
    assert made.json["resources"] == resources | {"shared_memory": None}
    ask = api("alice")
    (offered,) = ask("GET", "/templates").json["templates"]
    assert offered["fits"]
    assert (offered["resources"]["fgpu"], offered["resources"]["gpu_kind"]) == (0.4, "demo")
    body = {"environment": "python", "template": "half"}
    (session,) = ask("POST", "/sessions", json=body).json["sessions"]
    assert session["resources"]["fgpu"] == 0.5


def test_a_requeued_session_drops_its_figures(world: World, launched: Launched) -> None:
    runner = launched(**body(fgpu=0.5))
    runner.ready()
    runner("usage", BEAT | {"gpu_memory_bytes": 7, "gpu_percent": 3.0, "gpu_kills": 2})
    poll_slurm(world, runner.session)
    world.slurm.requeue(runner.job)
    found = poll_slurm(world, runner.session)
    assert (found.gpu_memory_used, found.gpu_percent, found.gpu_kills) == (None, None, 0)
    assert found.gres == "shard:demo:1"
