"""The runner's command: `runner --job-id N --node NAME [OPTION VALUE…]`, the spec on stdin."""

from __future__ import annotations

import contextlib
import os
import sys

from .log import say
from .spec import Spec, SpecError, parse_object, parse_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .mounts.namespace import Namespace

TOOLKIT = "/opt/slipway"
# Of jobs that were submitted before the batch script named one; refused unless private.
DIRECTORY = "/var/tmp/.slipway"  # noqa: S108


def parse_arguments(arguments: list[str]) -> dict[str, str]:
    """Read `--name value` pairs; raise SpecError for anything else.

    Values of --seen (mounts/shared.py), which may be repeated, are separated by NULs.
    """
    values = {"directory": DIRECTORY, "toolkit": TOOLKIT, "seen": ""}
    if len(arguments) % 2:
        raise SpecError("arguments", "come in pairs")
    for option, value in zip(arguments[::2], arguments[1::2], strict=True):
        name = option.removeprefix("--")
        if name not in {"job-id", "node", "directory", "toolkit", "seen"} or name == option:
            raise SpecError("arguments", f"unknown option {option}")
        values[name] = f"{values['seen']}\0{value}" if name == "seen" else value
    for name in ("job-id", "node"):
        if not values.get(name):
            raise SpecError("arguments", f"--{name} is missing")
    return values


def read_stdin() -> str:
    """Read the spec and replace stdin with /dev/null, so that no app inherits it."""
    with os.fdopen(os.dup(0), encoding="utf-8") as file:
        text = file.read()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return text


def is_probe(text: str) -> bool:
    """Whether these are the instructions of `slipway check --session`, not a session's."""
    if '"probe"' not in text:  # a session's are parsed only once
        return False
    with contextlib.suppress(SpecError):
        return "probe" in parse_object("spec", text)
    return False


def run_probe(text: str) -> int:
    """Run the checks of `slipway check --session`, and report the results."""
    from .probe.run import run  # noqa: PLC0415 - no session needs it

    return run(text)


def check_shared(folders: str) -> None:
    """Check that no shared folder was replaced by its owner; raise NotGranted."""
    if folders:
        from .mounts.shared import check  # noqa: PLC0415 - most sessions have none

        check(folders[1:].split("\0"))


def share_gpu(spec: Spec, namespace: Namespace, toolkit: str) -> None:
    """Set up the session's share of a GPU for the apps; raise NotGranted on failure."""
    from .gpu.mps import common_memory  # noqa: PLC0415 - most sessions have none
    from .gpu.share import environment, prepare  # noqa: PLC0415 - likewise

    granted = prepare(namespace, toolkit)
    if granted.compute == "mps" and spec.shared_memory:
        common_memory(spec.shared_memory.mb, must=spec.shared_memory.must)
    spec.env = environment(granted, spec.env, os.environ)


def main() -> int:
    """Run the session and exit immediately; 2 for an invalid spec."""
    try:
        values = parse_arguments(sys.argv[1:])
        text = read_stdin()
        if is_probe(text):
            return run_probe(text)
        spec = parse_spec(text)
    except SpecError as error:
        say(f"The runner cannot start: {error}")
        return 2
    # Imported late, so that an invalid spec is reported without loading these modules.
    from .apps.packages import environment  # noqa: PLC0415
    from .gateway import GatewayFailed, make_directory  # noqa: PLC0415
    from .mounts.namespace import Namespace, NotGranted  # noqa: PLC0415
    from .mounts.shm import resize  # noqa: PLC0415
    from .session import Session  # noqa: PLC0415

    namespace = Namespace()
    try:
        check_shared(values["seen"])
        resize(namespace, spec.shared_memory)
        if spec.gpu:
            share_gpu(spec, namespace, values["toolkit"])
        make_directory(values["directory"])
        os.environ.update(
            environment(spec.packages, values["directory"], values["toolkit"], os.environ)
        )
        code = Session(spec, values["directory"], values["toolkit"]).run(
            values["job-id"], values["node"]
        )
    except (GatewayFailed, NotGranted) as error:
        say(f"The session cannot be opened: {error}")
        return 1
    # Threads that wait for the network would delay a normal exit.
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
