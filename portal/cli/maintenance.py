"""`slipway maintenance`: sessions go on, launches wait until a time."""

from __future__ import annotations

import argparse
import getpass
import re
from datetime import datetime, timedelta

from portal.config import Settings
from portal.core.auth.person import Person
from portal.core.notices.maintenance import Maintenance, MaintenanceRequest
from portal.core.validation import check
from portal.errors import FieldError, InvalidRequest
from portal.wiring import wire

_CLOCK = re.compile(r"\d{1,2}:\d\d", re.ASCII)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "maintenance", help="let sessions go on, and what is launched wait until a time"
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    on = actions.add_parser("on", help="begin maintenance, or change its end and message")
    on.add_argument(
        "--until",
        metavar="TIME",
        help="when it is over, such as 18:00 (the next time that the clock shows it) or "
        "2026-11-24T18:00, in this machine's zone unless it ends with an offset; without it "
        "launches are refused instead of waiting",
    )
    on.add_argument("--message", required=True, metavar="TEXT", help="what everybody reads")
    on.set_defaults(action=_on)
    off = actions.add_parser("off", help="end it; what waited starts")
    off.set_defaults(action=_off)
    status = actions.add_parser("status", help="say whether it is on")
    status.set_defaults(action=_status)


def read_until(text: str, now: datetime) -> datetime:
    """The next time that the clock shows (`now` has the zone), or a date and time.

    Raises InvalidRequest.
    """
    try:
        if _CLOCK.fullmatch(text):
            clock = datetime.strptime(text, "%H:%M").time()
            today = datetime.combine(now.date(), clock, now.tzinfo)
            return today if today > now else today + timedelta(days=1)
        moment = datetime.fromisoformat(text)
    except ValueError:
        problem = f"use a time such as 18:00 or 2026-11-24T18:00, not “{text[:40]}”"
        raise InvalidRequest([FieldError("until", problem)]) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)


def _on(settings: Settings, options: argparse.Namespace) -> int:
    now = datetime.now().astimezone()
    until = read_until(options.until, now) if options.until else None
    body = {"until": until, "message": options.message}
    request = check(MaintenanceRequest, body)
    print(_description(wire(settings).notices.begin_maintenance(_operator(), request)))
    return 0


def _off(settings: Settings, _options: argparse.Namespace) -> int:
    wire(settings).notices.end_maintenance(_operator())
    print("maintenance is over; sessions that waited for it start")
    return 0


def _status(settings: Settings, _options: argparse.Namespace) -> int:
    print(_description(wire(settings).notices.maintenance()))
    return 0


def _description(maintenance: Maintenance | None) -> str:
    if maintenance is None:
        return "no maintenance"
    end = (
        f"until {maintenance.until.astimezone():%Y-%m-%d %H:%M %Z}"
        if maintenance.until
        else "without an end"
    )
    waits = "launches wait until then" if maintenance.until else "launches are refused"
    return f"maintenance {end}, by {maintenance.by}: {maintenance.message}\n{waits}; sessions go on"


def _operator() -> Person:
    """The user of this command, who has all permissions."""
    return Person(getpass.getuser(), admin=True, login="")
