"""Pages and API of an administrator by group: also while they are open as the membership ends."""

from __future__ import annotations

from pathlib import Path

from portal.core.auth.accounts import Identity
from portal.web.app import create_app
from tests.support.fakes import PASSWORDS, make_world
from tests.unit.web.conftest import PORTAL, Browser, make_settings


def test_a_removed_member_gets_what_others_get(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    slurm = settings.slurm.model_copy(update={"admin_groups": ["hpc-staff"]})
    world = make_world(settings.model_copy(update={"slurm": slurm}))
    world.accounts.identities["alice"] = Identity(1001, frozenset({"hpc-staff"}))
    app = create_app(world.services)
    alice, bob = Browser(app).log_in("alice"), Browser(app).log_in("bob")
    pages = ["/admin/nodes", "/admin/people", "/admin/journal", "/admin/limits"]
    assert {alice.get(page).status_code for page in pages} == {200}
    others = [bob.get(page).status_code for page in pages]
    assert set(others) <= {403, 404}
    api = app.test_client()
    body = {"username": "alice", "password": PASSWORDS["alice"], "scopes": ["read", "admin"]}
    token = (api.post("/api/v1/tokens", json=body, base_url=PORTAL).json or {})["token"]

    def may(path: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return api.get(f"/api/v1{path}", headers=headers, base_url=PORTAL).status_code

    assert may("/admin/images") == 200
    world.accounts.identities["alice"] = Identity(1001, frozenset({"users"}))
    world.clock.advance(seconds=61)
    assert [alice.get(page).status_code for page in pages] == others
    assert may("/admin/images") in (403, 404)
    assert alice.get("/sessions").status_code == 200
