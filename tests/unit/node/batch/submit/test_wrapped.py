"""The script that is submitted for an image."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.node.batch.request import Request, parse
from portal.node.batch.submit import wrapped
from portal.node.batch.submit.directives import header_size


def a_request(command: str = "/usr/local/bin/slipway") -> Request:
    """A request for an image."""
    request = Request()
    request.image, request.name = "/images/a b.sif", "python/3.13"
    request.command = command
    return request


def handed_over(script: bytes, folder: Path, *arguments: str) -> tuple[list[str], bytes]:
    """What a submitted script passes to the node's program: its arguments, and descriptor 9."""
    program = folder / "slip way"
    program.write_text(f'#!/bin/sh\ncat <&9 > "{folder}/given"\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    submitted = folder / "slurm_script"
    submitted.write_bytes(wrapped.batch_script(script, a_request(str(program))))
    submitted.chmod(0o755)
    done = subprocess.run([submitted, *arguments], capture_output=True, check=True, text=True)
    return done.stdout.splitlines(), (folder / "given").read_bytes()


@pytest.mark.parametrize(
    "script",
    [
        b"#!/bin/sh\necho hi\n",
        b"#!/bin/sh\necho hi",
        b"#!/usr/bin/env python3\nprint('''$x `id` \\ ''')\n\n",
        b"#!/bin/csh -f\n#SBATCH -n1\n\n# x\nset a = 1\n",
        b"#!/bin/bash\ncat <<'EOF'\nSLIPWAY\nEOF\n",
        b"#!/bin/sh\n" + b"echo " + b"x" * 300_000 + b"\n",
        "#!/bin/sh\necho ü \udcff\n".encode("utf-8", "surrogateescape"),
    ],
)
def test_the_script_arrives_unchanged(script: bytes, tmp_path: Path) -> None:
    arguments, given_ = handed_over(script, tmp_path, "a b", "")
    assert arguments == ["node-batch", str(tmp_path / "slurm_script"), "a b", ""]
    text, received = wrapped.unwrap(given_)
    assert received == script
    assert parse(text).image == "/images/a b.sif"


@given(st.binary(max_size=300).filter(wrapped.NO_SCRIPT.__ne__))
def test_any_content_arrives_unchanged(content: bytes) -> None:
    script = b"#!" + content.replace(b"\0", b"0")
    submitted = wrapped.batch_script(script, a_request())
    begin = submitted.index(b"9<<'") + len(b"9<<'")
    mark = submitted[begin : submitted.index(b"'", begin)]
    body = submitted[submitted.index(b"\n", begin) + 1 :]
    assert body.count(b"\n" + mark + b"\n") == 1
    assert wrapped.unwrap(body)[1] == script


def test_directives_stay_and_code_does_not() -> None:
    script = (
        b"#!/bin/csh\n#SBATCH -n2\n\n#SBATCH hetjob\n#PBS -l x\n  # blank\nset a\n#SBATCH -n9\n"
    )
    lines = wrapped.batch_script(script, a_request()).split(b"exec ")[0].splitlines()
    assert lines[:6] == [
        b"#!/bin/sh",
        b"#SBATCH -n2",
        b"",
        b"#SBATCH hetjob",
        b"#PBS -l x",
        b"  # blank",
    ]
    assert b"#SBATCH -n9" not in b"\n".join(lines)


def test_a_carriage_return_in_a_comment_ends_no_directives() -> None:
    script = b"#!/bin/sh\n# a\rb\n#SBATCH --mem=1G\n#SLIPWAY --image=x\rid\nid\n"
    submitted = wrapped.batch_script(script, a_request())
    assert submitted.startswith(b"#!/bin/sh\n# a\rb\n#SBATCH --mem=1G\n")
    assert header_size(script) == len(script) - len(b"id\n")


def test_no_variable_of_the_job_is_changed(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nenv\n")
    program.chmod(0o755)
    environment = {"slipway": "mine", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["/bin/sh"],
        input=wrapped.batch_script(b"#!/bin/sh\n", a_request(str(program))),
        env=environment,
        capture_output=True,
        check=True,
    )
    assert b"slipway=mine\n" in done.stdout


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_every_byte_passes_every_shell(shell: str, tmp_path: Path) -> None:
    script = b"#!/bin/sh\n" + bytes(range(1, 256)) * 300 + b"\n"
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\ncat <&9 > "{tmp_path}/given"\n')
    program.chmod(0o755)
    submitted = wrapped.batch_script(script, a_request(str(program)))
    subprocess.run([shell, "-s"], input=submitted, check=True)
    assert wrapped.unwrap((tmp_path / "given").read_bytes())[1] == script


ODD = {b"BASH_FUNC_greet%%": b"() {  echo hi;\n}", b"my.var": b"1", b"foo-bar": b"2\\n\\u000A",
       b"BYTES": b"\xff\n\xc3\xbc", b"IFS": b"i", b"PWD": b"/other", b"EMPTY": b"",
       b"PATH": b"/bin"}  # fmt: skip


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_the_environment_is_handed_over_byte_for_byte(shell: str, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\ncat <&8 > "{tmp_path}/given"\n')
    program.chmod(0o755)
    submitted = tmp_path / "slurm_script"
    submitted.write_bytes(wrapped.batch_script(b"#!/bin/sh\n", a_request(str(program))))
    large = ODD | {b"LARGE%d" % number: b"x" * 100_000 for number in range(10)}
    subprocess.run([shell, submitted], env=large, check=True)
    given_ = base64.b64decode((tmp_path / "given").read_bytes())
    assert dict(pair.split(b"=", 1) for pair in given_.split(b"\0") if pair) == large


def test_a_script_that_is_cut_off_does_not_run() -> None:
    with pytest.raises(ValueError, match="not complete"):
        wrapped.unwrap(b"{}\n20\n#!/bin/sh\n")


def test_the_command_of_wrap_arrives(tmp_path: Path) -> None:
    text = wrapped.wrap_text(b"echo 'a'; date", a_request())
    _, script = wrapped.unwrap(text[text.index(b"9<<'") :].partition(b"\n")[2])
    assert script == (b"#!/bin/sh\n# This script was created by sbatch --wrap.\n\necho 'a'; date\n")


@pytest.mark.parametrize(
    "script", [b"", b"echo\n", b"#!/bin/sh\r\n", b"#!/bin/sh\n\0", b"\n#!/bin/sh"]
)
def test_scripts_that_sbatch_refuses(script: bytes) -> None:
    assert not wrapped.is_complete(script)


def test_a_missing_program_is_explained(tmp_path: Path) -> None:
    script = wrapped.batch_script(b"#!/bin/sh\n", a_request("/nowhere/slipway"))
    done = subprocess.run(
        ["/bin/sh"], input=script, env={"SLURMD_NODENAME": "n7"}, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        b"Slipway is not installed on n7 (/nowhere/slipway). Tell the administrators.\n"
    )
