"""The administrators' page of logins and tokens."""

from __future__ import annotations

from dataclasses import dataclass

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.auth.logins import BROWSER, TOKEN
from portal.core.auth.people import PeoplePage, PeopleQuery, PersonSort
from portal.core.listing import read_leniently
from portal.web.context import person, services
from portal.web.pages.account.tokens import TokenPage, back_to_page
from portal.web.pages.account.views import SCOPE_TEXTS
from portal.web.pages.admin.views import blueprint
from portal.web.pages.listing import PAGE, SortedView


@dataclass(frozen=True)
class PeopleView(SortedView[PeopleQuery]):
    """The list of one request."""

    path = "/admin/people"
    first = {"name": PersonSort.NAME}  # noqa: RUF012 - constant
    page_words = ("Previous", "Next")

    page: PeoplePage


@blueprint.get("/people")
def people() -> ResponseReturnValue:
    """A page of the users who have a login or a token."""
    query = read_leniently(PeopleQuery, request.args.to_dict(), limit=PAGE)
    listing = PeopleView(query=query, page=services().logins.people(query))
    return render_template("admin_people.html", part="people", person=person(), listing=listing)


@blueprint.get("/people/<name>")
def user_logins(name: str) -> ResponseReturnValue:
    """A user's logins and tokens."""
    logins = services().logins
    return render_template(
        "admin_person.html",
        part="people",
        person=person(),
        name=name[:64],
        browsers=logins.logins_of(name, BROWSER),
        tokens=TokenPage.of_request(logins.logins_of(name, TOKEN)),
        last_day=logins.last_day,
        says=SCOPE_TEXTS,
    )


@blueprint.post("/people/<name>/revoke/<login_id>")
def revoke(name: str, login_id: str) -> ResponseReturnValue:
    """Revoke one login or token."""
    services().logins.revoke_login(name, login_id, person().name)
    flash("Revoked, together with its access to apps.")
    return back_to_page(f"/admin/people/{name}")


@blueprint.post("/people/<name>/revoke")
def revoke_all(name: str) -> ResponseReturnValue:
    """Revoke all logins and tokens of a user."""
    services().logins.revoke_all(name, person().name)
    flash(f"{name} is logged out everywhere, and all tokens are revoked.")
    return redirect("/admin/people", 303)
