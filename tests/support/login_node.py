"""A login node for unit tests: a transport to this machine, with a real shell and real files.

Every user has a home in a temporary folder, which stands for the root directory: absolute paths
among a script's arguments lead into it, and output does not show it. Programs that a test answers
are small scripts in the first folder of PATH, which pass their arguments and input to the test's
process. A command that is such a program, without a shell, is answered without a process.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Self

from portal.adapters.ssh.transport import Completed

NAMES = (
    "id", "sacct", "sacctmgr", "sbatch", "scancel", "scontrol", "sinfo", "slipway", "squeue",
    "sstat",
)  # fmt: skip
BIN = "usr/local/bin"
# The words and the input lie in the call's folder, where the answer's output is found as well; the
# pipes say when.
_PROGRAM = """\
#!/bin/sh
name=${0##*/}
[ "$name $1" != "slipway as-login" ] || { shift; exec "$@"; }
case $name in sbatch | slipway) cat > "$TEST_CALL/input" ;; esac
printf '%s\\0' "${SQUEUE_FORMAT2-}" "$name" "$@" > "$TEST_CALL/words"
echo > "/proc/self/fd/$TEST_ASKS"
read -r code < "/proc/self/fd/$TEST_ANSWERS" || exit 1
[ ! -s "$TEST_CALL/output" ] || cat "$TEST_CALL/output"
[ ! -s "$TEST_CALL/errors" ] || cat "$TEST_CALL/errors" >&2
exit "$code"
"""
PRIVATE_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n"
_SSH_KEYGEN = """\
#!/bin/sh
public=
while [ $# -gt 0 ]; do
    case $1 in -y) public=yes ;; -f) file=$2 ;; esac
    shift
done
if [ -n "$public" ]; then
    { read -r line; read -r line; } < "$file"
    echo "ssh-ed25519 $line"
else
    { read -r number < "$HOME/.keys"; } 2>/dev/null || number=1
    echo $((number + 1)) > "$HOME/.keys"
    printf '%s\\n' "-----BEGIN OPENSSH PRIVATE KEY-----" "${HOME##*/}$((number + 1))" \\
        "-----END OPENSSH PRIVATE KEY-----" > "$file"
fi
"""
"""The keys of a user are named by their number. ssh-keygen itself takes ten times as long."""
_LOGIN_SHELL = "#!/bin/sh\nprintf 'Umask:\\t0022\\n'\n"
"""Answers the portal's question for the umask; this machine's start-up files may take long."""


@dataclass(frozen=True)
class Call:
    """A program's call."""

    user: str
    words: list[str]
    """Its name and arguments."""
    stdin: bytes = b""
    squeue_format: str = ""
    """SQUEUE_FORMAT2 in its environment."""

    @property
    def options(self) -> dict[str, str]:
        """The values of its options that begin with "--"."""
        return dict(word.partition("=")[::2] for word in self.words if word.startswith("--"))


Program = Callable[[Call], Completed]


