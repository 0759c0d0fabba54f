"""Downloads: few at a time per account, and names that cannot leave their header."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st

from portal.errors import TooMany
from portal.web.http.downloads import Downloads, disposition, send_download


def pieces() -> Iterator[bytes]:
    yield b"one, "
    yield b"two"


def test_each_account_has_two_at_a_time() -> None:
    downloads = Downloads()
    ends = [downloads.begin("alice"), downloads.begin("alice")]
    downloads.begin("bob")
    with pytest.raises(TooMany, match="downloading 2 files already"):
        downloads.begin("alice")
    ends[0]()
    ends[0]()  # counts once
    downloads.begin("alice")
    with pytest.raises(TooMany):
        downloads.begin("alice")


@pytest.mark.parametrize("how", ["read to its end", "left before it began", "left in the middle"])
def test_a_download_counts_until_the_client_has_it_or_leaves(how: str) -> None:
    app = Flask("any")
    app.add_url_rule("/", view_func=lambda: send_download("alice", "a.out", pieces(), 8))
    app.register_error_handler(TooMany, lambda error: (error.text, error.status))
    client = app.test_client()
    held = [client.get("/", buffered=False) for _ in range(2)]
    assert client.get("/").status_code == 429
    match how:
        case "read to its end":
            assert held[0].data == b"one, two"
            assert held[0].headers["Content-Length"] == "8"
        case "left in the middle":
            next(iter(held[0].iter_encoded()))
            held[0].close()
        case _:
            held[0].close()
    assert client.get("/", buffered=True).status_code == 200
    assert client.head("/", buffered=True).status_code == 200
    assert client.get("/", buffered=True).status_code == 200


def test_plain_names_stay_as_they_are() -> None:
    assert disposition("slurm-12_4.out") == 'attachment; filename="slurm-12_4.out"'
    assert disposition("größe.log") == (
        "attachment; filename=\"gr-e.log\"; filename*=UTF-8''gr%C3%B6%C3%9Fe.log"
    )


@given(st.text(max_size=50))
def test_no_name_leaves_its_header(name: str) -> None:
    header = disposition(name)
    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2
    assert header.startswith('attachment; filename="')
