"""`slipway sbatch` with images, on a real cluster: ends, exit codes and output are sbatch's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slurm.batch import Batch, End
from tests.support.cluster import Cluster, wait_for

PYTHON = """#!/usr/bin/env python3
#SLIPWAY --image=python/3.13
import os, sys
print(sys.version_info[:2], sys.argv[1:], sys.argv[0] == os.environ["NAME"], os.getcwd())
sys.exit(7)
"""
SCRIPTS = {
    "bash": "#!/bin/bash\n#SLIPWAY --image debian/12\n"
    ". /etc/os-release; echo $VERSION_ID ${BASH%h}\n",
    "csh": "#!/bin/csh -f\n#SLIPWAY --image=debian/13\nset a = (1 2)\necho csh $#a\n",
    "signal": "#!/bin/sh\n#SLIPWAY --image=debian/13\nkill -SEGV $$\n",
    "killed": "#!/bin/sh\n#SLIPWAY --image=debian/13\nkill -KILL $$\n",
    "memory": "#!/bin/bash\n#SLIPWAY --image=debian/13\na=x; while :; do a=$a$a; done\n",
    "no-interpreter": "#!/usr/bin/julia\n#SLIPWAY --image=debian/13\nprintln(1)\n",
    "environment": '#!/bin/sh\n#SLIPWAY --image=debian/13\necho "$A|$B|$SLURM_JOB_NAME|$HOME"\n',
    "exported": "#!/bin/sh\n#SLIPWAY --image=debian/13\n#SBATCH --export=NONE\n"
    'echo "$A|$FROM_FILE"\n',
    "steps": "#!/bin/sh\n#SLIPWAY --image=debian/12\nexport X='a  b'; cd /tmp\n"
    "srun sh -c '. /etc/os-release; echo $VERSION_ID $X $PWD'\n"
    'squeue --me -h -o %A | grep -x "$SLURM_JOB_ID"\n',
    "shm": "#!/bin/sh\n#SLIPWAY --image=debian/13 --shm 60m\n"
    "df --output=size -BM /dev/shm | tail -n 1\n",
}
ENDS = {
    "bash": End("COMPLETED", "0:0"),
    "csh": End("COMPLETED", "0:0"),
    "signal": End("FAILED", "0:11"),
    "killed": End("FAILED", "0:9"),
    "memory": End("OUT_OF_MEMORY", "0:125"),
    "no-interpreter": End("FAILED", "127:0"),
    "environment": End("COMPLETED", "0:0"),
    "exported": End("COMPLETED", "0:0"),
    "steps": End("COMPLETED", "0:0"),
    "shm": End("COMPLETED", "0:0"),
}


@pytest.fixture(scope="module")
def batch(cluster: Cluster) -> Iterator[Batch]:
    """Alice's folder on the login node."""
    found = Batch(cluster)
    yield found
    found.clean()


@pytest.fixture(scope="module")
def jobs(batch: Batch) -> dict[str, str]:
    """A job for each of SCRIPTS, submitted together."""
    batch.write("variables", "FROM_FILE= x = 1\n")
    found = {}
    for name, script in SCRIPTS.items():
        options = ["--job-name=it", "--env-file=variables"] if name in VARIABLES else []
        command = ("env", "A=1  2", "B=ü\n3", "slipway", "sbatch")
        found[name] = batch.submit(script, *options, command=command)
    return found


VARIABLES = {"environment", "exported"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_ends_are_those_of_sbatch(name: str, batch: Batch, jobs: dict[str, str]) -> None:
    assert batch.end(jobs[name]) == ENDS[name]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("bash", ["12 /bin/bas"]),
        ("csh", ["csh 2"]),
        (
            "no-interpreter",
            ["Slipway: debian/13 has no /usr/bin/julia, which the first line of the script names"],
        ),
        ("environment", ["1  2|ü", "3|it|/home/alice"]),
        ("exported", ["| x = 1"]),
        ("shm", ["      60M"]),
    ],
)
def test_output_is_the_scripts_own(
    name: str, lines: list[str], batch: Batch, jobs: dict[str, str]
) -> None:
    batch.end(jobs[name])
    assert batch.output(jobs[name]).splitlines() == lines


