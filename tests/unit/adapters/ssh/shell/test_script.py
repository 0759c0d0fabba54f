"""Commands as scripts, read by every POSIX shell that may be /bin/sh."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from portal.adapters.ssh.shell.script import command_script, probe
from portal.node.common.slurm_variables import COMMANDS
from tests.support.login_shells import path_of

SHELLS = (
    ("dash",),
    ("bash", "--posix"),
    ("busybox", "sh"),
    ("ksh93",),
    ("mksh",),
    ("zsh", "--emulate", "sh"),
)
EVERY = bytes(range(256)) + b"\n%s %d \\n \\045 'x'\n\n"


@pytest.fixture(params=SHELLS, ids=lambda words: words[0])
def sh(request: pytest.FixtureRequest) -> list[str]:
    name, *options = request.param
    return [path_of(name), *options]


def run(sh: list[str], script: bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
    environment = {"PATH": "/usr/bin:/bin"} | environment
    return subprocess.run(sh, input=script, capture_output=True, env=environment, check=False)


def test_a_knock_is_answered_as_often_as_it_comes(sh: list[str]) -> None:
    assert b"abcd" not in probe("abcd")
    done = run(sh, probe("abcd") * 2 + command_script(["echo", "done"], b"", "MARK"))
    assert (done.stdout, done.stderr) == (b"abcd\nabcd\nMARK\ndone\n", b"MARK-\n")


@pytest.mark.parametrize("shell", ["tcsh", "bsd-csh", "fish", "rc", "elvish", "xonsh", "sash"])
def test_another_shell_does_not_answer(shell: str, tmp_path: Path) -> None:
    """A start-up file may become it; it would read the script's lines as commands of its own."""
    done = run([path_of(shell)], probe("abcd"), HOME=str(tmp_path))
    assert b"abcd" not in done.stdout.splitlines()


def test_both_outputs_may_lead_to_the_same_place(sh: list[str]) -> None:
    script = b"exec 2>&1\n" + command_script(["echo", "done"], b"", "MARK")
    assert run(sh, script).stdout.partition(b"MARK\n")[2] == b"done\n"


def test_functions_and_options_of_the_users_bash_change_nothing(sh: list[str]) -> None:
    functions = ("cd", "printf", "cat", "env", "test", "module")
    given = {f"BASH_FUNC_{name}%%": "() { echo function >&2; return 1; }" for name in functions}
    given["SHELLOPTS"] = "braceexpand:errexit:hashall:noclobber:nounset:verbose:xtrace"
    words = [*sh, "-c", 'cd / && [ -d / ] && printf %s,%s, $- "$nothing"; cat']
    done = run(sh, command_script(words, b"x", "MARK"), **given)
    mark, options, rest = done.stdout.replace(b"\n", b",").split(b",", 2)
    assert (mark, rest, done.stderr.partition(b"MARK-\n")[2]) == (b"MARK", b",x", b"")
    assert not set(b"Ceuvx") & set(options)


@pytest.mark.parametrize("path", ["/nowhere", "/opt/x:/usr/binaries", ""])
def test_our_commands_are_found_whatever_the_path(sh: list[str], path: str) -> None:
    done = run(sh, command_script(["env"], b"", "MARK"), PATH=path)
    found = f"{path}:/usr/local/bin:/usr/bin:/bin".removeprefix(":")
    assert f"PATH={found}" in done.stdout.decode().splitlines()
    own = {"PATH": "/opt/slurm/bin:/usr/bin"}
    done = run(sh, command_script(["env"], b"", "MARK"), **own)
    assert f"PATH={own['PATH']}" in done.stdout.decode().splitlines()


def test_every_byte_of_words_and_input_passes(sh: list[str]) -> None:
    word = bytes(range(1, 256)).decode("utf-8", "surrogateescape")
    words = ["/bin/sh", "-c", 'printf %s "$1"; cat', "sh", word]
    # UTF-8 without the bytes that are none: of those, a shell may make what its locale says.
    for locale in ("C", "C.UTF-8"):
        done = run(sh, command_script(words, EVERY * 300, "MARK"), LC_ALL=locale)
        assert done.stdout == b"MARK\n" + bytes(range(1, 256)) + EVERY * 300


def test_without_input_the_command_reads_nothing_of_ours(sh: list[str]) -> None:
    done = run(sh, command_script(["cat"], b"", "MARK") + b"echo more\n")
    assert done.stdout == b"MARK\n"


@pytest.mark.parametrize("data", [b"", b"abc"])
def test_what_arrives_in_part_is_not_executed(data: bytes) -> None:
    script = command_script(["true"], data, "MARK")
    for end in range(len(script) - 1):
        assert b"MARK" not in run([path_of("dash")], script[:end]).stdout, script[:end]


def test_the_commands_code_is_kept(sh: list[str]) -> None:
    for data in (b"", b"x" * 200_000):
        done = run(sh, command_script(["sh", "-c", "exit 9"], data, "MARK"))
        assert (done.returncode, done.stderr) == (9, b"MARK-\n")


def test_variables_that_change_slurms_commands_are_forgotten(sh: list[str]) -> None:
    ours = {f"{prefix}FORMAT": "x y * SLURM_CONF=1" for prefix in COMMANDS}
    ours |= {"SLURM_TIME_FORMAT": "relative", "SBATCH_PARTITION": "a\nb", "CDPATH": "/tmp"}
    kept = {"SLURM_CONF": "/etc/slurm.conf", "SLURM_CONF_SERVER": "ctl", "SLURMX": "1"}
    kept |= {"OTHER": "SBATCH_x-y= SBATCH_WAIT=1", "word": "w", "LC_ALL": "C"}
    done = run(sh, command_script(["env"], b"", "MARK"), **ours, **kept)
    found = set(done.stdout.decode().split("\n"))
    assert {f"{name}={value}" for name, value in kept.items()} <= found
    assert not {line for line in found if line.partition("=")[0] in ours}
    assert done.stderr == b"MARK-\n"
