"""The portal's messages to the runner: the spec on standard input, and start requests."""

from __future__ import annotations

import json
import re

from .apps.packages import Packages

NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
SESSION = re.compile(r"[0-9a-f]{32}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PATH = re.compile(r"/[!-~]*")
CONTROL = "control"
# More than the portal's current limit, so that sessions accepted under an earlier one still start;
# the kernel's limit on arguments and environment is several times as large.
ENV_BYTES = 512 * 1024
# Seconds in which the portal must accept a session's first call, unless it says otherwise.
PATIENCE = 600.0


class SpecError(ValueError):
    """An invalid message to the runner; `field` names the wrong field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class AppStart:
    """How to start one app; `timeout`: seconds until it must answer the probe of `ready`.

    The fields are described in core/apps/catalog.py. `origin` is the app's address in browsers,
    `asked` the owner's answer to the app's prompt, `env` variables that no other app gets.
    """

    __slots__ = (
        "asked",
        "busy",
        "busy_when",
        "env",
        "kind",
        "listen",
        "name",
        "origin",
        "ready",
        "script",
        "session_name",
        "timeout",
    )

    def __init__(
        self,
        name: str,
        script: str,
        ready: str,
        timeout: float,
        *,
        kind: str = "web",
        listen: str = "unix",
        asked: str = "",
        origin: str = "",
        busy: str = "",
        busy_when: str = "",
        session_name: str = "",
        env: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.script = script
        self.ready = ready
        self.timeout = timeout
        self.kind = kind
        self.listen = listen
        self.asked = asked
        self.origin = origin
        self.busy = busy
        self.busy_when = busy_when
        self.session_name = session_name
        self.env = env or {}


class SharedMemory:
    """Size of /dev/shm in MiB; `must`: the session must not run without it."""

    __slots__ = ("mb", "must")

    def __init__(self, mb: int, must: bool) -> None:
        self.mb = mb
        self.must = must


class Spec:
    """The session as described by the portal; the only place that holds the token."""

    __slots__ = (
        "about apps callback callback_ca client_ca count_home detect env gpu heartbeat_seconds "
        "packages patience_seconds ports proof session shared_memory start token workdir"
    ).split()

    def __init__(
        self,
        *,
        session: str,
        token: str,
        callback: tuple[str, int],
        callback_ca: str,
        client_ca: str,
        ports: tuple[int, int],
        heartbeat_seconds: float,
        patience_seconds: float,
        apps: tuple[str, ...],
        detect: dict[str, tuple[str, ...]],
        start: tuple[AppStart, ...],
        env: dict[str, str],
        packages: Packages | None,
        shared_memory: SharedMemory | None,
        gpu: bool,
        workdir: str,
        count_home: bool,
        proof: str,
        about: dict[str, object],
    ) -> None:
        self.session, self.token = session, token
        self.callback, self.ports = callback, ports
        self.callback_ca, self.client_ca = callback_ca, client_ca
        self.heartbeat_seconds, self.patience_seconds = heartbeat_seconds, patience_seconds
        self.apps, self.detect, self.start = apps, detect, start
        self.env, self.packages = env, packages
        self.shared_memory, self.gpu = shared_memory, gpu
        self.workdir = workdir
        self.count_home = count_home
        self.proof, self.about = proof, about  # see trust/adoption.py


def parse_spec(text: str) -> Spec:
    """Parse the spec; raise SpecError naming the first wrong field."""
    message = parse_object("spec", text)
    apps = tuple(_app_name(name) for name in _list(message, "apps"))
    if len(set(apps)) != len(apps):
        raise SpecError("apps", "has a name twice")
    start = tuple(parse_app_start(item) for item in _list(message, "start", optional=True))
    for app in start:
        if app.name not in apps:
            raise SpecError("start", f"{app.name} is not among the apps")
    proof, about = _adoption(message)
    return Spec(
        session=_text(message, "session", SESSION),
        token=_text(message, "token", re.compile(r"[!-~]{8,}")),
        callback=_callback(_text(message, "callback")),
        callback_ca=_pem(message, "callback_ca"),
        client_ca=_pem(message, "client_ca"),
        ports=_ports(message),
        heartbeat_seconds=_number(message, "heartbeat_seconds", 0.05, 3600),
        patience_seconds=_number(message, "patience_seconds", 0.05, 3600, PATIENCE),
        apps=apps,
        detect=_probes(message),
        start=start,
        env=_environment(message),
        packages=_packages(message),
        shared_memory=_shared_memory(message),
        gpu=_flag(message, "gpu"),
        workdir=_optional(message, "workdir"),
        count_home=_flag(message, "count_home"),
        proof=proof,
        about=about,
    )


def parse_app_start(item: object) -> AppStart:
    """Parse one start request; raise SpecError naming the wrong field."""
    if not isinstance(item, dict):
        raise SpecError("app", "must be an object")
    return AppStart(
        name=_app_name(item.get("name")),
        script=_text(item, "script"),
        ready=_text(item, "ready", PATH),
        timeout=_number(item, "timeout", 0.05, 3600),
        kind=_choice(item, "kind", ("web", "ssh", "hub")),
        listen=_choice(item, "listen", ("unix", "tcp")),
        asked=_optional(item, "asked"),
        origin=_optional(item, "origin"),
        busy=_optional(item, "busy", PATH),
        busy_when=_expression(item, "busy_when"),
        session_name=_optional(item, "session_name"),
        env=_environment(item),
    )


def parse_object(field: str, text: str) -> dict[str, object]:
    """Parse JSON that must be an object."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise SpecError(field, "is not JSON") from None
    if not isinstance(message, dict):
        raise SpecError(field, "must be an object")
    return message


def _text(message: dict[str, object], field: str, pattern: re.Pattern[str] | None = None) -> str:
    value = message.get(field)
    if not isinstance(value, str) or not value:
        raise SpecError(field, "must be a text")
    if "\0" in value or (pattern is not None and not pattern.fullmatch(value)):
        raise SpecError(field, "has the wrong form")
    return value


def _optional(
    message: dict[str, object], field: str, pattern: re.Pattern[str] | None = None
) -> str:
    return _text(message, field, pattern) if message.get(field, "") != "" else ""


def _choice(message: dict[str, object], field: str, values: tuple[str, ...]) -> str:
    """One of these values; the first if none is given."""
    value = message.get(field, values[0])
    if value not in values:
        raise SpecError(field, f"must be one of {', '.join(values)}")
    return str(value)


def _expression(message: dict[str, object], field: str) -> str:
    value = _optional(message, field)
    try:
        re.compile(value)
    except re.error as error:
        raise SpecError(field, f"is not a regular expression: {error}") from None
    return value


def _number(
    message: dict[str, object], field: str, low: float, high: float, usual: float | None = None
) -> float:
    value = message.get(field, usual)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise SpecError(field, f"must be a number of seconds from {low} to {high}")
    return float(value)


def _flag(message: dict[str, object], field: str) -> bool:
    """A boolean; False if it is missing."""
    value = message.get(field, False)
    if not isinstance(value, bool):
        raise SpecError(field, "must be true or false")
    return value


def _list(message: dict[str, object], field: str, optional: bool = False) -> list[object]:
    value = message.get(field, [] if optional else None)
    if not isinstance(value, list):
        raise SpecError(field, "must be a list")
    return value


def _probes(message: dict[str, object]) -> dict[str, tuple[str, ...]]:
    """Programs to look for, by app; any one of an app's is sufficient."""
    value = message.get("detect", {})
    if not isinstance(value, dict):
        raise SpecError("detect", "must be an object")
    for programs in value.values():
        if not isinstance(programs, list) or not all(isinstance(name, str) for name in programs):
            raise SpecError("detect", "must have a list of programs for each app")
    return {_app_name(name): tuple(programs) for name, programs in value.items()}


def _environment(message: dict[str, object]) -> dict[str, str]:
    variables = message.get("env", {})
    if not isinstance(variables, dict):
        raise SpecError("env", "must be an object")
    for name, value in variables.items():
        # The value may be secret, so the message does not contain it.
        if not VARIABLE.fullmatch(name) or not isinstance(value, str) or "\0" in value:
            raise SpecError("env", "has a name or a value that cannot be set")
    if (
        sum(len(f"{name}={value}".encode(errors="replace")) for name, value in variables.items())
        > ENV_BYTES
    ):
        raise SpecError("env", f"has more than {ENV_BYTES} bytes, too many to start programs with")
    return variables


def _packages(message: dict[str, object]) -> Packages | None:
    value = message.get("packages")
    if value is None:
        return None
    if not isinstance(value, dict):
        raise SpecError("packages", "must be an object")
    folders = [folder for folder in _list(value, "folders") if isinstance(folder, str)]
    return Packages(_text(value, "name", re.compile(r"[A-Za-z0-9._-]+")), tuple(folders))


def _shared_memory(message: dict[str, object]) -> SharedMemory | None:
    value = message.get("shared_memory")
    if value is None:
        return None
    if not isinstance(value, dict) or type(value.get("mb")) is not int or value["mb"] < 1:
        raise SpecError("shared_memory", "must have a whole number of MiB")
    return SharedMemory(value["mb"], value.get("must") is True)


def _adoption(message: dict[str, object]) -> tuple[str, dict[str, object]]:
    value = message.get("adoption", {})
    about = value.get("about", {}) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(about, dict):
        raise SpecError("adoption", "must be an object, and its about as well")
    return _optional(value, "proof", PATH), about


def _app_name(value: object) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value) or value == CONTROL:
        raise SpecError("apps", "an app's name has only a-z, 0-9 and -, and is not control")
    return value


def _pem(message: dict[str, object], field: str) -> str:
    value = _text(message, field)
    if "-----BEGIN CERTIFICATE-----" not in value:
        raise SpecError(field, "must be a PEM certificate")
    return value if value.endswith("\n") else value + "\n"


def _callback(url: str) -> tuple[str, int]:
    match = re.fullmatch(r"https://([A-Za-z0-9.-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?/?", url)
    if not match:
        raise SpecError("callback", "must be https://host or https://host:port")
    return match[1].strip("[]"), int(match[2] or 443)


def _ports(message: dict[str, object]) -> tuple[int, int]:
    value = message.get("ports")
    if (
        not isinstance(value, list)
        or len(value) != 2
        or not all(isinstance(port, int) and 0 <= port <= 65535 for port in value)
        or value[0] > value[1]
        or (value[0] == 0 and value[1] != 0)
    ):
        raise SpecError("ports", "must be [lowest, highest], or [0, 0] for any free port")
    return value[0], value[1]