def test_steps_run_in_the_same_image(batch: Batch, jobs: dict[str, str]) -> None:
    batch.end(jobs["steps"])
    assert batch.output(jobs["steps"]).splitlines() == ["12 a b /tmp", jobs["steps"]]


def test_a_file_its_arguments_and_its_name(batch: Batch) -> None:
    batch.write("my job.py", PYTHON.replace('os.environ["NAME"]', "sys.argv[0]"))
    done = batch.shell("slipway sbatch --wait --mem=150M -o file.out 'my job.py' a 'b  c' ''")
    assert done.returncode == 7
    job = done.stdout.split()[-1]
    assert done.stdout == f"Submitted batch job {job}\n"
    assert batch.shell("cat file.out").stdout == (
        f"(3, 13) ['a', 'b  c', ''] True {batch.folder}\n"
    )
    argv = ["sacct", "-n", "-X", "-P", "-o", "JobName,ExitCode", "-j", job]
    assert batch.cluster.run("login", *argv) == "my job.py|7:0\n"
    # Folders named by an account's number are file servers'.
    assert batch.shell("ls -d /tmp/slipway-* | grep -vxE '/tmp/slipway-[0-9]{4,5}'").stdout == ""


def test_a_link_named_sbatch_in_front_of_the_path(batch: Batch) -> None:
    script = "#!/bin/sh\n#SLIPWAY --image=debian/12\n. /etc/os-release; echo $VERSION_ID\n"
    line = "mkdir -p bin; ln -sf /usr/local/bin/slipway bin/sbatch; cp bin/sbatch bin/srun; "
    line += "PATH=$PWD/bin:$PWD/bin:$PATH sbatch --wait --mem=150M -o link.out"
    done = batch.shell(line, stdin=script)
    assert (done.returncode, done.stderr) == (0, "")
    assert batch.shell("cat link.out").stdout == "12\n"
    plain = batch.shell(line, stdin="#!/bin/sh\n. /etc/os-release; echo $VERSION_ID\n")
    assert (plain.returncode, plain.stderr) == (0, "")
    assert batch.shell("cat link.out").stdout == "13\n"


def test_signals_reach_the_script(batch: Batch) -> None:
    script = "#!/bin/bash\ntrap 'echo usr1; exit 9' USR1\necho up\nwhile :; do sleep 0.2; done\n"
    job = batch.submit(script, "--image=debian/13")
    batch.wait_output(job, "up")
    batch.shell(f"scancel --batch --signal=USR1 {job}")
    assert batch.end(job) == End("FAILED", "9:0")
    assert batch.output(job) == "up\nusr1\n"


def test_cancelled_by_root(batch: Batch) -> None:
    job = batch.submit("#!/bin/sh\necho up; sleep 300\n", "--image=debian/13")
    batch.wait_output(job, "up")
    batch.cluster.run("ctl", "scancel", job)
    assert batch.end(job).state == "CANCELLED"
    wait_for("nothing to be left", lambda: not _left(batch))


def _left(batch: Batch) -> str:
    """Processes of the script on either node."""
    return "".join(batch.cluster.shell(node, "pgrep -u alice sleep; true") for node in ("n1", "n2"))


def test_an_array_of_twenty(batch: Batch) -> None:
    script = "#!/bin/sh\necho $SLURM_ARRAY_TASK_ID > task-$SLURM_ARRAY_TASK_ID\n"
    job = batch.submit(script, "--array=0-19", "--image=busybox", "--mem=60M")
    assert batch.end(job, 120) == End("COMPLETED", "0:0")
    assert batch.shell("cat task-* | sort -n | tr '\\n' ' '").stdout == (
        " ".join(map(str, range(20))) + " "
    )


def test_a_chain_of_dependencies(batch: Batch) -> None:
    first = batch.submit("#!/bin/sh\nexit 1\n", "--image=debian/13", "--hold")
    second = batch.submit("#!/bin/sh\n", "--image=debian/13", f"--dependency=afternotok:{first}")
    never = batch.submit("#!/bin/sh\n", "--image=debian/13", f"--dependency=afterok:{first}")
    batch.shell(f"scontrol release {first}")
    assert batch.end(second) == End("COMPLETED", "0:0")
    state = wait_for(
        "the end of hope",
        lambda: (
            "DependencyNeverSatisfied" in batch.shell(f"squeue -h -j {never} -o %r").stdout or None
        ),
    )
    assert state


