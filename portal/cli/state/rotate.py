"""`slipway rotate`: replaces a certificate authority in two steps, without interruption."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from portal.adapters import rotation
from portal.adapters.client_tls import accepts, context_after_rotation
from portal.adapters.rotation import Stage
from portal.cli.state.account import fail, wrong_account
from portal.config import Settings
from portal.core.session.session import Session, State
from portal.errors import PortalError
from portal.wiring import live_sessions, log_in_with_next

RELOAD = "systemctl reload slipway-proxy"
LAUNCH_MARGIN = timedelta(seconds=10)
"""Maximum time of a launch between reading and storing the authorities."""
_LISTED = 20


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "rotate", help="replace the keys that sign users' or gateways' certificates, in two steps"
    )
    parser.add_argument("what", choices=["user", "gateways"])
    step = parser.add_mutually_exclusive_group()
    step.add_argument("--begin", action="store_true", help="create the new key, trust both")
    step.add_argument("--finish", action="store_true", help="drop the earlier one")
    parser.add_argument(
        "--force", action="store_true", help="finish, whoever still needs the earlier one"
    )
    parser.set_defaults(action=_rotate)


def _rotate(settings: Settings, options: argparse.Namespace) -> int:
    if problem := wrong_account(settings):
        return fail(problem)
    directory = settings.state.ca_file("")
    try:
        with rotation.only_one(directory):
            if options.what == "user":
                return _user(settings, directory, options)
            return _gateways(settings, directory, options)
    except BlockingIOError:
        return fail("another command is changing the authorities: wait until it has ended")
    except FileNotFoundError as error:
        return fail(f"{error.filename}: run `slipway init` first")


def _user(settings: Settings, directory: Path, options: argparse.Namespace) -> int:
    login = settings.login
    has_begun = (directory / "user_ca.next").exists()
    hosts = " and ".join(dict.fromkeys(filter(None, (*login.all_hosts, login.files_host))))
    if options.begin:
        line = rotation.begin_user(directory)
        print(f"Append this line to the file that TrustedUserCAKeys names on {hosts}:\n\n{line}\n")
        print("The portal signs with the earlier key until: slipway rotate user --finish")
        return 0
    if not options.finish:
        text = "begun; next: slipway rotate user --finish" if has_begun else "not begun"
        print(f"rotation of the users' authority: {text}")
        return 0
    if not has_begun:
        return fail("there is no next key: begin with slipway rotate user --begin")
    if not options.force:
        try:
            log_in_with_next(settings)
        except PortalError as error:
            line = rotation.begin_user(directory)
            return fail(
                f"{hosts} does not accept the next key yet ({error.text}). Append this line to "
                f"the file that TrustedUserCAKeys names, and try again:\n\n{line}"
            )
    earlier = rotation.finish_user(directory)
    minutes = login.certificate_minutes
    print("The portal signs with the new key; no restart is needed.")
    print(f"In {minutes} minutes, when the last certificate has expired, remove this line from")
    print(f"the file that TrustedUserCAKeys names on {hosts} (at once after a theft):\n\n{earlier}")
    return 0


def _gateways(settings: Settings, directory: Path, options: argparse.Namespace) -> int:
    host = urlsplit(settings.sessions.callback).hostname or "localhost"
    stage = rotation.stage(directory)
    if options.begin:
        if stage is Stage.FINISHING:
            return fail("an earlier rotation was interrupted: slipway rotate gateways --finish")
        rotation.begin_gateways(directory, host)
        print("The new authorities sign; the earlier ones are still trusted. Now run:")
        print(f"    {RELOAD}")
        print("Running sessions take over both by their next heartbeats. Later, when this does not")
        print("name a session any more:\n    slipway rotate gateways --finish")
        return 0
    if not options.finish:
        print(f"rotation of the gateways' authorities: {_stage_text(stage)}")
        return 0
    if stage is Stage.NONE:
        return fail("nothing has begun: slipway rotate gateways --begin")
    if stage is Stage.BEGINNING:
        return fail("the first step was interrupted: slipway rotate gateways --begin")
    if stage is Stage.BEGUN and not options.force and (sessions := still_need(settings)):
        return fail(_need_text(sessions))
    rotation.finish_gateways(directory, host)
    print(f"The earlier authorities are gone. Now run:\n    {RELOAD}")
    return 0


def _stage_text(stage: Stage) -> str:
    return {
        Stage.NONE: "not begun",
        Stage.BEGINNING: "interrupted; next: slipway rotate gateways --begin",
        Stage.BEGUN: "begun; next: slipway rotate gateways --finish",
        Stage.FINISHING: "interrupted; next: slipway rotate gateways --finish",
    }[stage]


def still_need(settings: Settings) -> list[Session]:
    """Sessions that can connect with the portal only by the earlier authorities.

    Running sessions are tested. Waiting ones have the authorities of the time of submission.
    """
    directory = settings.state.ca_file("")
    begin = rotation.begun_at(directory) + LAUNCH_MARGIN
    live = [s for s in live_sessions(settings) if s.state is not State.ENDING]
    running = [s for s in live if s.ready is not None]
    context = context_after_rotation(directory)
    with ThreadPoolExecutor(32) as pool:
        results = pool.map(lambda session: accepts(context, session), running)
        needing = [s for s, accepted in zip(running, results, strict=True) if not accepted]
    return needing + [s for s in live if s.ready is None and s.submitted < begin]


def _need_text(sessions: Sequence[Session]) -> str:
    lines = [
        f"{len(sessions)} sessions still need the earlier authorities; nothing was changed.",
        *(f"    {s.owner}  {s.name}  {_location(s)}" for s in sessions[:_LISTED]),
        *([f"    and {len(sessions) - _LISTED} more"] if len(sessions) > _LISTED else []),
        "Running ones follow within a heartbeat, unless they were launched by an earlier release",
        "or their node does not answer; those that wait, when they start. Try again later. With",
        "--force the apps of these sessions cannot be reached any more.",
    ]
    return "\n".join(lines)


def _location(session: Session) -> str:
    ends = f", ends by {session.deadline:%Y-%m-%d %H:%M} UTC" if session.deadline else ""
    return f"{session.state}" + (f" on {session.node}" if session.node else "") + ends
