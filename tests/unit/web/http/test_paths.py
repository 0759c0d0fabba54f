"""Redirects keep an address as it was sent."""

from __future__ import annotations

from portal.web.http.paths import redirect_to


def test_what_browsers_send_as_it_is_is_kept() -> None:
    address = "/a%2Fb/tree?filter[]=a|b&c={d}^`e\\f'"
    assert redirect_to(address).headers["Location"] == address


def test_what_browsers_quote_is_quoted() -> None:
    """It cannot become HTML in a page that shows the address."""
    assert redirect_to('/<img ">?é').headers["Location"] == "/%3Cimg%20%22%3E?%C3%A9"
