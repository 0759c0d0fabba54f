"""Slurm's commands for programs in the container."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.node.batch import handover
from portal.node.batch.execute.steps import StepServer, in_image, write_client
from portal.node.batch.options import OptionError
from portal.node.batch.request import Request
from tests.support.paths import ROOT

CLIENT = f"""
import sys
sys.path.append({str(ROOT)!r})
from portal.node.runner.batch.slurm_client import main
sys.exit(main())
"""


def a_request() -> str:
    """The text of a job's request."""
    request = Request()
    request.image, request.command = "/i/python.sif", "/opt/slip way"
    return request.text()


STEP = ["/opt/slip way", "node-step", "--"]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("hostname", [*STEP, "hostname"]),
        ("-n 2 -l ./a --x -n 3", ["-n", "2", "-l", *STEP, "./a", "--x", "-n", "3"]),
        ("--mpi=pmi2 -- a", ["--mpi=pmi2", "--", *STEP, "a"]),
        ("-n1 a x : -n2 b y", ["-n1", *STEP, "a", "x", ":", "-n2", *STEP, "b", "y"]),
        ("--help", ["--help"]),
        ("-n 2", ["-n", "2"]),
    ],
)
def test_what_srun_starts_runs_in_the_image(words: str, wanted: list[str], tmp_path: Path) -> None:
    assert in_image(words.split(), a_request(), str(tmp_path)) == wanted


def test_programs_listed_in_a_file(tmp_path: Path) -> None:
    listed = tmp_path / "tasks"
    listed.write_text("# tasks\n0-1  echo 'a b' %t\n\n2 date\n")
    words = in_image(["-n3", "--multi-prog", str(listed)], a_request(), str(tmp_path))
    assert words[:2] == ["-n3", "--multi-prog"]
    step = shlex.join(STEP)
    assert Path(words[2]).read_text() == (f"# tasks\n0-1 {step} echo 'a b' %t\n\n2 {step} date\n")
    assert listed.read_text().startswith("# tasks\n0-1  echo")


def test_a_list_of_programs_may_have_tabs_and_continued_lines(tmp_path: Path) -> None:
    (tmp_path / "tasks").write_text("0\techo a \\\n  b\n1 date\n")
    words = in_image(["--multi-prog", "tasks"], a_request(), str(tmp_path), str(tmp_path))
    step = shlex.join(STEP)
    assert Path(words[1]).read_text() == f"0 {step} echo a \\\n  b\n1 {step} date\n"


def test_a_list_of_programs_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tasks").write_text("0 date\n")
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    path = in_image(["--multi-prog", f"{tmp_path}/tasks"], a_request())[1]
    # As srun reads it: the program that this process becomes.
    read = subprocess.run(["cat", path], close_fds=False, capture_output=True, check=True)
    assert read.stdout.decode() == f"0 {shlex.join(STEP)} date\n"
    assert list(folder.iterdir()) == []
    os.close(int(path.rpartition("/")[2]))


