"""Runs one session inside its job, from the spec to the last process."""

from __future__ import annotations

import os
import signal
import threading

from . import control, gateway
from .apps.app import App
from .apps.detect import detect
from .apps.supervisor import Supervisor
from .callback import (
    Callback,
    Refused,
    Reporter,
    SessionOver,
    SessionUnknown,
    Unreachable,
    post_ready,
)
from .countdown import Countdown, Tmux
from .home import HomeCounter
from .log import say
from .memory import MemoryWatch
from .spec import Spec, SpecError, parse_app_start
from .status import StatusFile
from .trust.adoption import LONGEST_PAUSE, Claim
from .trust.renewal import Renewal
from .usage import read_gpu_usage, read_usage

# Slurm waits 30 s between SIGTERM and SIGKILL; users should not have to.
GRACE = 1.5


class Session:
    """One session; `run` returns the exit code of the job."""

    def __init__(self, spec: Spec, directory: str, toolkit: str) -> None:
        self._spec = spec
        self._directory = directory
        self._toolkit = toolkit
        self._wake_reader, self._wake_writer = os.pipe()
        self._callback = Callback(spec)
        self._renewal = Renewal(self._callback, spec.callback_ca, spec.client_ca)
        self._supervisor = Supervisor(
            spec.apps, directory, toolkit, self._app_changed, spec.env, spec.workdir
        )
        self._countdown = Countdown(Tmux(toolkit, directory))
        self._status = StatusFile(directory)
        self._reporter = Reporter(
            self._callback,
            spec.heartbeat_seconds,
            self._usage,
            lambda: self.end(0),
            self._answered,
            self._unknown,
        )
        self._home = HomeCounter(os.environ.get("HOME", "/"))
        self._memory = MemoryWatch(self._killed)
        self._gateway: gateway.Gateway | None = None
        self._claim: Claim | None = None
        self._ready: dict[str, object] = {}

    def end(self, code: int) -> None:
        """Make `run` return `code`; safe in any thread and in signal handlers."""
        os.write(self._wake_writer, bytes([code]))

    def run(self, job_id: str, node: str) -> int:
        """Run until a signal, the portal or a permanent failure of the gateway ends the session."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self.end(0))
        listener = gateway.listen(self._spec.ports)
        self._memory.start()
        for app in self._spec.start:
            self._supervisor.start(app)
        if self._spec.count_home:
            self._home.start()
        control.serve(self._directory, self._supervisor)
        self._gateway = gateway.Gateway(
            self._toolkit, self._directory, listener, lambda: self.end(1)
        )
        endpoint = {"job_id": job_id, "node": node, "port": listener.getsockname()[1]}
        threading.Thread(target=self._report, args=(endpoint,), name="portal", daemon=True).start()
        code = os.read(self._wake_reader, 1)[0]
        say("Ending the session")
        self._supervisor.stop_all(GRACE)
        self._gateway.stop()
        return code

    def _report(self, endpoint: dict[str, object]) -> None:
        claim = Claim(self._callback, self._spec, endpoint)
        claim.prove()
        self._claim = claim
        try:
            self._get_ready(endpoint, claim)
            self._reporter.run()
        except SessionOver:
            say("The portal reports that this session has ended")
            self.end(0)
        except (Refused, Unreachable, SpecError, gateway.GatewayFailed) as error:
            say(f"The session cannot be opened: {error}")
            self.end(1)

    def _get_ready(self, endpoint: dict[str, object], claim: Claim) -> None:
        request = gateway.request_certificate(self._toolkit, self._directory, self._spec.session)
        # The key is created by another process during this TLS handshake.
        self._callback.connect()
        detected = detect(self._spec.detect)
        csr = gateway.read_request(request)
        self._ready = {**endpoint, "csr": csr, "apps": detected}
        answer = post_ready(self._callback, self._ready, self._spec.patience_seconds, claim.ask)
        certificate = self._start_apps(answer)
        if self._gateway is not None:
            self._gateway.start(
                self._spec.session, self._spec.apps, certificate, self._spec.client_ca
            )
            self._renewal.serve(self._gateway, csr)
        say(f"Ready on {endpoint['node']}, port {endpoint['port']}")

    def _start_apps(self, answer: dict[str, object]) -> str:
        """Start the apps of the portal's answer to "ready"; returns the gateway's certificate."""
        apps = answer.get("start", [])
        for item in apps if isinstance(apps, list) else []:
            self._supervisor.start(parse_app_start(item))
        certificate = answer.get("certificate")
        if not isinstance(certificate, str):
            raise SpecError("certificate", "must be a text")
        return certificate

    def _unknown(self) -> float:
        """Ask a portal that has lost the session to adopt it, and report ready again.

        Returns the seconds until the next attempt, or the next report.
        """
        if self._claim is None:
            return LONGEST_PAUSE
        if not self._claim.ask():
            return self._claim.wait
        self._get_ready_again()
        return 0.0

    def _get_ready_again(self) -> None:
        """Report the gateway's address again; the gateway keeps its certificate.

        Failures are retried after the next heartbeat. Changed authorities are followed as usual,
        by the answers to heartbeats.
        """
        try:
            self._start_apps(self._callback.post("ready", self._ready))
        except (Refused, SessionUnknown, SpecError, Unreachable) as error:
            say(f"The portal cannot open this session yet: {error}")

    def _app_changed(self, app: App) -> None:
        self._reporter.app_changed(app.name, app.report())

    def _answered(self, answer: dict[str, object]) -> None:
        self._status.write(answer)
        self._countdown.tell(answer)
        self._renewal.answered(answer)
        if answer.get("ready") is False:
            self._get_ready_again()

    def _killed(self, text: str) -> None:
        self._reporter.hurry()
        self._countdown.announce(text)

    def _usage(self) -> dict[str, object]:
        supervisor = self._supervisor
        gpu = read_gpu_usage() if self._spec.gpu else {}
        used = {**read_usage(), **gpu, **self._memory.report(), **self._home.latest()}
        return {**used, "apps": supervisor.states(), "busy": supervisor.busy()}
