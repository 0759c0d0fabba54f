"""The environment of the script, and what Apptainer gets of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.node.batch import handover
from tests.support.paths import ROOT
from tests.unit.node.batch.execute.jobs import Node, started

SHOW = f"""#!{sys.executable} -IS
open("shown", "wb").write(open("/proc/self/environ", "rb").read())
"""
CLOSED = f"""#!{sys.executable} -IS
import os
closed = []
for number in range(3):
    try:
        os.fstat(number)
    except OSError:
        closed.append(number)
with open("shown", "w") as stream:
    print(*closed, file=stream)
"""
JOB = {
    b"PATH": b"/usr/bin:/bin",
    b"HOME": b"/nowhere",
    b"BASH_FUNC_greet%%": b"() {  echo hi\n}",
    b"my.var": b"1",
    b"foo-bar": b"2",
    b"EMPTY": b"",
    b"BYTES": b"\xff \xc3\xbc\n \\u000A *",
    b"LC_ALL": b"de_DE.ISO-8859-1",
    b"APPTAINER_BIND": b"/nowhere",
    b"SINGULARITY_CLEANENV": b"1",
    b"APPTAINERENV_PATH": b"/nowhere",
    b"SINGULARITYENV_A": b"1",
    b"GODEBUG": b"x=1",
    b"LD_PRELOAD": b"",
    b"SLURM_JOB_ID": b"7",
}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.chdir(tmp_path)
    found = Node(tmp_path)
    yield found
    found.end()


def run(command: list[str], job: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """The environment that a script has, as the kernel tells it."""
    done = subprocess.run(command, env=job, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    pairs = Path("shown").read_bytes().split(b"\0")
    return dict(pair.split(b"=", 1) for pair in pairs if pair)


@pytest.mark.parametrize("way", ["batch", "step"])
def test_the_scripts_environment_is_the_jobs(way: str, node: Node) -> None:
    job = JOB.copy()
    if way == "step":
        job[handover.REQUEST.encode()] = handover.plain(node.request.text()).encode()
    script = str(node.program("script", SHOW))
    shown = run(node.batch(SHOW) if way == "batch" else node.step(script), job)
    for name in (b"PATH", handover.REQUEST.encode()):
        job.pop(name, None)
    assert {name: value for name, value in shown.items() if name in job} == job


def test_apptainer_gets_nothing_that_changes_it(node: Node) -> None:
    run(node.batch(SHOW), JOB)
    _, environment, _ = json.loads(Path("apptainer.json").read_text())
    assert set(environment) == {"HOME", "PATH", "SLIPWAY_SLURM", "SLIPWAY_SUPERVISOR"}


def test_the_images_own_variables_come_first(node: Node) -> None:
    node.variables = {"LANG": "C.UTF-8", "APPTAINER_NAME": "x.sif", "APPTAINER_BIND": "ours"}
    shown = run(node.batch(SHOW), JOB | {b"LANG": b"de_DE"})
    assert shown[b"LANG"] == b"C.UTF-8"
    assert shown[b"APPTAINER_NAME"] == b"x.sif"
    assert shown[b"APPTAINER_BIND"] == b"/nowhere"
    without = {name: value for name, value in JOB.items() if name != b"APPTAINER_BIND"}
    assert b"APPTAINER_BIND" not in run(node.batch(SHOW), without)


def test_the_script_begins_as_sbatchs(node: Node) -> None:
    """It leads its group, and no more is blocked or ignored than without a container."""
    script = (
        "#!/bin/sh\ncut -d ' ' -f 1,5 /proc/$$/stat\nexec grep -E 'SigBlk|SigIgn' /proc/self/status"
    )
    masks = []
    for argv in (node.batch(script), [str(node.program("direct", script))]):
        with started(argv) as child:
            out = child.stdout.read() if child.stdout else b""
        first, *rest = out.decode().splitlines()
        process, group = first.split()
        assert process == group
        masks.append(rest)
    assert masks[0] == masks[1]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_closed_for_the_script(closed: str, node: Node) -> None:
    (path,) = node.batch(CLOSED)
    subprocess.run(["/bin/sh", "-c", f"{path} {closed}"], check=True, capture_output=True)
    wanted = {"<&-": "0", ">&-": "1", "2>&-": "2"}
    assert Path("shown").read_text().split() == [wanted[word] for word in closed.split()]


def test_what_a_script_leaves_behind_ends_before_the_image_goes(node: Node) -> None:
    script = """#!/bin/bash
(setsid bash -c 'trap "" TERM HUP; while [ $SECONDS -lt 90 ]; do date +%s.%N > last; done' &)
while [ $SECONDS -lt 90 ]; do date +%s.%N > also; done &
until [ -e last ] && [ -e also ]; do sleep 0.01; done
exit 7
"""
    with started(node.batch(script)) as child:
        assert child.wait(60) == 7
    unmounted = float(Path("unmounted").read_text())
    for name in ("last", "also"):
        assert os.stat(name).st_mtime < unmounted
        written = Path(name).read_text()
        assert not written or float(written) < unmounted


@pytest.mark.parametrize("way", ["batch", "step"])
@pytest.mark.parametrize("locale", [{}, {b"LANG": b"C"}, {b"LC_CTYPE": b"POSIX"}])
def test_python_adds_no_locale(way: str, locale: dict[bytes, bytes], node: Node) -> None:
    job = {b"PATH": b"/usr/bin:/bin", **locale}
    if way == "step":
        job[handover.REQUEST.encode()] = handover.plain(node.request.text()).encode()
    script = str(node.program("script", SHOW))
    shown = run(node.batch(SHOW) if way == "batch" else node.step(script), job)
    assert {x: shown[x] for x in shown if x in (b"LANG", b"LC_ALL", b"LC_CTYPE")} == locale


def test_a_steps_path_names_slurms_commands_once(node: Node) -> None:
    path = "/opt/slipway/slurm:/usr/bin:/bin"
    job = {
        b"PATH": b"/usr/bin:/bin",
        handover.REQUEST.encode(): handover.plain(node.request.text()).encode(),
        handover.STEP.encode(): handover.encode(
            {"folder": str(node.folder), "variables": {"PATH": path}}
        ).encode(),
        b"PWD": b"/by/another/name",
    }
    shown = run(node.step(str(node.program("script", SHOW))), job)
    assert shown[b"PATH"] == path.encode()
    assert shown[b"PWD"] == b"/by/another/name"


def test_a_script_that_runs_has_no_folder_in_tmp(node: Node) -> None:
    """Which would stay when Slurm kills the job."""
    (node.folder / "tmp").mkdir()
    job = {b"PATH": b"/usr/bin:/bin", b"TMPDIR": os.fsencode(node.folder / "tmp")}
    script = """#!/bin/sh
for i in $(seq 6000); do
    [ "$(ls -A "$TMPDIR")" ] || break
    sleep 0.01
done
ls -A "$TMPDIR" > shown
"""
    run(node.batch(script), job)
    assert Path("shown").read_text() == ""


def test_entries_without_a_name_are_left_out() -> None:
    code = "import base64, os, sys; from portal.node.batch.execute import environment;"
    code += "environment.restore(base64.b64encode(b'=a=b\\0x\\0A=1=2\\0')); print(os.environb)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("environ({b'A': b'1=2'})\n", "")
