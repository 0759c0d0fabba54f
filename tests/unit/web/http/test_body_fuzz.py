"""Cursors, dates, sizes and names: valid values are accepted, all others do no harm."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from portal.core.launch.request import parse_launch
from portal.core.session.query import Sort
from portal.core.units import MAX_MEMORY_MB, MIN_MEMORY_MB
from portal.errors import InvalidRequest
from portal.web.api.openapi import document
from tests.support.fakes import World
from tests.support.invalid_inputs import LAUNCH, resources
from tests.unit.web.conftest import PORTAL, Api, Browser
from tests.unit.web.judge import judge_api, judge_page, state

MakeApi = Callable[[str], Api]

FUZZ = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ANY_TEXT = st.text(st.characters(), max_size=60)  # surrogates as well
DATES = st.one_of(
    ANY_TEXT,
    st.datetimes(timezones=st.timezones() | st.none()).map(lambda moment: moment.isoformat()),
    st.builds(
        "{}-{:02}-{:02}T23:59:59{}{:02}:{:02}".format,
        st.sampled_from(["0001", "9999", "0000", "2026", "10000", "-001"]),
        st.integers(0, 13),
        st.integers(0, 32),
        st.sampled_from("+-"),
        st.integers(0, 24),
        st.integers(0, 60),
    ),
    st.integers(-(10**20), 10**20).map(str),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=2),
    max_leaves=5,
)
SORTS = st.sampled_from([sort.value for sort in Sort])
CURSORS = st.one_of(
    st.tuples(SORTS | ANY_TEXT, st.booleans(), st.just(True), DATES, ANY_TEXT).map(json.dumps),
    st.tuples(SORTS, st.booleans() | JSON, st.booleans(), JSON, ANY_TEXT | JSON).map(json.dumps),
    JSON.map(json.dumps),
    ANY_TEXT,
).map(lambda text: base64.urlsafe_b64encode(text.encode(errors="surrogatepass")).decode())


@FUZZ
@given(cursor=CURSORS | st.text(max_size=40), sort=SORTS)
def test_cursors(cursor: str, sort: str, world: World, api: MakeApi, alice: Browser) -> None:
    before = state(world)
    cursor = cursor.encode(errors="replace").decode()
    query = {"sort": sort, "cursor": cursor}
    answer = api("alice")("GET", "/sessions", query_string=query)
    judge_api(answer, before, world)
    assert answer.status_code in (200, 422)
    for path in ("/sessions", "/sessions/rows"):
        assert alice.get(path, query_string=query).status_code in (200, 204)


@FUZZ
@given(since=DATES, until=DATES)
def test_times_of_the_journal(since: str, until: str, world: World, api: MakeApi) -> None:
    query = {
        "since": since.encode(errors="replace").decode(),
        "until": until.encode(errors="replace").decode(),
    }
    answer = api("admin")("GET", "/journal", query_string=query)
    judge_api(answer, state(world), world)
    assert answer.status_code in (200, 422)


@FUZZ
@given(day=DATES | st.dates().map(str), cursor=DATES)
def test_days_of_the_journals_page(day: str, cursor: str, world: World, admin: Browser) -> None:
    query = {
        "day": day.encode(errors="replace").decode(),
        "cursor": cursor.encode(errors="replace").decode(),
    }
    answer = admin.get("/admin/journal", query_string=query)
    judge_page(answer, state(world), world, 64 * 1024)
    assert answer.status_code in (200, 422)


@pytest.fixture
def admin(app: Any) -> Browser:
    """The administrator's browser."""
    return Browser(app).log_in("admin")


MEMORY = document(PORTAL)["components"]["schemas"]["Resources"]["properties"]["memory"]["pattern"]
UNITS = {"m": 1, "g": 1024, "t": 1024 * 1024}
SIZES = st.one_of(
    st.from_regex(MEMORY),
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["", " ", "\t", "\n", "-", "+", "\u2003"]),
        st.decimals(0, 10**9, places=3).map(str) | st.integers(0, 10**12).map(str),
        st.sampled_from(["", " ", "  ", "\n", "\u00a0"]),
        st.sampled_from(["m", "G", "tb", "GiB", "k", "", "m\n", "g\u2028", "ｇ", "mi"]),  # noqa: RUF001
    ),
    ANY_TEXT,
)


@settings(FUZZ, max_examples=200)
@given(text=SIZES)
@example("1G\n")
@example("64t")
@example("65t")
@example("256m")
@example("255.999m")
def test_sizes_are_accepted_as_documented(text: str) -> None:
    """The pattern of the OpenAPI document decides, and the limits given in messages."""
    found = re.fullmatch(MEMORY.removeprefix("^").removesuffix("$"), text)
    mb = 0
    if found:
        mb = round(float(found[1]) * UNITS[found[2].lower()])
    if found and MIN_MEMORY_MB <= mb <= MAX_MEMORY_MB:
        assert parse_launch(resources(memory=text)).resources.memory == mb
        return
    with pytest.raises(InvalidRequest) as caught:
        parse_launch(resources(memory=text))
    (error,) = caught.value.errors
    assert error.field == "resources.memory"
    expected = "this must be at" if found else "write a size with its unit"
    assert error.message.startswith(expected)


LETTERS = st.characters(categories=["L", "Nd", "Mn", "Mc"])
NAMES = st.one_of(
    st.text(LETTERS, min_size=2, max_size=70),
    st.text(st.characters(categories=["Ll", "Lu", "Nd"]), min_size=4, max_size=64),
    st.text(st.sampled_from("aé\u0301\u200b\u202e\ufe0f 1\u0640\u0627\u3164"), max_size=12),
    ANY_TEXT,
)


@settings(FUZZ, max_examples=200)
@given(name=NAMES)
def test_names_are_visible_letters(name: str) -> None:
    try:
        kept = parse_launch({**LAUNCH, "name": name}).name
    except InvalidRequest as refused:
        assert [error.field for error in refused.errors] == ["name"]
        assert not re.fullmatch("[A-Za-z0-9]{4,64}", name)
        return
    assert kept is not None
    assert kept == unicodedata.normalize("NFC", name)
    assert 4 <= len(kept) <= 64
    assert kept.isprintable()
    assert not re.search(r"\s", kept)
    kinds = {unicodedata.category(character) for character in kept}
    assert kinds <= {"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Mn", "Mc"}
    assert unicodedata.category(kept[0])[0] != "M"
    assert parse_launch({**LAUNCH, "name": kept}).name == kept
