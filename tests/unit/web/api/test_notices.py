"""Announcements, maintenance and usage over the REST API."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tests.support.fakes import World
from tests.unit.web.conftest import LAUNCH, Api

MakeApi = Callable[[str], Api]
LIST = "/announcements"
TEXT = {"text": "Course on Friday", "link": {"title": "Register", "url": "https://example.org/c"}}


def test_announcements(api: MakeApi) -> None:
    admin, alice = api("admin"), api("alice")
    made = admin("POST", LIST, json=TEXT | {"level": "warning"})
    assert made.status_code == 201
    assert made.json is not None
    path = f"{LIST}/{made.json['id']}"
    assert made.json["link"] == TEXT["link"]
    assert made.json["state"] == "shown"
    assert alice("GET", LIST).json == {"announcements": [made.json]}
    seen = alice("GET", path).headers["ETag"]
    changed = admin("PUT", path, json={"text": "Cancelled"}, headers={"If-Match": seen})
    assert changed.status_code == 200
    late = admin("PUT", path, json=TEXT, headers={"If-Match": seen})
    assert late.status_code == 409
    assert admin("DELETE", path, headers={"If-Match": seen}).status_code == 409
    assert admin("DELETE", path).status_code == 204
    assert admin("PUT", path, json=TEXT).status_code == 404


def test_others_may_only_read(api: MakeApi) -> None:
    alice = api("alice")
    made = api("admin")("POST", LIST, json=TEXT).json
    assert made is not None
    for method, path in (
        ("POST", LIST),
        ("PUT", f"{LIST}/{made['id']}"),
        ("DELETE", f"{LIST}/{made['id']}"),
        ("PUT", "/maintenance"),
        ("DELETE", "/maintenance"),
        ("GET", "/admin/usage"),
        ("GET", "/admin/usage/now"),
    ):
        assert alice(method, path).status_code == 404, path
    assert alice("GET", "/maintenance").json == {
        "on": False, "until": None, "message": "", "since": None, "by": ""
    }  # fmt: skip


def test_launches_during_maintenance(api: MakeApi, world: World) -> None:
    admin, alice = api("admin"), api("alice")
    begun = admin("PUT", "/maintenance", json={"message": "New disks"})
    refused = alice("POST", "/sessions", json=LAUNCH)
    assert refused.status_code == 503
    assert refused.headers["Retry-After"] == "600"
    assert refused.json is not None
    assert "New disks" in refused.json["detail"]
    assert "errors" not in refused.json
    until = (world.clock() + timedelta(hours=1)).isoformat()
    tag = {"If-Match": begun.headers["ETag"]}
    body = {"message": "New disks", "until": until}
    assert admin("PUT", "/maintenance", json=body, headers=tag).status_code == 200
    assert admin("PUT", "/maintenance", json=body, headers=tag).status_code == 409
    assert alice("GET", "/maintenance").json == {
        "on": True, "until": until, "message": "New disks", "since": "2026-11-20T12:00:00+00:00",
        "by": "admin",
    }  # fmt: skip
    assert alice("POST", "/sessions", json=LAUNCH).status_code == 201
    world.slurm.jobs[-1].reason = "BeginTime"
    world.worker.poll()
    shown = alice("GET", "/sessions").json
    assert shown is not None
    reason = shown["sessions"][0]["reason"]
    assert reason["text"] == "Maintenance until 13:00 UTC; it starts then."
    assert reason["begin"] == until
    assert admin("DELETE", "/maintenance").status_code == 204
    assert admin("DELETE", "/maintenance").status_code == 409
    past = {"message": "x", "until": "2026-11-20T11:00:00Z"}
    wrong = admin("PUT", "/maintenance", json=past)
    assert wrong.json is not None
    assert [error["field"] for error in wrong.json["errors"]] == ["until"]


def test_a_job_waits_for_the_end_of_maintenance(api: MakeApi, world: World) -> None:
    until = (world.clock() + timedelta(hours=1)).isoformat()
    api("admin")("PUT", "/maintenance", json={"message": "New disks", "until": until})
    alice = api("alice")
    own = {"script": "#!/bin/sh\n#SBATCH --begin=tomorrow\n"}
    for body in ({"script": "#!/bin/sh\n"}, own):
        assert alice("POST", "/jobs", json=body).status_code == 201
    held, later = (words for _, words, _ in world.slurm.submitted)
    assert "--begin=now+3600" in held
    assert not any(word.startswith("--begin") for word in later)
    api("admin")("PUT", "/maintenance", json={"message": "New disks"})
    refused = alice("POST", "/jobs", json=own | {"name": "x"}, headers={"Idempotency-Key": "k"})
    assert refused.status_code == 503
    api("admin")("DELETE", "/maintenance")
    again = alice("POST", "/jobs", json=own | {"name": "x"}, headers={"Idempotency-Key": "k"})
    assert again.status_code == 201


def test_usage(api: MakeApi, world: World) -> None:
    admin = api("admin")
    made = api("alice")("POST", "/sessions", json=LAUNCH).json
    assert made is not None
    started = world.clock() - timedelta(hours=3)
    world.force(made["sessions"][0]["id"], state="RUNNING", started=started)
    report = admin("GET", "/admin/usage?unit=month&by=environment").json
    assert report is not None
    used = {"sessions": 1, "people": 1, "core_hours": 3.0, "gpu_hours": 0.0}
    assert report["groups"] == [{"name": "python", **used}]
    assert report["spans"][-1] == {"first": "2026-11-01", "last": "2026-11-30", **used}
    now = admin("GET", "/admin/usage/now").json
    assert now is not None
    assert [(one["user"], one["running"], one["memory"]) for one in now["people"]] == [
        ("alice", 1, "600m")
    ]
    for query in ("unit=year", "first=2026", "by=mood", "first=2026-11-02&last=2026-11-01"):
        assert admin("GET", f"/admin/usage?{query}").status_code == 422, query
