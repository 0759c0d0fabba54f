"""The fields of responses read by templates exist: Jinja itself would silently show nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from portal.web.api.models.apps import AppOut
from portal.web.api.models.base import ResponseModel
from portal.web.api.models.sessions import SessionOut
from portal.web.api.models.templates import OfferedTemplateOut
from tests.support.paths import TEMPLATES

ROOTS: dict[str, type[ResponseModel]] = {
    r"\brow\.data\.": SessionOut,
    r"\bcard\.data\.": AppOut,
}


def _read() -> Iterator[tuple[type[ResponseModel], str]]:
    """The model and attribute path of every field of a response that the templates read."""
    for page in sorted((TEMPLATES / "html").glob("*.html")):
        text = page.read_text(encoding="utf-8")
        for root, model in ROOTS.items():
            for found in re.findall(root + r"([a-z_]+(?:\.[a-z_]+)*)", text):
                yield model, found
    cards = (TEMPLATES / "html" / "_templates.html").read_text(encoding="utf-8")
    for name, path in re.findall(r"\b([tr])\.([a-z_]+)", cards):
        yield OfferedTemplateOut, path if name == "t" else f"resources.{path}"


def _model(annotation: Any) -> type[BaseModel] | None:
    choices = [annotation, *get_args(annotation)]
    return next((c for c in choices if isinstance(c, type) and issubclass(c, BaseModel)), None)


def test_templates_read_fields_that_exist() -> None:
    assert [(model, path) for model, path in _read() if not _exists(model, path)] == []


def _exists(model: type[BaseModel], path: str) -> bool:
    for name in path.split("."):
        if name not in model.model_fields:
            return False
        model = _model(model.model_fields[name].annotation) or BaseModel
    return True


def test_all_template_folders_are_searched() -> None:
    assert {model for model, _ in _read()} == {SessionOut, AppOut, OfferedTemplateOut}