def test_requeued_it_runs_again(batch: Batch) -> None:
    script = '#!/bin/sh\necho run $SLURM_RESTART_COUNT\n[ "$SLURM_RESTART_COUNT" ] || sleep 300\n'
    job = batch.submit(script, "--image=debian/13", "--requeue", "--open-mode=append")
    batch.wait_output(job, "run")
    batch.shell(f"scontrol requeue {job}")
    # Slurm waits before it starts a requeued job again.
    wait_for("the queue", lambda: batch.shell(f"squeue -h -j {job} -o %T").stdout == "PENDING\n")
    batch.shell(f"scontrol update JobId={job} StartTime=now")
    assert batch.end(job, 200) == End("COMPLETED", "0:0")
    assert batch.output(job).splitlines()[0] == "run"
    assert batch.output(job).splitlines()[-1] == "run 1"


def test_a_script_from_a_pipe_may_have_arguments(batch: Batch) -> None:
    script = '#!/bin/sh\nprintf "%s|" "$@"; . /etc/os-release; echo "$VERSION_ID"\n'
    usual = ("--parsable", "--mem=150M", "--output=%j.out", "--time=5", "--image=debian/13")
    words = ("slipway", "sbatch", *usual, "/dev/stdin", "a b", "-x")
    job = batch.submitted(*words, stdin=script)
    assert batch.end(job) == End("COMPLETED", "0:0")
    assert batch.output(job).strip() == "a b|-x|13"
    batch.write("run.sh", script)
    done = batch.shell(f"slipway sbatch {' '.join(usual)} <(cat run.sh) 'c d'")
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip()
    assert batch.end(job) == End("COMPLETED", "0:0")
    assert batch.output(job).strip() == "c d|13"


def test_a_job_in_an_image_submits_another_one(batch: Batch) -> None:
    script = (
        "#!/bin/sh\nslipway sbatch --wait --mem=100M --time=5 --output=second.out "
        "--image=debian/13 --wrap '. /etc/os-release; echo $VERSION_ID'\n"
        "srun --chdir=/usr pwd\n"
    )
    job = batch.submit(script, "--image=debian/12")
    assert batch.end(job, 120) == End("COMPLETED", "0:0")
    assert batch.shell("cat second.out").stdout.strip() == "13"
    assert batch.output(job).splitlines()[-1] == "/usr"


def test_mpi_on_two_nodes_with_the_images_own_library(batch: Batch) -> None:
    script = (
        "#!/bin/sh\nsrun hostname | sort | uniq\nsrun --mpi=pmi2 python -c '\n"
        "from mpi4py import MPI\nc = MPI.COMM_WORLD\n"
        "print(c.Get_rank(), c.Get_size(), c.allreduce(c.Get_rank()), flush=True)' | sort\n"
    )
    options = ("--image=python/3.13", "--nodes=2", "--ntasks=3", "--mem=200M")
    job = batch.submit(script, *options)
    end = batch.end(job)
    assert batch.output(job).splitlines() == ["n1", "n2", "0 3 3", "1 3 3", "2 3 3"]
    assert end == End("COMPLETED", "0:0")


def test_a_share_of_a_gpu(batch: Batch) -> None:
    script = (
        "#!/bin/sh\nnvidia-smi --query-gpu=memory.total --format=csv,noheader\n"
        "srun --gres=shard:1 nvidia-smi --query-gpu=memory.total --format=csv,noheader\n"
    )
    job = batch.submit(script, "--image=debian/13", "--fgpu=0.5")
    assert batch.end(job) == End("COMPLETED", "0:0")
    assert batch.output(job).splitlines() == ["2048 MiB", "2048 MiB"]
    without = batch.submit("#!/bin/sh\nhead -c 1 /dev/nvidia0\n", "--image=debian/13", "-w", "n1")
    batch.end(without)
    assert "Operation not permitted" in batch.output(without)


