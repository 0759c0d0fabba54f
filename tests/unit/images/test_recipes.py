"""The recipes of images have what builders, tests and the portal need of them."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from portal.adapters.catalog import read_image
from tests.support.built_images import needs_registry, recipes
from tests.support.paths import ROOT

RECIPES = recipes()
APPS = {path.parent.name for path in (ROOT / "apps").glob("*/app.toml")}
TOOLKIT = ROOT / "images" / "toolkit"
IN_IMAGES = ["jupyter/server.py", "jupyter/settings.py", "jupyter/kernel.py"]
IN_IMAGES += ["jupyter/config/jupyter_server_config.py", "python/sitecustomize.py"]
IN_IMAGES += ["python/slipway_python.py"]
NEWER_THAN_PYTHON_3_7 = {"pairwise", "batched", "cache", "cached_property", "removeprefix", "chdir"}
"""Names of the standard library that code for every image's Python is tempted to use."""


def folder_of(recipe: str) -> Path:
    """A recipe's folder."""
    return ROOT / "images" / recipe


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_portal_can_describe_it(recipe: str) -> None:
    image = read_image(folder_of(recipe))
    assert (image.environment, image.version) == tuple(recipe.split("/"))
    assert image.title
    assert image.description.endswith(".")
    assert image.default_app in APPS


@pytest.mark.parametrize("recipe", RECIPES)
def test_it_starts_from_a_debian_release_or_from_a_registry_s_image(recipe: str) -> None:
    folder = folder_of(recipe)
    keyword, origin = (folder / "image.def").read_text(encoding="utf-8").splitlines()[:2]
    if needs_registry(recipe):
        assert keyword == "Bootstrap: docker"
        # Without a registry's name: the site's own one, or its mirror.
        assert re.fullmatch(r"From: [a-z]+/[a-z]+:[a-z0-9.-]+", origin)
    else:
        assert (keyword, origin) == ("Bootstrap: localimage", "From: {{ base }}")
        assert re.fullmatch(r"[a-z]+\n", (folder / "base").read_text(encoding="utf-8"))


@pytest.mark.parametrize("recipe", RECIPES)
def test_it_has_a_test_that_the_shell_can_read(recipe: str) -> None:
    test = folder_of(recipe) / "test.sh"
    assert test.read_text(encoding="utf-8").startswith("#!/bin/sh\n")
    done = subprocess.run(["sh", "-n", test], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("recipe", RECIPES)
def test_it_stands_in_the_table_of_sizes(recipe: str) -> None:
    table = (ROOT / "images" / "README.md").read_text(encoding="utf-8")
    assert table.count(f"\n| `{recipe}` |") == 1


@pytest.mark.parametrize("file", sorted(ROOT.glob("images/*/*/requirements.txt")), ids=str)
def test_widgets_are_drawn_where_there_is_a_kernel(file: Path) -> None:
    """JupyterLab's Python sees nothing of what users install, so its side of them is there."""
    names = set(re.findall(r"^([\w-]+)==", file.read_text(encoding="utf-8"), re.M))
    assert "ipykernel" not in names or {"ipywidgets", "jupyterlab_widgets"} <= names


@pytest.mark.parametrize("name", IN_IMAGES)
def test_jupyter_s_side_runs_in_old_pythons_of_images(name: str) -> None:
    tree = ast.parse((TOOLKIT / name).read_text(encoding="utf-8"), feature_version=(3, 7))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert (imported | used) & NEWER_THAN_PYTHON_3_7 == set()
