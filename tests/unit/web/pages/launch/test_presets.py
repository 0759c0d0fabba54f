"""Presets on the pages and over the API: saved completely, per user, launched once."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from portal.core.launch.names import is_generated
from portal.core.launch.presets import MAX_PRESETS
from tests.support.fakes import World
from tests.unit.web.conftest import LAUNCH, Api, Browser

MakeApi = Callable[[str], Api]
HTMX = {"HX-Request": "true"}
FORM = {
    "image": "python/3.12",
    "resources.cpus": "1",
    "resources.memory": "600 MB",
    "env": '{"A": "secret"}',
    "mount": "home",
}


def test_replacing_a_preset_requires_confirmation(
    world: World, alice: Browser, api: MakeApi
) -> None:
    response = alice.post("/presets", FORM | {"preset": "my work"}, headers=HTMX)
    assert "Saved as my work." in response.text
    response = alice.post("/presets", FORM | {"preset": "my work", "count": "2"}, headers=HTMX)
    assert "Replace it" in response.text
    assert "count" not in api("alice")("GET", "/presets").json["presets"][0]["launch"]  # type: ignore[index]
    more = {"preset": "my work", "count": "2", "replace": "yes"}
    assert "Saved as" in alice.post("/presets", FORM | more, headers=HTMX).text
    found = api("alice")("GET", "/presets").json
    assert found is not None
    assert [p["launch"]["count"] for p in found["presets"]] == [2]
    assert world.slurm.jobs == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"preset": ""}, "Use up to 60"),
        ({"preset": "../x"}, "Use up to 60"),
        ({"preset": "fine", "count": "99"}, "This cannot be saved yet: this must be at most 20"),
    ],
)
def test_errors_on_saving_are_shown(
    alice: Browser, api: MakeApi, fields: dict[str, str], words: str
) -> None:
    assert words in alice.post("/presets", FORM | fields, headers=HTMX).text
    page = alice.post("/presets", FORM | fields)  # without a script: the whole page
    assert page.status_code == 422
    assert words in page.text
    assert api("alice")("GET", "/presets").json == {"presets": []}


def test_a_preset_is_launched_from_the_menu_once(
    world: World, alice: Browser, api: MakeApi
) -> None:
    menu = 'id="presets-menu"'
    assert menu not in alice.get("/sessions").text
    alice.post("/presets", FORM | {"preset": "my work"})
    page = alice.get("/sessions").text
    assert menu in page
    assert 'formaction="/presets/my%20work/launch"' in page
    for _ in range(2):
        answer = alice.post("/presets/my work/launch", {"key": "k"})
    made = world.store.live()
    assert [one.name for one in made] == ["myWork"]
    assert answer.headers["Location"] == f"/sessions?new={made[0].id}"
    assert (made[0].version, made[0].mounts[0].folder) == ("3.12", "home")
    assert world.store.env(made[0].id) == {"A": "secret"}


def test_presets_name_their_sessions_and_relaunches_keep_only_chosen_names(
    world: World, alice: Browser
) -> None:
    alice.post("/presets", FORM | {"preset": "my work"})
    alice.post("/presets", FORM | {"preset": "old one", "name": "quietbadger55"})
    alice.post("/presets", FORM | {"preset": "x"})
    for key, preset in enumerate(("my work", "my work", "old one", "x")):
        world.clock.advance(seconds=1)
        alice.post(f"/presets/{preset}/launch", {"key": f"key{key}"})
    first, second, old, short = sorted(world.store.live(), key=lambda one: one.created)
    assert (first.name, second.name, old.name) == ("myWork", "myWork2", "oldOne")
    assert is_generated(short.name)
    for one in (second, short):
        alice.post(f"/sessions/{one.id}/relaunch", {"key": one.id})
    names = [one.name for one in world.store.live()]
    assert "myWork3" in names
    assert len(set(names)) == 6
    assert 'value="myWork2"' in alice.get(f"/sessions/new?from={second.id}").text
    assert short.name not in alice.get(f"/sessions/new?from={short.id}").text


def test_a_preset_fills_the_wizard(alice: Browser) -> None:
    alice.post("/presets", FORM | {"preset": "my work", "time_limit": "45"})
    page = alice.get("/sessions/new?preset=my work").text
    assert 'value="45 min"' in page
    assert "secret" in page  # the user's own, for editing
    assert alice.get("/sessions/new?preset=none").status_code == 404


def test_they_are_renamed_and_deleted(alice: Browser) -> None:
    for name in ("one", "two"):
        alice.post("/presets", FORM | {"preset": name})
    assert alice.post("/presets/one/rename", {"to": "first one"}).status_code == 303
    taken = alice.post("/presets/two/rename", {"to": "first one"})
    assert (taken.status_code, "You have a preset named first one already." in taken.text) == (
        409,
        True,
    )
    assert alice.post("/presets/two/rename", {"to": "!"}).status_code == 422
    assert alice.post("/presets/two/rename", {"to": "two"}).status_code == 303
    assert alice.post("/presets/two/delete").status_code == 303
    page = alice.get("/presets").text
    assert re.findall(r'<h2 id="preset-\d+">([^<]*)</h2>', page) == ["first one"]
    assert "/presets/two" not in page
    assert "secret" not in page


def test_others_cannot_see_them(alice: Browser, bob: Browser, api: MakeApi) -> None:
    alice.post("/presets", FORM | {"preset": "hers"})
    assert "hers" not in bob.get("/presets").text
    for path in ("launch", "rename", "delete"):
        assert bob.post(f"/presets/hers/{path}", {"to": "his"}).status_code == 404
    for name in ("bob", "admin"):
        assert api(name)("GET", "/presets").json == {"presets": []}
        assert api(name)("POST", "/presets/hers/launch").status_code == 404
        assert api(name)("DELETE", "/presets/hers").status_code == 404


def test_programs_save_launch_and_delete_them(world: World, api: MakeApi) -> None:
    alice = api("alice")
    body = LAUNCH | {"env": {"A": "secret"}, "count": 2}
    made = alice("PUT", "/presets/batch", json=body)
    assert (made.status_code, made.json and made.json["launch"]["env"]) == (201, ["A"])
    assert alice("PUT", "/presets/batch", json=body).status_code == 200
    assert "secret" not in alice("GET", "/presets").text
    answers = [
        alice("POST", "/presets/batch/launch", headers={"Idempotency-Key": "k"}) for _ in range(2)
    ]
    assert [a.status_code for a in answers] == [201, 201]
    assert len(world.slurm.jobs) == 2
    assert alice("DELETE", "/presets/batch").status_code == 204
    assert alice("DELETE", "/presets/batch").status_code == 404


def test_programs_launch_a_session_again(world: World, api: MakeApi) -> None:
    alice = api("alice")
    first = alice("POST", "/sessions", json=LAUNCH | {"env": {"A": "secret"}}).json
    assert first is not None
    path = f"/sessions/{first['sessions'][0]['id']}/relaunch"
    answer = alice("POST", path)
    assert answer.status_code == 201
    assert answer.json is not None
    made = answer.json["sessions"][0]
    assert world.store.env(made["id"]) == {"A": "secret"}
    assert api("bob")("POST", path).status_code == 404
    assert api("admin")("POST", path).status_code == 404


@pytest.mark.parametrize("name", ["a/b", "%20", "-x", "x" * 61, "ümlaut", "a%0Ab"])
def test_invalid_names(api: MakeApi, name: str) -> None:
    assert api("alice")("PUT", f"/presets/{name}", json=LAUNCH).status_code in (404, 422)


def test_the_number_of_presets_is_limited(world: World, api: MakeApi) -> None:
    alice = api("alice")
    codes = {alice("PUT", f"/presets/p{n}", json=LAUNCH).status_code for n in range(MAX_PRESETS)}
    assert codes == {201}
    assert alice("PUT", "/presets/more", json=LAUNCH).status_code == 422
    assert alice("PUT", "/presets/p1", json=LAUNCH).status_code == 200


def test_invalid_launches_are_not_saved(api: MakeApi) -> None:
    answer = api("alice")("PUT", "/presets/p", json=LAUNCH | {"count": 0})
    assert answer.status_code == 422
    assert answer.json is not None
    assert answer.json["errors"][0]["field"] == "count"


def test_a_preset_without_a_folder_asks_as_the_wizard_does(world: World, alice: Browser) -> None:
    bare = {key: text for key, text in FORM.items() if key != "mount"}
    alice.post("/presets", bare | {"preset": "my work"})
    for page in ("/sessions", "/presets"):
        shown = alice.get(page).text
        assert 'data-no-folder="/sessions/new?preset=my%20work#folders"' in shown
        assert 'id="no-folder"' in shown
    asked = alice.post("/presets/my work/launch", {"key": "k"})
    assert (asked.status_code, world.store.live()) == (200, [])
    assert 'action="/presets/my%20work/launch"' in asked.text
    assert 'href="/sessions/new?preset=my%20work#folders"' in asked.text
    assert 'name="key" value="k"' in asked.text
    for _ in range(2):
        done = alice.post("/presets/my work/launch", {"key": "k", "confirmed": "yes"})
        assert done.status_code == 303
    assert len(world.store.live()) == 1


def test_a_preset_with_a_folder_does_not_ask(alice: Browser) -> None:
    alice.post("/presets", FORM | {"preset": "my work"})
    assert "data-no-folder=" not in alice.get("/presets").text
