"""Check Slipway's options, and derive additions to Slurm's command line and environment."""

from __future__ import annotations

import os

from portal.node.batch import request as requests
from portal.node.batch.handover import VARIABLES, encode
from portal.node.batch.options import OptionError
from portal.node.batch.settings import SettingsError, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.batch.options import CommandLine
    from portal.node.batch.request import Request


STEP_GRES = "SLURM_STEP_GRES"
"""The default --gres of steps, which srun reads only in an allocation."""


class Prepared:
    """A checked request."""

    __slots__ = ("dry_run", "environment", "options", "request", "shares_gpu")

    def __init__(self, request: Request, options: list[str], environment: dict[str, str]) -> None:
        self.request = request
        self.options = options
        """For Slurm's command, before the user's."""
        self.environment = environment
        self.dry_run = False
        self.shares_gpu = False
        """Whether it requests a share of a GPU, in the administrators' unit."""


def prepare(options: list[tuple[str, str]], line: CommandLine) -> Prepared:
    """Check Slipway's options; raises OptionError."""
    values = requests.last_values(options)
    if "image" not in values:
        raise OptionError(f"--{options[0][0]}: it needs --image")
    user, home = _user()
    try:
        settings = load()
    except SettingsError as error:
        raise OptionError(str(error)) from None
    request, (gres, step_gres) = requests.build(options, settings, user, home)
    if gres and "gres" in line.values:
        raise OptionError("--fgpu: it cannot be combined with --gres")
    variables = requests.read_env_files(options)
    environment = dict(os.environ)
    environment.pop(VARIABLES, None)
    if variables:
        environment[VARIABLES] = encode(variables)
    if step_gres != gres and environment.get(STEP_GRES) != "none":
        environment[STEP_GRES] = step_gres
    prepared = Prepared(request, [f"--gres={gres}"] if gres else [], environment)
    prepared.dry_run = "dry-run" in values
    prepared.shares_gpu = bool(gres)
    return prepared


def _user() -> tuple[str, str]:
    import pwd  # noqa: PLC0415

    try:
        entry = pwd.getpwuid(os.getuid())
    except KeyError:
        raise OptionError(f"--image: there is no account with the UID {os.getuid()}") from None
    return entry.pw_name, entry.pw_dir
