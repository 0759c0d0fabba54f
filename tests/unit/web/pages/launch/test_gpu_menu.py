"""GPUs on pages: the menu, the description of an amount, and the forms' fields."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import MultiDict

from portal.core.cluster.gpu_offers import GpuOffer, share, unit_words
from portal.core.cluster.inventory import NodeGpus
from portal.core.launch.templates import Template
from portal.core.session.session import State
from portal.core.units import fgpu_number
from portal.node.common.fgpu import GpuKind
from portal.web.app import create_app
from portal.web.pages.launch.form import FIELDS, from_body, to_body
from portal.web.pages.launch.gpu_menu import Menu, menu
from tests.support.fakes import World, make_world
from tests.unit.web.conftest import Browser, make_settings

DEMO = GpuKind("", "Demo GPU", 8192, Fraction(1, 2), Fraction(1, 2))
BIG = GpuKind("a100", "NVIDIA A100", 81920, Fraction(1, 4), Fraction(1, 2))
PLAIN = GpuKind("l40s", "NVIDIA L40S", 49152, Fraction(1), Fraction(1, 3), compute="none")
FORM = {
    "image": "python/3.13",
    "resources.cpus": "1",
    "resources.memory": "600 MB",
    "confirmed": "yes",
}
HTMX = {"HX-Request": "true"}
ONE: dict[str, object] = {"title": "Demo GPU", "memory": "8g", "unit": 0.5, "step": 0.5}
MakeWorld = Callable[..., tuple[World, Browser]]


def offer(kind: GpuKind, gpus: int = 1) -> GpuOffer:
    """The offer for a whole kind."""
    return GpuOffer(kind, tuple(kind.amounts(gpus)), "that is all")


def existing(found: Menu | None) -> Menu:
    """A menu that must exist."""
    assert found is not None
    return found


def test_each_line_describes_its_amount() -> None:
    found = existing(menu({"main": [offer(DEMO, 2)]}, "main", "", ""))
    ((heading, options),) = found.options.items()
    assert heading == "Demo GPU, 8 GB"
    assert [option.text for option in options] == [
        "0.5 fGPU · 2 GB · 25 %",
        "1 fGPU · 4 GB · 50 %",
        "1.5 fGPU · 6 GB · 75 %",
        "2 fGPU · one whole GPU · 8 GB",
        "4 fGPU · 2 whole GPUs · 16 GB",
    ]
    assert [option.value for option in options] == ["0.5", "1", "1.5", "2", "4"]
    assert options[0].about == "2 GB of GPU memory and 25 % of the multiprocessors"
    assert found.chosen is None


def test_groups_have_their_own_kinds_and_amounts() -> None:
    offers = {"gpu": [offer(BIG), offer(PLAIN)], "big": [offer(BIG, 2)]}
    found = existing(menu(offers, "main", "", ""))
    assert list(found.options) == ["NVIDIA A100, 80 GB", "NVIDIA L40S, 48 GB in gpu"]
    of_big = {option.value: option.groups for option in found.options["NVIDIA A100, 80 GB"]}
    assert of_big["a100/0.5"] == ("gpu", "big")
    assert of_big["a100/8"] == ("big",)
    third = found.options["NVIDIA L40S, 48 GB in gpu"][0]
    assert (third.value, third.text) == ("l40s/0.333", "0.333 fGPU · 16 GB")


def test_no_gpus_no_field() -> None:
    assert menu({}, "main", "", "") is None


@pytest.mark.parametrize(
    ("asked", "kind", "chosen", "note"),
    [
        ("0.5", "", "0.5", ""),
        ("0.500", "", "0.5", ""),
        ("0.3", "", "0.5", "rounded up to 0.5"),
        ("1.51", "", "2", "1.51 fGPU was requested, and is rounded up to 2"),
        ("nan", "", None, ""),
        ("-1", "", None, ""),
        ("inf", "", None, ""),
        ("much", "", None, ""),
        ("", "", None, ""),
    ],
)
def test_the_requested_amount_is_selected_and_rounding_is_shown(
    asked: str, kind: str, chosen: str | None, note: str
) -> None:
    found = existing(menu({"main": [offer(DEMO)]}, "main", asked, kind))
    assert (found.chosen and found.chosen.value) == chosen
    assert note in found.note
    assert bool(note) == bool(found.note)


@pytest.mark.parametrize(
    ("group", "asked", "kind", "value"),
    [("main", "3", "", "3"), ("none", "1", "", "1"), ("main", "0.5", "h100", "h100/0.5")],
)
def test_an_amount_that_is_not_offered_stays_with_its_error(
    group: str, asked: str, kind: str, value: str
) -> None:
    found = existing(menu({"main": [offer(DEMO)]}, group, asked, kind))
    assert found.chosen == found.not_offered
    assert found.not_offered is not None
    assert (found.not_offered.value, found.not_offered.groups) == (value, ())


def test_a_whole_unit_and_an_undivided_gpu_in_words() -> None:
    assert unit_words(PLAIN) == "NVIDIA L40S: 1 fGPU is a whole GPU, with 48 GB of GPU memory"
    assert unit_words(DEMO).startswith("Demo GPU: 1 fGPU is 0.5 of a GPU, with 4 GB of GPU memory")
    assert share(1536, None) == "1.5 GB of GPU memory"
    assert (fgpu_number(Fraction(1, 3)), fgpu_number(2.0), fgpu_number(None)) == ("0.333", "2", "0")


@given(
    st.sampled_from([DEMO, BIG, PLAIN]).flatmap(
        lambda kind: st.tuples(st.just(kind), st.sampled_from(list(kind.amounts(3))))
    )
)
def test_every_line_requests_the_amount_it_shows(drawn: tuple[GpuKind, object]) -> None:
    kind, wanted = drawn
    offers = {"main": [offer(kind, 3)]}
    lines = [
        one for group in existing(menu(offers, "main", "", "")).options.values() for one in group
    ]
    at = list(kind.amounts(3)).index(wanted)  # type: ignore[arg-type]
    resources = to_body(MultiDict({"gpu": lines[at].value}))["resources"]
    again = existing(
        menu(offers, "main", fgpu_number(resources["fgpu"]), resources.get("gpu_kind", ""))
    )
    assert again.chosen is not None
    assert (again.chosen.text, again.note) == (lines[at].text, "")


def test_the_form_and_the_body_are_equivalent() -> None:
    body = to_body(MultiDict({"gpu": "a100/0.5", "resources.cpus": "2"}))
    assert body["resources"] == {"cpus": 2, "fgpu": 0.5, "gpu_kind": "a100"}
    filled = from_body(body).values
    assert (filled["resources.fgpu"], filled["resources.gpu_kind"]) == ("0.5", "a100")
    assert from_body({"resources": {"fgpu": 2.0}}).values["resources.fgpu"] == "2"
    assert to_body(MultiDict({"gpu": ""}))["resources"] == {}
    assert to_body(MultiDict({"gpu": "lots"}))["resources"] == {"fgpu": "lots"}
    assert {"resources.fgpu", "resources.gpu_kind"} <= FIELDS


@pytest.fixture
def site(tmp_path: Path) -> MakeWorld:
    """A site with the demo's GPU in its one group, and alice's browser; or a site without."""

    def make(kinds: Sequence[dict[str, object]] = (ONE,)) -> tuple[World, Browser]:
        plain = make_settings(tmp_path).model_dump()
        settings = make_settings(tmp_path).model_validate(plain | {"gpu": {"kinds": kinds}})
        world = make_world(settings)
        (main,) = world.scheduler.partitions()
        there = tuple(NodeGpus(str(kind.get("name", "")), 1, 4) for kind in kinds)
        world.status.save_partitions([replace(main, gpus=there)])
        app = create_app(world.services)
        app.testing = True
        return world, Browser(app).log_in("alice")

    return make


def text_of(page: str) -> str:
    """A page's visible text."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_the_wizard_offers_reviews_launches_and_lists(site: MakeWorld) -> None:
    world, alice = site()
    page = alice.get("/sessions/new").text
    assert "1 fGPU · 4 GB · 50 %" in page
    assert "up to 2 GPU shares (fGPU)" in page
    review = alice.post("/sessions/new/review", FORM | {"gpu": "0.5"}, headers=HTMX).text
    assert "0.5 fGPU · 2 GB of GPU memory and 25 % of the multiprocessors" in text_of(review)
    assert "rounded" not in review
    assert alice.post("/sessions", FORM | {"gpu": "0.5"}, headers=HTMX).status_code == 204
    (session,) = world.store.live()
    assert (session.fgpu, session.gres) == (0.5, "shard:1")
    assert "GPU: 0.5 fGPU GPU memory: 2 GB GPU" in text_of(alice.get("/sessions").text)
    again = alice.get(f"/sessions/new?from={session.id}").text
    assert re.search(r'<option value="0.5"[^>]* selected', again)


