"""The answer to an app's prompt is checked before the app is started."""

from __future__ import annotations

import pytest

from portal.adapters.catalog import FolderCatalog
from portal.core.apps.access import AppOptions
from portal.core.apps.answers import MAX_ANSWER, check_words
from portal.core.apps.catalog import AppSpec
from tests.support.paths import ROOT

WEB_APP = AppSpec(
    name="webapp",
    title="Your web app",
    script="exec $SLIPWAY_ASKED",
    asks="Command that starts it",
    must_answer=True,
)


def wrong(spec: AppSpec, asked: str | None) -> list[str]:
    """The fields that are wrong."""
    return [error.field for error in check_words(spec, AppOptions(asked=asked))]


@pytest.mark.parametrize("asked", [None, "", "  ", "\t"])
def test_an_app_of_ones_own_needs_its_command_at_once(asked: str | None) -> None:
    assert wrong(WEB_APP, asked) == ["asked"]


def test_a_command_is_one_line_of_a_bounded_length() -> None:
    assert wrong(WEB_APP, "python -m http.server $PORT") == []
    assert wrong(WEB_APP, "a\nb") == ["asked"]
    assert wrong(WEB_APP, "a" * (MAX_ANSWER + 1)) == ["asked"]


def test_other_apps_may_do_without_and_some_have_no_prompt() -> None:
    optional = WEB_APP.model_copy(update={"must_answer": False})
    assert wrong(optional, None) == []
    assert wrong(AppSpec(name="a", title="A", script="a"), "x") == ["asked"]


def test_the_app_for_any_command_asks_for_it() -> None:
    spec = FolderCatalog((str(ROOT / "apps"),), str(ROOT / "images"))().apps["webapp"]
    assert wrong(spec, None) == ["asked"]
