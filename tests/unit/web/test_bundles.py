"""URLs and tags of the pages' bundles."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from flask import Flask

from portal.web import bundles
from tests.support.paths import ROOT, TEMPLATES

PAGES = ROOT / "portal" / "web" / "client" / "pages"
MANIFEST = {
    "list.css": {"file": "list-A1.css", "preload": []},
    "list.js": {"file": "list-B2.js", "preload": ["part-C3.js", "part-D4.js"]},
    "help.css": {"file": "help-E5.css", "preload": []},
    "plain.js": {"file": "plain-F6.js", "preload": []},
}


@pytest.fixture
def app(tmp_path: Path) -> Flask:
    """An application with a build in its folder of static files."""
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "manifest.json").write_text(json.dumps(MANIFEST))
    (tmp_path / "built" / "list-B2.js").write_text("export {};")
    (tmp_path / "favicon.svg").write_text("<svg/>")
    application = Flask("site", static_folder=str(tmp_path), static_url_path="/static")
    bundles.install(application)
    return application


def _render(app: Flask, text: str) -> str:
    with app.test_request_context():
        return app.jinja_env.from_string(text).render()


def test_a_page_has_one_sheet_one_script_and_what_the_script_loads(app: Flask) -> None:
    lines = _render(app, "{{ bundle('list') }}").split("\n  ")
    assert lines == [
        '<link rel="stylesheet" href="/static/built/list-A1.css">',
        '<link rel="modulepreload" href="/static/built/part-C3.js">',
        '<link rel="modulepreload" href="/static/built/part-D4.js">',
        '<script type="module" src="/static/built/list-B2.js"></script>',
    ]


@pytest.mark.parametrize(("page", "sheets"), [("help", 1), ("plain", 0)])
def test_a_page_without_a_script_has_the_plain_one(app: Flask, page: str, sheets: int) -> None:
    tags = _render(app, f"{{{{ bundle('{page}') }}}}")
    assert tags.count("stylesheet") == sheets
    assert tags.count("<script") == 1
    assert "plain-F6.js" in tags


def test_a_file_that_is_not_in_the_manifest_is_an_error(app: Flask) -> None:
    assert _render(app, "{{ built('help.css') }}") == "/static/built/help-E5.css"
    with pytest.raises(KeyError, match=r"gone\.css"):
        _render(app, "{{ built('gone.css') }}")


def test_before_a_build_pages_are_shown_without(tmp_path: Path) -> None:
    application = Flask("site", static_folder=str(tmp_path), static_url_path="/static")
    bundles.install(application)
    assert _render(application, "{{ bundle('list') }}") == ""
    assert _render(application, "{{ built('help.css') }}") == "/static/built/help.css"


def _cache_control(app: Flask, path: str) -> str:
    with app.test_client().get(path) as answer:
        return answer.headers.get("Cache-Control", "")


def test_browsers_keep_what_was_built_and_only_that(app: Flask) -> None:
    kept = _cache_control(app, "/static/built/list-B2.js")
    assert kept == "public, max-age=31536000, immutable"
    for path in ("/static/favicon.svg", "/static/built/list-OLD.js"):
        assert "immutable" not in _cache_control(app, path), path


def test_templates_name_entries_that_exist_and_all_are_named() -> None:
    named = {"plain"}  # of the pages that name none
    for file in (TEMPLATES / "html").glob("*.html"):
        text = file.read_text()
        named |= set(re.findall(r"\{% block page %\}(\w+)\{% endblock %\}", text))
        named |= set(re.findall(r'\{\{ bundle\("(\w+)"\) \}\}', text))
    assert named == {file.stem for file in PAGES.iterdir()}


def test_no_template_has_a_script_or_a_handler_of_its_own() -> None:
    for file in (TEMPLATES / "html").glob("*.html"):
        text = file.read_text()
        scripts = re.findall(r"<script\b[^>]*>", text)
        assert scripts == (['<script src="{{ built("early.js") }}">'] * (file.name == "base.html"))
        assert not re.search(r"\son[a-z]+=[\"']", text), file.name
        assert not re.search(r"\bstyle=[\"']", text), file.name