def test_typed_amounts_are_rounded_up_with_a_notice(site: MakeWorld) -> None:
    _world, alice = site()
    fields = FORM | {"resources.fgpu": "0.3"}
    review = text_of(alice.post("/sessions/new/review", fields, headers=HTMX).text)
    assert "rounded up from 0.3" in review
    assert "0.3 fGPU was requested" in alice.post("/sessions/new", fields).text


@pytest.mark.parametrize("amount", ["2.5", "lots", "h100/1"])
def test_impossible_amounts_are_reported_at_the_field(site: MakeWorld, amount: str) -> None:
    world, alice = site()
    answer = alice.post("/sessions", FORM | {"gpu": amount}, headers=HTMX)
    assert answer.status_code == 422
    assert 'id="error-resources-fgpu"' in answer.text
    assert 'data-first="resources"' in answer.text
    assert "Nothing was launched yet" in answer.text
    assert world.store.live() == []


def test_a_site_without_gpus_does_not_mention_them(site: MakeWorld) -> None:
    world, alice = site([])
    assert "GPU" not in text_of(alice.get("/sessions/new").text)
    assert alice.post("/sessions", FORM, headers=HTMX).status_code == 204
    assert "GPU" not in text_of(alice.get("/sessions").text)
    refused = alice.post("/sessions", FORM | {"gpu": "1"}, headers=HTMX)
    assert refused.status_code == 422
    assert 'id="error-resources-fgpu"' in refused.text
    assert len(world.store.live()) == 1