class Files(MutableMapping[str, bytes]):
    """The login node's files by absolute path; a path that ends in "/" is a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def _path(self, name: str) -> Path:
        return self._root / name.lstrip("/")

    def __getitem__(self, name: str) -> bytes:
        try:
            return b"" if name.endswith("/") else self._path(name).read_bytes()
        except OSError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, content: bytes) -> None:
        path = self._path(name)
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_bytes(content)

    def __delitem__(self, name: str) -> None:
        self._path(name).unlink()

    def __iter__(self) -> Iterator[str]:
        for path in sorted(self._root.rglob("*")):
            yield f"/{path.relative_to(self._root)}{'/' if path.is_dir() else ''}"

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __ior__(self, others: MutableMapping[str, bytes]) -> Self:
        self.update(others)
        return self


@dataclass(kw_only=True)
class LoginNode:
    """A Transport whose commands run on this machine."""

    commands: list[str] = field(default_factory=list)
    """User and words of each command."""
    programs: dict[str, Program] = field(default_factory=dict, repr=False)
    """What answers the programs of NAMES."""

    @cached_property
    def root(self) -> Path:
        """The folder that stands for the root directory."""
        folder = Path(tempfile.mkdtemp(prefix="login-node-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        (folder / "usr").symlink_to(_machine() / "usr")
        (folder / "home").mkdir()
        return folder

    @cached_property
    def files(self) -> Files:
        """The files of its users."""
        return Files(self.root)

    @property
    def homes_away(self) -> bool:
        """Whether the homes' file system is not mounted."""
        return not (self.root / "home").exists()

    @homes_away.setter
    def homes_away(self, away: bool) -> None:
        if away != self.homes_away:
            mounted, unmounted = self.root / "home", self.root / "unmounted"
            (mounted if away else unmounted).rename(unmounted if away else mounted)

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = 0,
    ) -> Completed:
        """Run one command to its end."""
        words = _without_wrappers(argv)
        self.commands.append(f"{user}: {' '.join(words)}")
        if words[0] in self.programs:
            return self.programs[words[0]](Call(user, words, stdin))
        return self._execute(user, self._in_root(argv), stdin)

    def _in_root(self, argv: Sequence[str]) -> list[str]:
        """The command with a script's arguments as paths in the root."""
        words = list(argv)
        first = words.index("-c") + 2 if "-c" in words else len(words)
        return words[:first] + [self._inside(word) for word in words[first:]]

    def _inside(self, word: str) -> str:
        return f"{self.root}{word}" if word.startswith("/") else word

    def _execute(self, user: str, argv: list[str], stdin: bytes) -> Completed:
        folder = Path(tempfile.mkdtemp(dir=self.root, prefix="call-"))
        (folder / "0").write_bytes(stdin)
        with ExitStack() as stack:
            outputs = [stack.enter_context((folder / name).open("wb")) for name in "12"]
            source = stack.enter_context((folder / "0").open("rb"))
            asks, ask = os.pipe()
            answer, answers = os.pipe()
            process = stack.enter_context(
                subprocess.Popen(
                    argv,
                    stdin=source,
                    stdout=outputs[0],
                    stderr=outputs[1],
                    env=self._environment(user, folder, ask, answer),
                    cwd=self.root if self.homes_away else self._home(user),
                    pass_fds=(ask, answer),
                )
            )
            stack.callback(process.kill)  # of one that has ended, nothing is killed
            os.close(ask)
            os.close(answer)
            self._serve(user, folder, asks, answers)
            process.wait()
        printed, errors = (self._seen((folder / name).read_bytes()) for name in "12")
        return Completed(process.returncode, printed, errors.decode())

    def _home(self, user: str) -> Path:
        """The user's home, made if it is missing.

        It has a first SSH key, as after an earlier launch: creating one takes ten processes.
        """
        home = self.root / "home" / user
        portal = f"/home/{user}/.slipway"
        if not self.homes_away and not home.joinpath(".slipway/key").exists():
            self.files[f"{portal}/key/id_container"] = PRIVATE_KEY.format(f"{user}1").encode()
            self.files[f"{portal}/ssh/authorized_keys"] = f"ssh-ed25519 {user}1\n".encode()
        return home

    def _environment(self, user: str, folder: Path, ask: int, answer: int) -> dict[str, str]:
        programs = _machine() / BIN
        return {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(self._home(user)),
            "SHELL": str(programs / "login-shell"),
            "TEST_CALL": str(folder),
            "TEST_ASKS": str(ask),
            "TEST_ANSWERS": str(answer),
        }

    def _serve(self, user: str, folder: Path, asks: int, answers: int) -> None:
        """Answer programs until the command and all of its children have ended."""
        with os.fdopen(asks, "rb") as questions, os.fdopen(answers, "wb", buffering=0) as codes:
            for _ in questions:
                done = self._answer(user, folder)
                (folder / "output").write_bytes(done.stdout)
                (folder / "errors").write_text(done.stderr)
                codes.write(b"%d\n" % done.code)

    def _answer(self, user: str, folder: Path) -> Completed:
        text = self._seen((folder / "words").read_bytes()).decode()
        squeue_format, *words = text.split("\0")[:-1]
        file = folder / "input"
        stdin = file.read_bytes() if file.exists() else b""
        return self.programs[words[0]](Call(user, words, stdin, squeue_format))

    def _seen(self, output: bytes) -> bytes:
        return output.replace(str(self.root).encode(), b"")


def _without_wrappers(argv: Sequence[str]) -> list[str]:
    """The command without env(1) and timeout(1) in front."""
    words = list(argv)
    if words[0] == "env":
        first = next(place for place, word in enumerate(words) if place and "=" not in word)
        words = words[first:]
    if words[0] == "timeout":
        words = words[3:]  # --kill-after=… and the seconds
    return words


@cache
def _machine() -> Path:
    """The folder of the programs, written once: no test changes them."""
    folder = Path(tempfile.mkdtemp(prefix="programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    programs = folder / BIN
    programs.mkdir(parents=True)
    texts = dict.fromkeys(NAMES, _PROGRAM)
    texts |= {"login-shell": _LOGIN_SHELL, "ssh-keygen": _SSH_KEYGEN}
    for name, text in texts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return folder