def test_steps_have_the_share_a_part_of_it_or_none(batch: Batch) -> None:
    memory = "nvidia-smi --query-gpu=memory.total --format=csv,noheader"
    script = f"#!/bin/sh\nsrun {memory}\nsrun --gres=shard:1 {memory}\n"
    script += "srun --gres=none sh -c 'echo none; head -c 1 /dev/nvidia0'\n"
    job = batch.submit(script, "--image=debian/13", "--fgpu=0.5")
    batch.end(job)
    lines = batch.output(job).splitlines()
    assert lines[:3] == ["2048 MiB", "2048 MiB", "none"]
    assert "Operation not permitted" in lines[3]
    options = "--mem=150M --image=debian/13 --fgpu=0.5"
    for line in (
        f"slipway srun {options} {memory}",
        f"slipway salloc -Q {options} slipway srun {memory}",
    ):
        done = batch.shell(line)
        assert (done.returncode, done.stdout) == (0, "2048 MiB\n"), done.stderr
    plain = batch.shell(f"slipway salloc -Q {options} srun echo plain")
    assert (plain.returncode, plain.stdout) == (0, "plain\n"), plain.stderr


def test_a_program_is_broadcast_and_steps_have_its_name(batch: Batch) -> None:
    script = (
        "#!/bin/sh\ncp /bin/echo program; copy=/tmp/copy-$SLURM_JOB_ID\n"
        "srun --bcast=$copy ./program first\nsrun $copy second\ncmp $copy program && rm $copy\n"
    )
    job = batch.submit(script, "--image=debian/13")
    assert batch.end(job) == End("COMPLETED", "0:0")
    assert batch.output(job).splitlines() == ["first", "second"]
    argv = ["sacct", "-n", "-P", "-o", "JobName", "-j", f"{job}.0,{job}.1"]
    assert batch.cluster.run("login", *argv).splitlines() == ["program", f"copy-{job}"]


def test_a_list_of_programs_leaves_nothing_on_the_login_node(batch: Batch) -> None:
    batch.write("tasks", "0 echo task %t\n")
    before = batch.shell("ls /tmp").stdout
    done = batch.shell("slipway srun --mem=150M --image=debian/13 -n1 --multi-prog tasks")
    assert (done.returncode, done.stdout) == (0, "task 0\n"), done.stderr
    assert batch.shell("ls /tmp").stdout == before


def test_folders_read_only_and_not(batch: Batch) -> None:
    batch.shell("mkdir -p ../storage/kept data")
    script = (
        "#!/bin/sh\ntouch data/x 2>&1; touch ~/storage/kept/y && echo fine\nls -d /etc/slurm 2>&1\n"
    )
    folder = f"{batch.folder}/data"
    job = batch.submit(script, "--image=debian/13", "--mount", f"{folder}:ro", "--mount=kept")
    batch.end(job)
    assert batch.output(job).splitlines() == [
        "touch: cannot touch 'data/x': Read-only file system",
        "fine",
        "ls: cannot access '/etc/slurm': No such file or directory",
    ]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--image=nope", "--image: there is no image 'nope'; choose one of: "),
        ("--image=python --fgpu=9999", "--fgpu: "),
        ("--image=python --mount=nope", "--mount: there is no folder /home/alice/storage/nope"),
        ("--shm=1g", "--shm: it needs --image"),
    ],
)
def test_wrong_options_submit_nothing(options: str, text: str, batch: Batch) -> None:
    before = batch.shell("squeue --me -h -o %A").stdout
    done = batch.shell(f"slipway sbatch {options}", stdin="#!/bin/sh\n")
    if "9999" not in options:
        assert done.stderr.startswith(f"sbatch: error: {text}")
        assert done.returncode == 255
    assert done.returncode != 0
    assert done.stdout == ""
    assert batch.shell("squeue --me -h -o %A").stdout == before


def test_srun_and_salloc_from_the_login_node(batch: Batch) -> None:
    version = "sh -c '. /etc/os-release; echo $VERSION_ID'"
    done = batch.shell(f"slipway srun --mem=100M --image=debian/12 {version}")
    assert (done.returncode, done.stdout) == (0, "12\n")
    line = f"slipway salloc -Q --mem=100M --image=debian/12 slipway srun {version}"
    done = batch.shell(line)
    assert (done.returncode, done.stdout) == (0, "12\n"), done.stderr
