"""The spawner, which starts JupyterHub's servers as sessions of the portal.

It never queries Slurm: the portal does, once for all users. A session is identified by the path of
its server, so it is found again even if JupyterHub was killed before it stored anything.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from jupyterhub.spawner import Spawner
from tornado.web import HTTPError
from traitlets import Any as AnyValue
from traitlets import Float, Integer, Unicode, default

from portal.client import Client, ClientError, NoAnswer, Refused, Session
from portal.hub import launch
from portal.hub.authenticator import TOKEN
from portal.hub.connection import ask, connection
from portal.hub.form import APP, chosen_before, options_from_form, page
from portal.hub.progress import Step, answers, exit_code, server_has_ended, steps_of
from portal.hub.refusals import Refusal, for_user

LOST = 3600.0
"""Seconds until an unknown session counts as gone; until then the portal may adopt it."""
QUICK = 0.2
"""Poll interval in seconds while a server starts, and for SOON seconds after its launch."""
SOON = 10.0
LATE = 3.0
"""Seconds in which a cancelled launch, or one whose response was lost, may take effect."""
PATIENCE = 5.0
"""Seconds between two attempts to end a session while the portal does not answer."""


class SlipwaySpawner(Spawner):  # type: ignore[misc]  # JupyterHub has no types
    """Starts a user's server as a session: a Slurm job with an Apptainer image."""

    portal_url = Unicode(help="Address of the portal.").tag(config=True)
    servers_url = Unicode(
        help="Address of [hub] listen in the portal's settings, where the servers are reached."
    ).tag(config=True)
    verify = Unicode("", help="File of the authority of the portal's certificate (PEM).").tag(
        config=True
    )
    service_token = Unicode(
        "",
        help="Token of `slipway token create`, for authenticators other than SlipwayAuthenticator. "
        "It acts for the user of the same name.",
    ).tag(config=True)
    # JupyterHub's own trait raises an internal error for values that are not objects.
    user_options = AnyValue()
    pause = Float(
        1.0, min=0.1, help="Seconds between two questions while a server waits in Slurm's queue."
    ).tag(config=True)
    # A queue has no timeout: the user cancels, or the site sets one.
    start_timeout = Integer(
        7 * 24 * 3600, help="Seconds until a server has to run, with the time in Slurm's queue."
    ).tag(config=True)
    http_timeout = Integer(60, help="Seconds until a running server has to answer.").tag(
        config=True
    )
    # One small request for each server; the portal does not ask Slurm for it.
    poll_interval = Integer(5, help="Seconds between two looks at a running server.").tag(
        config=True
    )

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._session_id = ""
        self._last: Session | None = None
        self._missing: float | None = None
        self._starting = False
        self._nothing_launched = False
        self._certificate: launch.Certificate | None = None
        self._launching: asyncio.Future[tuple[Session, ...]] | None = None
        self._abandoning: asyncio.Future[None] | None = None

    # The portal

    @property
    def prefix(self) -> str:
        """The path of the server: /user/NAME/, or /user/NAME/SERVER/."""
        return str(self.server.base_url) if self.server else f"{self._server_path()}"

    def _server_path(self) -> str:
        path: str = self.user.server_url(self.name) if self.name else self.user.base_url
        return path if path.endswith("/") else f"{path}/"

    async def client(self) -> Client:
        """A client of the portal that acts for this server's user."""
        portal = connection(self.portal_url, self.verify)
        if self.service_token:
            return portal.acting_for(self.service_token, self.user.name)
        state = await self.user.get_auth_state() or {}
        if TOKEN not in state:
            raise Refusal(403, "Please log out of JupyterHub and log in again.")
        return portal.acting_for(state[TOKEN])

    # State

    def get_state(self) -> dict[str, Any]:
        """The state that JupyterHub stores: the session's id."""
        state: dict[str, Any] = super().get_state()
        return state | ({"session": self._session_id} if self._session_id else {})

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Read the state that JupyterHub has stored."""
        super().load_state(state)
        self._session_id = str(state.get("session", ""))

    def clear_state(self) -> None:
        """Forget the session."""
        super().clear_state()
        self._session_id, self._last, self._missing = "", None, None
        self._nothing_launched, self._abandoning = False, None

    # The form

    @default("options_form")
    def _options_form(self) -> Callable[[Spawner], Any]:
        return lambda spawner: spawner.form()

    async def form(self) -> str:
        """The form with the portal's current offers for this user."""
        try:
            client = await self.client()
            offers = await ask(client.offers, **chosen_before(self.user_options))
        except ClientError as error:
            raise Refusal(503, error.text) from error
        return page(offers, await self.last_end(), self.user_options)

    async def last_end(self) -> str:
        """How the last session of this server ended; "" if it was ended by the user."""
        try:
            sessions = await ask((await self.client()).sessions, hub=self.prefix, limit=1)
        except (ClientError, HTTPError):
            return ""
        end = sessions[0].end if sessions else None
        return end.text if end and end.text != f"Ended by {sessions[0].owner}." else ""

    @default("options_from_form")
    def _from_form(self) -> Callable[..., dict[str, Any]]:
        return options_from_form

    @default("user_options")
    def _no_options(self) -> dict[str, Any]:
        return {}

    @default("apply_user_options")
    def _apply(self) -> Callable[[Spawner, Any], None]:
        return lambda _, options: launch.check_options(options)

    # Starting

    async def start(self) -> str:
        """Launch a session, and wait until its server answers; returns the server's URL.

        Raises HTTPError with the portal's message if it refuses, or if the session ends.
        """
        self._abandoning = None
        self._starting, self._launching, self._nothing_launched = True, None, True
        try:
            return await self._start()
        except (Refused, NoAnswer) as error:
            raise for_user(error) from error
        except asyncio.CancelledError:
            # JupyterHub allows a cancelled start one second; stop() waits for the cleanup.
            self._abandoning = asyncio.ensure_future(self._abandon())
            raise
        finally:
            self._starting = False

    async def _start(self) -> str:
        client = await self.client()
        # End sessions of earlier starts at this path, which have other tokens.
        await self._end_all(client)
        # The idempotency key is reused after a lost response, and differs for each start.
        self._launching = asyncio.ensure_future(self._launch(client, self._body()))
        # Retrieve the exception, which is not awaited if the start is cancelled.
        self._launching.add_done_callback(lambda task: task.cancelled() or task.exception())
        launched = await asyncio.shield(self._launching)
        self._remember(launched[0])
        return await self._until_it_answers()

    async def _launch(self, client: Client, body: dict[str, Any]) -> tuple[Session, ...]:
        self._nothing_launched = False
        try:
            return await ask(client.launch, body, secrets.token_hex(16))
        except Refused as error:
            # A gateway's error does not tell whether the portal launched the session.
            self._nothing_launched = error.status not in (502, 504)
            raise

    def _body(self) -> dict[str, Any]:
        """The launch request."""
        env = self.get_env()
        site = launch.site_variables(env)
        launch.check_options(self.user_options)
        body = launch.with_site_defaults(self.user_options, site, self.cpu_limit, self.mem_limit)
        if name := launch.session_name_of(self.name):
            body = {"name": name} | body
        return body | {"hub": launch.server(self.prefix, env, self._certificate)}

    async def move_certs(self, paths: Mapping[str, str]) -> Mapping[str, str]:
        """Keep the certificate's contents for the launch; no path of this machine is sent."""
        self._certificate = await ask(launch.Certificate.read, paths)
        return paths

    async def _until_it_answers(self) -> str:
        launched = time.monotonic()
        while True:
            session = await self._poll_session()
            if session is not None and answers(session, APP):
                return self.servers_url
            # Poll often during the few seconds of a start without waiting in the queue.
            starts = session is not None and session.state in ("STARTING", "RUNNING")
            soon = starts or time.monotonic() - launched < SOON
            await asyncio.sleep(min(QUICK, self.pause) if soon else self.pause)

    async def _poll_session(self) -> Session | None:
        """The session; None while the portal does not answer, or its user is logged out."""
        try:
            # A new login may have replaced the token of the launch.
            session: Session = await ask((await self.client()).session, self._session_id)
        except (NoAnswer, Refusal):
            return None
        except Refused as error:
            if error.is_passing or (error.status == 401 and not self.service_token):
                return None
            raise
        self._remember(session)
        return session

    def _remember(self, session: Session) -> None:
        self._session_id, self._last, self._missing = session.id, session, None

    async def _abandon(self) -> None:
        """Request the end of sessions at this path, also of one that is still being launched."""
        if self._launching is not None:
            await asyncio.wait([self._launching])
        try:
            client = await self.client()
            for session in await ask(client.sessions, hub=self.prefix, state="running"):
                await ask(client.stop, session.id)
        except (ClientError, HTTPError) as error:
            self.log.warning("%s: not ended yet: %s", self._log_name, error)

    async def get_url(self) -> str:
        """The server's URL."""
        return f"{self.servers_url.rstrip('/')}{self.prefix}"

    async def progress(self) -> AsyncGenerator[dict[str, Any], None]:
        """Progress messages; a page that is opened later gets them, too."""
        previous: Step | None = None
        while self._starting:
            if self._last is not None:
                for step in steps_of(self._last, APP):
                    if step != previous:
                        previous = step
                        yield {"progress": step.percent, "message": step.text}
            await asyncio.sleep(self.pause)

    # Living and ending

    async def poll(self) -> int | None:
        """None while the session is live or its state is unknown; otherwise its exit code."""
        if (
            self._starting or self._abandoning is not None
        ):  # until stop() has ended remaining sessions
            return None
        if self._nothing_launched:
            return 0
        try:
            client = await self.client()
            if not self._session_id:
                return await self._adopt(client)
            session = await ask(client.session, self._session_id)
        except Refused as error:
            return self._unknown() if error.status == 404 else None
        except (ClientError, HTTPError) as error:
            self.log.warning("%s: state unknown: %s", self._log_name, error)
            return None
        self._remember(session)
        if server_has_ended(session, APP):
            await self._abandon()
            return 1
        return exit_code(session)

    def _unknown(self) -> int | None:
        """The result of poll() if the portal does not know the session, which may still run."""
        now = time.monotonic()
        if self._missing is None:
            self._missing = now
            self.log.warning("%s: the portal does not know its session", self._log_name)
        return 1 if now - self._missing > LOST else None

    async def _adopt(self, client: Client) -> int | None:
        """Find the session of a JupyterHub that was killed before it stored anything."""
        sessions = await ask(client.sessions, hub=self.prefix, state="running")
        if not sessions:
            return 0
        session = sessions[0]
        app = session.app(APP)
        if session.state == "RUNNING" and app is not None and app.state == "ready":
            self._remember(session)
            return None
        # JupyterHub does not wait for this start any more.
        await ask(client.stop, session.id)
        return 1

    async def stop(self, now: bool = False) -> None:
        """End the session, and wait until its job is gone.

        JupyterHub forgets the server afterwards in any case, so this retries while the portal does
        not answer. `now` makes no difference, since a job takes time to end.
        """
        if self._abandoning is not None:
            await asyncio.wait([self._abandoning])
            await asyncio.sleep(LATE)
        while True:
            try:
                await self._end_all(await self.client())
            except NoAnswer as error:
                self.log.warning("%s: not ended yet: %s", self._log_name, error)
            except Refused as error:
                if not error.is_passing:
                    raise for_user(error) from error
            else:
                return
            await asyncio.sleep(PATIENCE)

    async def _end_all(self, client: Client) -> None:
        """End this server's session, and others at its path."""
        sessions = await ask(client.sessions, hub=self.prefix, state="running")
        for identifier in {self._session_id, *(session.id for session in sessions)} - {""}:
            await self._end(client, identifier)

    async def _end(self, client: Client, identifier: str) -> None:
        session = None
        try:
            session = await ask(client.stop, identifier)
            while not session.is_over:
                await asyncio.sleep(self.pause)
                session = await ask(client.session, identifier)
        except Refused as error:
            # The session ends even if its user has logged out since, which revokes the token.
            if error.status != 404 and not (session and error.status == 401):
                raise
