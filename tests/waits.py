"""Refuses new places where a program waits for somebody else: each has a row in waits.toml.

Somebody else: who has not logged in, a user's process, or a third party (OpenID provider, registry,
login node, database, Slurm). A row says for whom, how long at most, what is held meanwhile, and for
whom that is bounded. A call in a `with` of a lock, other than the condition that it waits for, is
noted with that lock's name, and needs a row that has it.

HAProxy's configurations are read by line: timeouts, limits, and where connections come and go.

Not seen: waits in libraries, such as NVML, beyond the calls below, and locks held by callers.

    python -m tests.waits           prints what is wrong, and exits with 1 then
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support import source_calls
from tests.support.paths import ROOT
from tests.support.source_calls import (
    MODULE,
    Call,
    Finder,
    Row,
    calls_in,
    calls_of,
    print_problems,
    rows,
)

TABLE = ROOT / "tests" / "waits.toml"
FOLDERS = ("portal",)
FUNCTIONS = frozenset(
    {
        "fcntl.flock",
        "os.wait",
        "os.waitpid",
        "requests.get",
        "requests.head",
        "requests.post",
        "requests.put",
        "requests.request",
        "select.select",
        "smtplib.SMTP",
        "socket.create_connection",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "sqlalchemy.create_engine",
        "sqlite3.connect",
        "subprocess.call",
        "subprocess.check_call",
        "subprocess.check_output",
        "subprocess.run",
        "urllib.request.urlopen",
    }
)
METHODS = frozenset(
    "accept acquire auth_interactive auth_none auth_password auth_publickey communicate connect "
    "create_subprocess_exec do_handshake exec_command getresponse open_connection open_session "
    "open_unix_connection readexactly readline readuntil recv recv_exit_status recv_into "
    "recv_stderr recvfrom recvmsg request result sendall start_client wait wait_for "
    "wrap_socket".split()
)
"""Of sockets, processes, threads, locks, futures, asyncio's streams and paramiko."""
TEXT = frozenset({"os.path.join", "shlex.join"})
LOCK = re.compile(r"(lock|turn|first|changed|condition)$", re.IGNORECASE)
"""How locks' variables are called."""
CONFIGURATIONS = (
    "templates/haproxy/portal.cfg.j2",
    "portal/node/runner/gateway.py",
    "portal/node/runner/apps/netns.py",
)
SECTION = re.compile(
    r"\s*(?:\{% macro (?P<macro>\w+)"
    r"|(?P<kind>global|defaults|frontend|backend|listen)\b ?(?P<name>\w*))"
)
DIRECTIVE = re.compile(
    r"\s*(?:http-request |http-response |tcp-request )?"
    r"(?P<name>(?:set-)?timeout [\w-]+|inspect-delay|wait-for-body time|maxconn|bind|server \w+)"
    r"(?: (?P<value>\{\{.*?\}\}\w*|\S+))?"
)

WHO = (
    "stranger",
    "user",
    "openid",
    "registry",
    "mail",
    "login node",
    "database",
    "slurm",
    "ours",
)


class WaitFinder(Finder):
    """Notes the calls that wait, with the locks in whose `with` they are."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self._locks: list[str] = []

    def visit_With(self, node: ast.With) -> None:  # noqa: N802 - ast chooses it
        names = [ast.unparse(item.context_expr) for item in node.items]
        locks = [name for name in names if LOCK.search(name)]
        self._locks += locks
        self.generic_visit(node)
        del self._locks[len(self._locks) - len(locks) :]

    def _visit_inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        # Runs later, when the lock is free.
        held, self._locks = self._locks, []
        super()._visit_inside(node)
        self._locks = held

    def visit_Call(self, node: ast.Call) -> None:  # noqa: N802 - ast chooses it
        name = self.dotted(node.func)
        if name in FUNCTIONS:
            self._note(name, node, "")
        elif isinstance(node.func, ast.Attribute):
            method, owner = node.func.attr, ast.unparse(node.func.value)
            joins = method == "join" and name not in TEXT and _joins_a_thread(node)
            if method in METHODS or joins:
                self._note(f".{method}", node, owner)
        self.generic_visit(node)

    def _note(self, name: str, node: ast.Call, owner: str) -> None:
        if _returns_at_once(node):
            return
        held = [lock for lock in self._locks if lock != owner]
        self.note("+".join([name, *held]), node.func)


def _joins_a_thread(node: ast.Call) -> bool:
    """Of text has a literal before it, or words in its argument; of paths and tables takes more."""
    if not node.args or any(word.arg == "timeout" for word in node.keywords):
        return True
    words = ast.List | ast.Tuple | ast.ListComp | ast.GeneratorExp | ast.Call | ast.Starred
    named = ast.Name | ast.Attribute | ast.Subscript
    function = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    return (
        len(node.args) == 1 and isinstance(function, named) and not isinstance(node.args[0], words)
    )


def _returns_at_once(node: ast.Call) -> bool:
    """Whether a lock is only tried."""
    words = [ast.unparse(word) for word in (*node.args, *(word.value for word in node.keywords))]
    tries = any(
        word.arg == "blocking" and ast.unparse(word.value) == "False" for word in node.keywords
    )
    return tries or any("LOCK_NB" in word or "LOCK_UN" in word for word in words)


def wait_calls(text: str, file: str) -> list[Call]:
    """The calls in a module's source that wait."""
    return calls_of(WaitFinder, text, file)


def directives(text: str, file: str) -> Iterator[Call]:
    """Timeouts, limits and ends of connections in a configuration of HAProxy's."""
    section = MODULE
    for line, words in enumerate(text.splitlines(), 1):
        if begins := SECTION.match(words):
            section = begins["macro"] or begins["name"] or begins["kind"]
        elif (found := DIRECTIVE.match(words)) and section != MODULE:
            name = found["name"].replace(" ", "-")
            valued = not name.startswith(("bind", "server"))
            value = "".join((found["value"] or "").split())
            yield Call(file, section, f"{name}={value}" if valued else name, line)


def all_waits(root: Path = ROOT) -> Iterator[Call]:
    """Those of all programs and configurations."""
    yield from calls_in(WaitFinder, FOLDERS, root)
    for name in CONFIGURATIONS:
        yield from directives((root / name).read_text(encoding="utf-8"), name)


def problems(found: Iterable[Call], table: Mapping[str, Any]) -> list[str]:
    """Waits without a row, and rows without a wait; ValueError for a row that says too little."""
    known: set[Row] = set()
    for wait in table.get("wait", []):
        if wait.get("for") not in WHO:
            raise ValueError(f"`for` is none of {', '.join(WHO)}: {wait}")
        for name in ("at_most", "holds", "bounded"):
            if not str(wait.get(name, "")).strip():
                raise ValueError(f"a wait without `{name}`: {wait}")
        known.update(rows(wait["calls"]))
    return source_calls.problems(found, known, TABLE.name)


def main() -> int:
    """Print all problems."""
    return print_problems(problems, all_waits(), TABLE)


if __name__ == "__main__":
    sys.exit(main())