def test_a_step_has_the_image_of_its_job(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--image: a step runs in the image of its job"):
        in_image(["--image", "r", "date"], a_request(), str(tmp_path))


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with commands in the place of Slurm's, first in the node's PATH."""
    folder = tmp_path / "slurm-bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.fixture
def server() -> Iterator[str]:
    """The name of a running server."""
    found = StepServer(a_request(), set())
    found.start()
    yield found.name
    found.stop()


def program(folder: Path, name: str, text: str) -> None:
    """Make a command."""
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def client(server: str, tmp_path: Path, *words: str, **environment: str) -> subprocess.Popen[bytes]:
    """Start a client as a program in the container does."""
    file = tmp_path / words[0]
    file.write_text(CLIENT)
    return subprocess.Popen(
        [sys.executable, "-ISXutf8", file, *words[1:]],
        env={"SLIPWAY_SLURM": server, "PATH": "/image/bin", **environment},
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_command_gets_everything_of_its_caller(slurm: Path, server: str, tmp_path: Path) -> None:
    program(slurm, "squeue", 'printf "%s|" "$0" "$@" "$PWD" "$OMP" "$PATH"; umask; cat; exit 7')
    found = client(server, tmp_path, "squeue", "-j", "a  b\n", OMP="ü\n4")
    out, error = found.communicate(b"typed")
    mask = subprocess.run(["sh", "-c", "umask"], capture_output=True, text=True, check=True)
    path = os.environ["PATH"]
    assert out.decode() == f"squeue|-j|a  b\n|{tmp_path}|ü\n4|{path}|{mask.stdout}typed".replace(
        "squeue|", f"{slurm}/squeue|", 1
    )
    assert (error, found.returncode) == (b"", 7)


def test_variables_of_the_image_return_in_the_step(
    slurm: Path, server: str, tmp_path: Path
) -> None:
    program(slurm, "srun", 'printf "%s\\n" "$@"; env -0 > "$PWD/environment"')
    found = client(server, tmp_path, "srun", "date", OMP="4", LD_LIBRARY_PATH="/image/lib")
    out, _ = found.communicate()
    assert out.decode().splitlines() == ["--job-name=date", *STEP, "date"]
    text = (tmp_path / "environment").read_bytes().decode()
    variables = dict(pair.split("=", 1) for pair in text.split("\0") if pair)
    assert "LD_LIBRARY_PATH" not in variables
    assert variables["OMP"] == "4"
    assert handover.request_text(variables) == a_request()
    step = json.loads(handover.decode(variables[handover.STEP]))
    assert step["folder"] == str(tmp_path)
    assert step["variables"]["PATH"] == "/image/bin"
    assert step["variables"]["LD_LIBRARY_PATH"] == "/image/lib"
    assert handover.step_token(variables) == step["token"]


@pytest.mark.parametrize(
    ("words", "variables", "folder"),
    [
        (["--chdir=sub", "pwd"], {}, "sub"),
        (["-D", "/data", "pwd"], {}, "/data"),
        (["pwd"], {"SLURM_WORKING_DIR": "/data"}, "/data"),
    ],
)
def test_a_step_starts_where_srun_is_told(
    words: list[str],
    variables: dict[str, str],
    folder: str,
    slurm: Path,
    server: str,
    tmp_path: Path,
) -> None:
    program(slurm, "srun", f'printf "%s" "${handover.STEP}"')
    out, _ = client(server, tmp_path, "srun", *words, **variables).communicate()
    assert json.loads(handover.decode(out.decode()))["folder"] == str(tmp_path / folder)


def test_a_prompt_that_the_script_does_not_have_is_not_the_steps() -> None:
    """Bash unsets PS1 in a script: what the batch job was submitted with does not return."""
    own = {"PS1": "$(date) > ", "PATH": "/usr/bin"}
    variables = handover.step_environment({"HOME": "/"}, own, "", "/", names_step=True)
    assert "PS1" not in variables
    assert handover.outside({"PS1": "> "}, own)["PS1"] == "> "


def test_slipway_itself_runs_outside_and_knows_the_image_of_steps(
    server: str, tmp_path: Path
) -> None:
    request = Request()
    request.command = str(tmp_path / "slip way")
    program(tmp_path, "slip way", f'printf "%s|" "$@"; printf "%s" "${handover.REQUEST}"')
    found = StepServer(request.text(), set())
    found.start()
    out, _ = client(found.name, tmp_path, "slipway", "srun", "date").communicate()
    assert out.decode() == f"srun|date|{handover.plain(request.text())}"
    out, _ = client(found.name, tmp_path, "slipway", "sbatch", "job.sh").communicate()
    assert out.decode() == "sbatch|job.sh|"
    found.stop()


def test_a_program_of_the_container_is_broadcast(
    slurm: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    (tmp_path / "mine").write_text("content")
    program(slurm, "sbcast", 'cat "$2" > "$3"')
    program(slurm, "srun", 'printf "%s\\n" "$@"')
    copy = tmp_path / "copy"
    found = client(server, tmp_path, "srun", "-n2", f"--bcast={copy}", "./mine", SLURM_BCAST="/x")
    out, error = found.communicate()
    assert error == b""
    assert out.decode().splitlines() == ["--job-name=mine", "-n2", *STEP, str(copy)]
    assert copy.read_text() == "content"


def test_each_component_may_have_a_list_of_programs(
    slurm: Path, server: str, tmp_path: Path
) -> None:
    (tmp_path / "tasks").write_text("0 hostname\n")
    program(slurm, "srun", 'for last; do :; done; cat "$last"')
    found = client(server, tmp_path, "srun", "date", ":", "--multi-prog", "tasks")
    out, error = found.communicate()
    assert (out.decode(), error) == (f"0 {shlex.join(STEP)} hostname\n", b"")


def test_signals_reach_the_command(slurm: Path, server: str, tmp_path: Path) -> None:
    waits = "for i in $(seq 1800); do sleep 0.05; done"
    program(slurm, "srun", f'trap "echo got; exit 3" USR1; echo up; {waits}')
    found = client(server, tmp_path, "srun", "date")
    assert found.stdout is not None
    assert found.stdout.readline() == b"up\n"
    found.send_signal(signal.SIGUSR1)
    assert found.stdout.readline() == b"got\n"
    found.communicate()
    assert found.returncode == 3


def test_a_killed_client_ends_the_command(slurm: Path, server: str, tmp_path: Path) -> None:
    program(slurm, "srun", "echo $$; exec sleep 60")
    found = client(server, tmp_path, "srun", "date")
    assert found.stdout is not None
    pid = int(found.stdout.readline())
    found.kill()
    found.communicate()
    for _ in range(200):
        if not Path(f"/proc/{pid}/cmdline").exists():
            break
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}/cmdline").exists()


def test_each_of_many_signals_reaches_the_command(slurm: Path, server: str, tmp_path: Path) -> None:
    numbers = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGHUP, signal.SIGALRM]
    traps = "".join(f"trap 'echo {number.value}' {number.name[3:]}\n" for number in numbers)
    text = f"{traps}trap 'exit 3' TERM\necho up\nwhile ((SECONDS < 90)); do sleep 0.01; done"
    (slurm / "srun").write_text(f"#!/bin/bash\n{text}\n")
    (slurm / "srun").chmod(0o755)
    found = client(server, tmp_path, "srun", "date")
    assert found.stdout is not None
    assert found.stdout.readline() == b"up\n"
    for _ in range(3):
        for number in numbers:
            found.send_signal(number)
        lines = sorted(int(found.stdout.readline()) for _ in numbers)
        assert lines == sorted(number.value for number in numbers)
    found.send_signal(signal.SIGTERM)
    assert found.communicate()[0] == b""
    assert found.returncode == 3


def test_the_command_blocks_no_signal_and_leads_its_group(slurm: Path, tmp_path: Path) -> None:
    program(
        slurm, "srun", "cut -d ' ' -f 5 /proc/$$/stat; echo $$; exec grep SigBlk: /proc/self/status"
    )
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        found = StepServer(a_request(), set())
        found.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    out, _ = client(found.name, tmp_path, "srun", "date").communicate()
    found.stop()
    group, process, mask = out.split(b"\n")[:3]
    assert int(mask.split()[1], 16) == 0
    assert group == process


def test_what_a_script_leaves_running_ends_with_the_server(slurm: Path, tmp_path: Path) -> None:
    program(slurm, "srun", "trap '' TERM; echo up; exec sleep 60")
    server = StepServer(a_request(), set())
    server.start()
    found = client(server.name, tmp_path, "srun", "date")
    assert found.stdout is not None
    assert found.stdout.readline() == b"up\n"
    server.stop()
    found.communicate()
    assert found.returncode == 128 + signal.SIGKILL


def test_without_its_variable_the_client_asks_its_ancestors(
    slurm: Path, server: str, tmp_path: Path
) -> None:
    program(slurm, "squeue", "echo fine")
    (tmp_path / "squeue").write_text(CLIENT)
    line = f"env -i {sys.executable} -ISXutf8 {tmp_path}/squeue; :"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        env={"SLIPWAY_SLURM": server, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (b"fine\n", b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_matter(
    closed: str, slurm: Path, server: str, tmp_path: Path
) -> None:
    program(slurm, "squeue", 'echo said; echo ran > "$PWD/ran"; exit 5')
    (tmp_path / "squeue").write_text(CLIENT)
    line = f"{sys.executable} -ISXutf8 squeue {closed}"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        env={"SLIPWAY_SLURM": server, "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert (tmp_path / "ran").read_text() == "ran\n"
    said = b"" if ">&-" in closed.split() else b"said\n"
    assert (done.stdout, done.stderr, done.returncode) == (said, b"", 5)


def test_bytes_pass_in_every_locale(slurm: Path, server: str, tmp_path: Path) -> None:
    program(slurm, "squeue", 'printf "%s|" "$@" "$A"')
    value = b"\xff\xc3\xbc".decode("utf-8", "surrogateescape")
    found = client(server, tmp_path, "squeue", value, A=value, LC_ALL="de_DE.ISO-8859-1")
    assert found.communicate()[0] == b"\xff\xc3\xbc|" * 2


@pytest.fixture
def request_() -> Request:
    request = Request()
    request.command = "/usr/local/bin/slipway"
    return request


def test_the_commands_are_where_the_node_and_the_image_have_programs(
    slurm: Path, request_: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("srun", "squeue"):
        program(slurm, name, "")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    found = write_client(str(tmp_path), request_)
    assert {source for source, _ in found} == {f"{tmp_path}/client"}
    places = {place for _, place in found}
    assert {"/usr/bin/srun", "/usr/bin/sbatch", "/usr/bin/slipway"} <= places
    assert {f"{slurm}/srun", f"{slurm}/squeue", "/usr/local/bin/slipway"} <= places
    assert f"{slurm}/sinfo" not in places


def test_a_command_in_a_folder_of_the_users_is_left_alone(
    slurm: Path, request_: Request, tmp_path: Path
) -> None:
    program(slurm, "srun", "")
    places = {place for _, place in write_client(str(tmp_path), request_)}
    assert f"{slurm}/srun" not in places


def test_a_signal_that_ends_the_command_is_the_exit_code(
    slurm: Path, server: str, tmp_path: Path
) -> None:
    program(slurm, "sinfo", "kill -9 $$")
    found = client(server, tmp_path, "sinfo")
    found.communicate()
    assert found.returncode == 137


def test_only_slurms_commands_run(slurm: Path, server: str, tmp_path: Path) -> None:
    program(slurm, "rm", "echo ran")
    found = client(server, tmp_path, "rm", "-rf", "x")
    out, error = found.communicate()
    assert (out, found.returncode) == (b"", 1)
    assert error == b"slurm: error: rm is not a command of Slurm's\n"


def test_without_a_server_the_client_says_so(tmp_path: Path) -> None:
    found = client("slipway-nothing", tmp_path, "squeue")
    _, error = found.communicate()
    assert found.returncode == 1
    assert error.startswith(b"squeue: error: Slurm cannot be reached from this container: ")


@pytest.mark.parametrize(
    "data", [b"", b"\1", b"\xff\xff\xff\xff", b"\2\0\0\0[]", b"\2\0\0\0{}", b"\4\0\0\0x"]
)
def test_an_odd_call_ends_nothing(data: bytes, slurm: Path, server: str, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(f"\0{server}")
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(8) == b"\1\0\0\0"
    program(slurm, "sinfo", "echo fine")
    assert client(server, tmp_path, "sinfo").communicate()[0] == b"fine\n"


def test_the_callers_limits_are_the_commands(slurm: Path, server: str, tmp_path: Path) -> None:
    """srun hands them to its step: `ulimit -s unlimited; srun ./program`."""
    program(slurm, "srun", "ulimit -S -n; ulimit -H -n; ulimit -c")
    (tmp_path / "srun").write_text(CLIENT)
    line = f"ulimit -S -n 123; ulimit -c 0; {sys.executable} -ISXutf8 {tmp_path}/srun date"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        env={"SLIPWAY_SLURM": server, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
    )
    hard = subprocess.run(["sh", "-c", "ulimit -H -n"], capture_output=True, check=True).stdout
    assert (done.stdout, done.stderr) == (b"123\n" + hard + b"0\n", b"")


def test_a_problem_is_told_whatever_its_bytes(slurm: Path, server: str, tmp_path: Path) -> None:
    program(slurm, "srun", "")
    name = b"\xff".decode("utf-8", "surrogateescape")
    _, error = client(server, tmp_path, "srun", "--bcast=/x", f"./{name}").communicate()
    assert error == b"slurm: error: --bcast: there is no file ./\xff\n"


def test_the_callers_folder_has_its_own_name(slurm: Path, server: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    program(slurm, "sbatch", 'env | grep "^\\(OLD\\)\\?PWD="')
    where = {"PWD": f"{tmp_path}/link", "OLDPWD": "/before"}
    out, _ = client(server, tmp_path, "sbatch", "x", **where).communicate()
    assert set(out.decode().split()) == {f"PWD={tmp_path}/link", "OLDPWD=/before"}
