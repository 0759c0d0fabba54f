"""An app of the session: its process, its output, and its readiness."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import deque

from ..log import say, stamp, write
from ..spec import AppStart
from . import netns
from .probe import computes, read_details
from .readiness import Readiness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from io import BufferedReader

LOG_LINES = 50
LONGEST_LINE = 2000
# Bytes that one app may write to the job's log, so that a runaway cannot fill the user's quota.
LOG_BYTES = 20 * 1024 * 1024
# Interval of the checks why an app does not answer, and of reports with its last lines; a new
# finding is reported at once.
SLOW, REPORT = 5.0, 15.0
# Seconds until the state of an app that is asked to start, but runs, is reported again.
REPORT_AGAIN = 0.5
# Above the runner's and the gateway's: out of memory, the apps are killed first.
OOM_SCORE = 500
# The job's umask, as of its owner's login; the runner's own files are private (gateway.py).
UMASK = os.umask(0o077)
os.umask(UMASK)
STARTING, READY, FAILED, STOPPED = "starting", "ready", "failed", "stopped"


class App:
    """One app; `changed` is called on every change of state. Methods are thread-safe.

    `workdir` is the directory in which it starts, relative to the home.
    """

    def __init__(
        self,
        name: str,
        directory: str,
        toolkit: str,
        changed: Callable[[App], None],
        env: Mapping[str, str] | None = None,
        workdir: str = "",
    ) -> None:
        self.name = name
        self.state = STOPPED
        self.message = ""
        self.started = False
        self._directory = directory
        self._toolkit = toolkit
        self._changed = changed
        self._env = env or {}
        self._workdir = workdir
        self._details = ""
        self._lines: deque[str] = deque(maxlen=LOG_LINES)
        self._lock = threading.RLock()
        # Serialises starting and stopping; _lock protects the state and is held only briefly.
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._description: AppStart | None = None

    @property
    def socket_path(self) -> str:
        """The socket on which the app must listen."""
        return f"{self._directory}/{self.name}.sock"

    @property
    def running(self) -> bool:
        """Whether the process has been started and not stopped."""
        return self.state in {STARTING, READY}

    def busy(self) -> bool:
        """Whether the app is computing, used or not."""
        description = self._description
        if self.state != READY or description is None or not description.busy:
            return False
        return computes(self.socket_path, description.busy, description.busy_when)

    def report(self) -> dict[str, object]:
        """The report to the portal about the app."""
        log = "\n".join(self._lines)
        report: dict[str, object] = {"state": self.state, "message": self.message, "log": log}
        if self.state == READY and self._details:
            report["details"] = self._details
        return report

    def start(self, description: AppStart) -> None:
        """Start the app; one that is starting or running is only reported again."""
        with self._turn, self._lock:
            if self.running:
                # A portal that has lost the session does not know that it runs. This report comes
                # after the portal has stored that the app starts.
                threading.Timer(REPORT_AGAIN, self._changed, [self]).start()
                return
            # A new deque: a kernel left over from the last run may still write to the old one.
            self._lines = deque(maxlen=LOG_LINES)
            self.state, self.message, self.started = STARTING, "", True
            try:
                process = self._spawn(description)
            except OSError as error:
                self._settle(FAILED, f"{self.name} cannot be started: {error}")
                return
            self._process, self._description = process, description
        say(f"{self.name}: starting")
        threading.Thread(
            target=self._read_output,
            args=(process, self._lines),
            name=f"{self.name}-log",
            daemon=True,
        ).start()
        threading.Thread(
            target=self._watch, args=(process, description), name=self.name, daemon=True
        ).start()

    def ask_to_end(self) -> None:
        """Send SIGTERM to the app's processes; does not wait."""
        with self._lock:
            was_running, self.state = self.running, STOPPED
            process = self._process
        if process is not None and was_running:
            _signal_group(process.pid, signal.SIGTERM)

    def stop(self, grace: float) -> None:
        """End the app and everything it has started; kills after `grace` seconds."""
        with self._turn:
            self.ask_to_end()
            process = self._process
            if process is not None:
                try:
                    process.wait(grace)
                except subprocess.TimeoutExpired:
                    _signal_group(process.pid, signal.SIGKILL)
            # Servers that left the process group (tmux, kernels) still have the app's name.
            for pid in processes_of(self.name):
                _kill(pid)
            self._settle(STOPPED, "")

    @property
    def _home(self) -> str:
        return f"{self._directory}/{self.name}"

    def _spawn(self, description: AppStart) -> subprocess.Popen[bytes]:
        os.makedirs(self._home, 0o700, exist_ok=True)
        path = f"{self._home}/start.sh"
        with open(path, "w", encoding="utf-8") as file:
            file.write(description.script)
        # Files of an earlier run.
        for stale in (self.socket_path, f"{self._home}/details"):
            if os.path.lexists(stale):
                os.unlink(stale)
        raise_score = f'echo {OOM_SCORE} 2>/dev/null >/proc/self/oom_score_adj; exec "$@"'
        argv = ["/bin/sh", "-c", raise_score, "sh", _shell(description.script), path]
        if description.listen == "tcp":
            config = f"{self._home}/forward.cfg"
            argv = netns.wrap(self._toolkit, self.socket_path, config, argv)
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._start_directory(),
            env=self._environment(description),
            start_new_session=True,
            umask=UMASK,
        )

    def _start_directory(self) -> str:
        """The session's start directory; the home while there is no such directory."""
        home = os.environ.get("HOME", "/")
        path = os.path.join(home, self._workdir)
        return path if self._workdir and os.access(path, os.X_OK) else home

    def _environment(self, description: AppStart) -> dict[str, str]:
        environment = {"LANG": "C.UTF-8", **os.environ}
        # Apptainer's prompt; the image's shell has a better one.
        for name in ("PS1", "PROMPT_COMMAND"):
            environment.pop(name, None)
        environment |= self._env
        # Prepended: without the image's own PATH none of its programs would be found. SLIPWAY_PATH
        # is the PATH without users' own packages (packages.py).
        for name, source in (("PATH", "PATH"), ("SLIPWAY_PATH", "PATH"), ("PYTHONPATH",) * 2):
            if source in self._env and name in os.environ:
                environment[name] = f"{self._env[source]}:{os.environ[name]}"
        if description.listen == "tcp":
            environment["PORT"] = str(netns.PORT)
            # Nothing but loopback is there, and no proxy: apps that ask themselves would fail.
            environment["no_proxy"] = environment["NO_PROXY"] = "*"
        return (
            environment
            | description.env
            | {
                "SLIPWAY_APP": self.name,
                "SLIPWAY_SOCKET": self.socket_path,
                "SLIPWAY_RUN": self._home,
                "SLIPWAY_TOOLKIT": self._toolkit,
                "SLIPWAY_WORKDIR": self._start_directory(),
                "SLIPWAY_ORIGIN": description.origin,
                # Every app has its own origin, so it is served at the root.
                "SLIPWAY_BASE_PATH": "/",
                "SLIPWAY_ASKED": description.asked,
                "SLIPWAY_NAME": description.session_name,
            }
        )

    def _read_output(self, process: subprocess.Popen[bytes], lines: deque[str]) -> None:
        stream: BufferedReader = process.stdout  # type: ignore[assignment]
        left = LOG_BYTES
        mark = f" [{self.name}] ".encode()
        with stream:
            while line := stream.readline(LONGEST_LINE):
                text = line.rstrip(b"\r\n")
                lines.append(text.decode(errors="replace"))
                # Output after a requested stop would not help the reader.
                if left > 0 and self.state != STOPPED:
                    write(stamp().encode() + mark + text + b"\n")
                    left -= len(line)
                    if left <= 0:
                        say(f"{self.name} has written too much; further output is not logged")

    def _watch(self, process: subprocess.Popen[bytes], description: AppStart) -> None:
        readiness = Readiness(
            self.socket_path, description, process.pid, lambda: processes_of(self.name)
        )
        answered = self._await_answer(process, description, readiness)
        readiness.close()
        if answered and self._settle(READY, "", of=process):
            say(f"{self.name}: ready")
        late = f"{self.name} did not answer within {description.timeout:g} seconds"
        if not answered and (finding := readiness.finding()):
            late += f": {finding}"
        if not answered and process.poll() is None and self._settle(FAILED, late, of=process):
            _signal_group(process.pid, signal.SIGKILL)
        code = process.wait()
        # Its last output may still be in the pipe.
        time.sleep(0.05)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        before = "" if answered else " before it answered"
        if code == 0 and answered:
            self._settle(STOPPED, f"{self.name} has ended", of=process)
        else:
            self._settle(FAILED, f"{self.name} ended{before} ({how})", of=process)

    def _await_answer(
        self, process: subprocess.Popen[bytes], description: AppStart, readiness: Readiness
    ) -> bool:
        deadline = time.monotonic() + description.timeout
        slow, report = time.monotonic() + SLOW, 0.0
        while process.poll() is None and self.running and time.monotonic() < deadline:
            if readiness.answered():
                self._details = read_details(f"{self._home}/details")
                return True
            if (now := time.monotonic()) > slow:
                slow = now + SLOW
                finding = readiness.finding()
                message = finding[:1].upper() + finding[1:]
                if message and (message != self.message or now > report):
                    report = now + REPORT
                    self._settle(STARTING, message, of=process)
        return False

    def _settle(self, state: str, message: str, of: subprocess.Popen[bytes] | None = None) -> bool:
        """Change the state; with `of`, only while that process is still the running app."""
        with self._lock:
            if of is not None and (of is not self._process or not self.running):
                return False
            self.state, self.message = state, message
        if state == FAILED:
            say(message)
        self._changed(self)
        return True


def processes_of(app: str, proc: str = "/proc") -> Iterable[int]:
    """Yield the PIDs of processes with the app's name in their environment."""
    mark = f"SLIPWAY_APP={app}".encode()
    for name in os.listdir(proc):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        try:
            with open(f"{proc}/{name}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    yield int(name)
        except OSError:
            continue


def _shell(script: str) -> str:
    # bash only if the script asks for it and the image has it.
    first = script.partition("\n")[0]
    if first.startswith("#!") and "bash" in first and os.path.exists("/bin/bash"):
        return "/bin/bash"
    return "/bin/sh"


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except OSError:
        return


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return
