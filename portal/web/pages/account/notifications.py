"""What users are told outside of the pages: by their browser, and by e-mail."""

from __future__ import annotations

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.mail.messages import TITLES, Occasion
from portal.web.context import person, services
from portal.web.pages.blueprint import blueprint


@blueprint.get("/account/notifications")
def notifications() -> ResponseReturnValue:
    """The page."""
    mailer, user = services().mailer, person()
    return render_template(
        "notifications.html",
        person=user,
        mail=mailer.address(user.name) if mailer.is_offered else "",
        occasions=TITLES,
        chosen=mailer.choice(user.name) if mailer.is_offered else (),
    )


@blueprint.post("/account/notifications")
def choose_messages() -> ResponseReturnValue:
    """Store what the user wants to be told by e-mail."""
    named = set(request.form.getlist("occasion"))
    services().mailer.choose(person().name, [each for each in Occasion if each in named])
    flash("Saved.")
    return redirect("/account/notifications", 303)


@blueprint.get("/mail/stop/<user>/<mark>")
def ask_to_stop(user: str, mark: str) -> ResponseReturnValue:
    """Ask before all mail ends: programs that look at links must not end it. Without a log-in."""
    return render_template("mail_stop.html", user=user, mark=mark)


@blueprint.post("/mail/stop/<user>/<mark>")
def stop_mail(user: str, mark: str) -> ResponseReturnValue:
    """End all mail to a user; also by the mail program itself (RFC 8058)."""
    services().mailer.stop(user, mark)
    return render_template("mail_stop.html", user=user, stopped=True)
