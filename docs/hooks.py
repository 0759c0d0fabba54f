"""MkDocs hook: pages of the site that are made from the code and from other files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from portal.config.annotate import annotated
from portal.web.api.openapi import document

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "tests" / "browser" / "screenshots"
SECTIONS = (
    ("Users", "users"),
    ("Administrators", "administrators"),
    ("Developers", "developers"),
    ("Reference", "reference"),
)
FIRST = ("first-session.md", "install.md", "app.md", "settings.md")
"""The page with which each section begins; the others are in the order of their names."""
_EXAMPLE = "https://slipway.example.org"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and the pictures, and set the menu."""
    for path, text in generated().items():
        files.append(File.generated(config, path, content=text))
    for picture in sorted(PICTURES.glob("*.png")):
        path = f"pictures/{picture.name}"
        files.append(File.generated(config, path, abs_src_path=str(picture)))
    config.nav = navigation(files)
    return files


def generated() -> dict[str, str]:
    """The pages that are not files of docs/, by path."""
    return {
        "reference/settings.md": settings_page(),
        "reference/api.md": api_page(document(_EXAMPLE)),
        "reference/security.md": without_links(ROOT / "SECURITY.md"),
        "reference/changelog.md": without_links(ROOT / "CHANGELOG.md"),
    }


def navigation(files: Files) -> list[Any]:
    """The menu: all pages of each section, the first one first."""
    known = [file.src_uri for file in files.documentation_pages()]
    menu: list[Any] = [{"Overview": "index.md"}]
    for title, folder in SECTIONS:
        pages = [path for path in known if path.startswith(f"{folder}/")]
        pages.sort(key=lambda path: (path.rpartition("/")[2] not in FIRST, path))
        menu.append({title: pages})
    return menu


def settings_page() -> str:
    """All keys of the settings file."""
    return (
        "# Settings\n\n`/etc/slipway/slipway.toml` has only what differs from the defaults below; "
        f"`slipway config` prints the same.\n\n```toml\n{annotated()}```\n"
    )


def without_links(file: Path) -> str:
    """A file of the repository, whose links to other files would lead nowhere on the site."""
    text = file.read_text(encoding="utf-8")
    return re.sub(r"\[([^\]]+)\]\((?!https?:|#)[^)]+\)", r"\1", text)


def api_page(api: dict[str, Any]) -> str:
    """The REST API, from its OpenAPI document."""
    parts = [
        "# REST API\n",
        "`/api/v1/openapi.json` of each portal is this description for programs. Every request has "
        "`Authorization: Bearer TOKEN`; tokens are created on the page *Logins and API tokens*. "
        f"{api['info']['description']}\n",
    ]
    resource = ""
    for path, operations in sorted(api["paths"].items()):
        if resource != (resource := path.split("/")[1]):
            parts.append(f"## {resource}\n")
        for method, operation in operations.items():
            if isinstance(operation, dict) and "responses" in operation:
                parts.append(_operation(method.upper(), path, operation, api))
    return "\n".join(parts)


def _operation(method: str, path: str, operation: dict[str, Any], api: dict[str, Any]) -> str:
    lines = [f"### `{method} {path}`\n", f"{operation.get('summary', '')}\n"]
    if text := operation.get("description"):
        lines.append(f"{text}\n")
    rows = list(_parameters(operation)) + list(_body(operation, api))
    if rows:
        lines += ["| name | in | type | |", "|---|---|---|---|", *rows, ""]
    statuses = sorted(status for status in operation["responses"] if status != "default")
    lines.append(f"Answers: {', '.join(statuses)}, or a problem.\n")
    return "\n".join(lines)


def _parameters(operation: dict[str, Any]) -> Iterator[str]:
    for one in operation.get("parameters", []):
        yield _row(one["name"], one["in"], one.get("schema", {}), one.get("description", ""))


def _body(operation: dict[str, Any], api: dict[str, Any]) -> Iterator[str]:
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = _resolved(content.get("schema", {}), api)
        for name, field in schema.get("properties", {}).items():
            needed = "body, required" if name in schema.get("required", ()) else "body"
            yield _row(name, needed, field, field.get("description", ""))


def _resolved(schema: dict[str, Any], api: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = api["components"]["schemas"][name] if name else schema
    return found


def _row(name: str, place: str, schema: dict[str, Any], text: str) -> str:
    words = " ".join(text.split()).replace("|", "\\|")
    return f"| `{name}` | {place} | {_type(schema)} | {words} |"


def _type(schema: dict[str, Any]) -> str:
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return str(name)
    if kinds := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(map(_type, kinds)))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if choices := schema.get("enum"):
        return ", ".join(f"`{one}`" for one in choices)
    return str(schema.get("type", "any"))