def test_usage_of_the_slice_and_ended_processes_are_in_the_list(site: MakeWorld) -> None:
    world, alice = site()
    alice.post("/sessions", FORM | {"gpu": "1"}, headers=HTMX)
    (session,) = world.store.live()
    now = world.clock()
    world.force(
        session.id,
        state=State.RUNNING,
        started=now - timedelta(minutes=1),
        ready=now,
        usage_at=now,
        gpu_memory_used=1024 * 2**20,
        gpu_percent=30.0,
        gpu_kills=2,
    )
    row = alice.get("/sessions/rows").text
    assert "1 fGPU in use: 60 % GPU memory: 4 GB GPU in use: 1 GB" in text_of(row)
    assert 'width="60.0"' in row
    assert 'width="25.0"' in row
    assert "2 processes were stopped for using more GPU memory than the session has." in row


def test_templates_carry_a_share(site: MakeWorld) -> None:
    world, alice = site()
    admin = Browser(alice.client.application).log_in("admin")
    fields = {"name": "half", "title": "Half", "resources.cpus": "1", "resources.memory": "1 GB"}
    wrong = admin.post("/admin/templates", fields | {"resources.fgpu": "a bit"})
    assert wrong.status_code == 422
    assert 'id="error-resources-fgpu"' in wrong.text
    assert admin.post("/admin/templates", fields | {"resources.fgpu": "0.5"}).status_code == 303
    (kept,) = world.services.administration.templates()
    assert kept == Template(name="half", title="Half", cpus=1, memory_mb=1024, fgpu=0.5, place=0)
    assert 'value="0.5"' in admin.get("/admin/templates/half/edit").text
    assert "0.5 fGPU" in text_of(admin.get("/admin/templates").text)
    assert "1 core · 1 GB · 0.5 fGPU" in text_of(alice.get("/sessions/new").text)
    assert alice.post("/sessions", FORM | {"template": "half"}, headers=HTMX).status_code == 204
    assert [session.fgpu for session in world.store.live()] == [0.5]


def test_several_kinds_are_distinguished(site: MakeWorld) -> None:
    slow = ONE | {"name": "slow", "title": "Slow GPU"}
    fast = ONE | {"name": "fast", "title": "Fast GPU", "compute": "none"}
    world, alice = site([slow, fast])
    review = alice.post("/sessions/new/review", FORM | {"gpu": "fast/1"}, headers=HTMX).text
    assert "GPU 1 fGPU of Fast GPU · 4 GB of GPU memory change GPU Time" in text_of(review)
    alice.post("/sessions", FORM | {"gpu": "fast/1"}, headers=HTMX)
    alice.post("/sessions", FORM | {"gpu": "1"}, headers=HTMX)
    assert {session.gres for session in world.store.live()} == {"shard:fast:2", "shard:slow:2"}
    rows = text_of(alice.get("/sessions/rows").text)
    assert "Fast GPU" in rows
    assert "Slow GPU" in rows
    assert (
        "Kind of GPU"
        in Browser(alice.client.application).log_in("admin").get("/admin/templates/new").text
    )


def test_presets_show_their_share(site: MakeWorld) -> None:
    _world, alice = site()
    alice.post("/presets", FORM | {"gpu": "1.5", "preset": "mine"})
    assert "1.5 fGPU" in text_of(alice.get("/presets").text)
    assert re.search(
        r'<option value="1.5"[^>]* selected', alice.get("/sessions/new?preset=mine").text
    )
