"""Resource templates: one request, one stored value, one response, one form."""

from __future__ import annotations

from portal.core.admin.templates import TemplateRequest
from portal.core.validation import check
from portal.web.api.models.templates import OfferedTemplateOut, TemplateOut
from portal.web.pages.admin.forms import template_request, template_values

MEDIUM = {
    "title": "Medium",
    "description": "A day's work",
    "resources": {
        "cpus": 4,
        "memory": "16g",
        "shared_memory": "512m",
        "fgpu": 0.5,
        "gpu_kind": "a100",
    },
    "time_limit": 480,
    "resource_group": "main",
    "account": "physics",
    "qos": "long",
    "reservation": "course",
    "constraint": "zen4&ssd",
    "exclusive": True,
    "place": 7,
}


def test_a_template_is_returned_unchanged() -> None:
    template = check(TemplateRequest, MEDIUM).named("medium", 7)
    assert TemplateOut.of(template).model_dump(mode="json") == MEDIUM | {"name": "medium"}
    plain = check(TemplateRequest, {"title": "S", "resources": {"memory": "1g"}}).named("s", 0)
    assert TemplateOut.of(plain).model_dump(mode="json")["resources"] == {
        "cpus": 1,
        "memory": "1g",
        "shared_memory": None,
        "fgpu": None,
        "gpu_kind": None,
    }


def test_its_form_sends_the_same_request() -> None:
    template = check(TemplateRequest, MEDIUM).named("medium", 7)
    values = template_values(template)
    assert values["resources.memory"] == "16 GB"
    again = check(TemplateRequest, template_request(values))
    assert again.named("medium", 7) == template


def test_an_offer_is_the_template_with_its_obstacles() -> None:
    template = check(TemplateRequest, MEDIUM).named("medium", 7)
    offer = OfferedTemplateOut.offer(template, "too much")
    shown = offer.model_dump()
    assert (shown.pop("fits"), shown.pop("why")) == (False, "too much")
    assert shown == TemplateOut.of(template).model_dump()
