"""Environment variables of a session: permitted names and values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from portal.core.validation import at_most, wrong
from portal.errors import FieldError, InvalidRequest

NAME = r"[A-Za-z_][A-Za-z0-9_]{0,127}"
MAX_VALUE = 4096
"""Bytes of one value."""
MAX_VARIABLES = 100
MAX_TOTAL = 65_536
"""Bytes of all names and values of a session, so that every front end can resubmit them."""

HIDDEN_NAMES = "TOKEN|KEY|PASSW|SECRET|CREDENTIAL"
"""A regular expression for names whose values are probably secrets: pages hide them, and do not
store them in the browser."""

_OPEN = "could open its kernels to everybody on the node"

# Variables with these prefixes would break the software that reads them, or protect the session
# from other users. Further protective ones are set after the user's variables (apps/).
_PREFIXES = {
    "SLIPWAY_": "Slipway's own, which the apps are started with",
    "SLURM": "Slurm's",
    "SBATCH_": "Slurm's",
    "SPANK_": "Slurm's, for its plug-ins",
    "APPTAINER": "the container's, and would change what is in it",
    "SINGULARITY": "the container's, and would change what is in it",
    "LD_": "the program loader's, and would stop the terminal and the apps",
    "JUPYTER": f"Jupyter's, and {_OPEN}; settings go into ~/.jupyter",
    "IPYTHON": f"Jupyter's, and {_OPEN}; settings go into ~/.ipython",
    "TMUX": "the terminal's, and would keep it from finding its windows",
    "TTYD": "the terminal's, and would change who gets in",
    "CODE_SERVER_": "VS Code's, and would change who gets in",
    "NSS_WRAPPER_": "the SSH server's, and would change who gets in",
}
_ALLOWED = frozenset({"LD_LIBRARY_PATH"})  # the toolkit's programs ignore it

_OURS = ("HOME USER LOGNAME SHELL PWD OLDPWD TERM TERMINFO_DIRS").split()
_NAMES = (
    dict.fromkeys(_OURS, "set by Slipway in every session")
    | dict.fromkeys(
        ("IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS"),
        "the shell's, and would break the scripts that start the apps",
    )
    | {
        "PYTHONHOME": "Python's, and would keep Jupyter from starting",
        "PYTHONSTARTUP": "Python's, and would run a file in each kernel before its first cell",
    }
)


def parse_lines(text: str) -> dict[str, str]:
    """Parse lines such as NAME=value or export NAME="value", without comments and empty lines.

    Raises InvalidRequest for other lines; names and values are validated with the request.
    """
    variables: dict[str, str] = {}
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.removeprefix("export ").partition("=")
        name = name.strip()
        if not equals or not name:
            raise InvalidRequest([FieldError("env", f"write line {number} as NAME=value")])
        if name in variables:
            raise InvalidRequest([FieldError("env", f"{name} occurs twice")])
        variables[name] = _unquoted(value.strip())
    return variables


def _unquoted(value: str) -> str:
    match = re.fullmatch(r"""(["'])(.*)\1;?""", value, re.DOTALL)
    if not match:
        return value
    return re.sub(r'\\(["\\$`])', r"\1", match[2]) if match[1] == '"' else match[2]


def to_lines(variables: Mapping[str, str]) -> str | None:
    """Write variables as lines for `parse_lines`; None if a value has several lines."""
    if any("\n" in value or "\r" in value for value in variables.values()):
        return None
    return "\n".join(f"{name}={_quoted(value)}" for name, value in variables.items())


def _quoted(value: str) -> str:
    if value == _unquoted(value.strip()):
        return value
    return '"' + re.sub(r'(["\\$`])', r"\\\1", value) + '"'


def variable_problem(name: str) -> str | None:
    """Why a well-formed name may not be set; None when it may."""
    if name in _ALLOWED:
        return None
    whose = _NAMES.get(name) or next(
        (text for prefix, text in _PREFIXES.items() if name.startswith(prefix)), None
    )
    return whose and f"{name} cannot be set: it is {whose}"


def _check_name(name: str) -> str:
    if not re.fullmatch(NAME, name):
        text = "use up to 128 letters, digits and _, and do not begin with a digit"
        raise wrong(text)
    if problem := variable_problem(name):
        raise wrong(problem)
    return name


def _check_value(value: str) -> str:
    # JSON can contain lone surrogates, which cannot be encoded.
    broken = any("\ud800" <= character <= "\udfff" for character in value)
    if broken or "\0" in value or len(value.encode(errors="replace")) > MAX_VALUE:
        text = f"use up to {MAX_VALUE} bytes, and no NUL"
        raise wrong(text)
    return value


def _check_total(variables: dict[str, str]) -> dict[str, str]:
    total = sum(len(name) + len(value.encode()) for name, value in variables.items())
    if total > MAX_TOTAL:
        raise wrong(
            f"all names and values together may have {MAX_TOTAL:,} bytes; these have {total:,}"
        )
    return variables


Variables = Annotated[
    dict[
        Annotated[str, AfterValidator(_check_name)],
        Annotated[str, AfterValidator(_check_value)],
    ],
    at_most(MAX_VARIABLES),
    AfterValidator(_check_total),
    WithJsonSchema(
        {
            "type": "object",
            "description": "environment variables for the apps, up to 65,536 bytes of "
            "names and values; responses contain the names only",
            "propertyNames": {"pattern": f"^{NAME}$"},
            "additionalProperties": {"type": "string", "maxLength": MAX_VALUE},
            "maxProperties": MAX_VARIABLES,
        }
    ),
]
