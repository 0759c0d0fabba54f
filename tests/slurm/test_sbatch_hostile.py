"""`slipway sbatch` with poisoned environments, odd scripts and random command lines."""

from __future__ import annotations

import random
import re
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.slurm.batch import Batch, End
from tests.support.cluster import Cluster

# The loader and slurmstepd have words of their own about what they cannot use. Slurm 26.05 writes a
# time in front of them, and not the name of slurmstepd.
THEIRS = re.compile(r"ERROR: ld\.so|slurm|\[[0-9-]+T[0-9:.]+\] error: ")
OK = "#!/bin/sh\n. /etc/os-release; echo $VERSION_ID\n"


@pytest.fixture(scope="module")
def batch(cluster: Cluster) -> Iterator[Batch]:
    """Alice's folder on the login node."""
    found = Batch(cluster, folder="hostile")
    yield found
    found.clean()


POISONS = [
    "PATH=$PWD/fake:$PATH",
    "PYTHONPATH=$PWD/fake PYTHONHOME=/nowhere PYTHONSTARTUP=$PWD/fake/json.py",
    "LD_PRELOAD=/nowhere/lib.so LD_LIBRARY_PATH=$PWD/fake",
    "APPTAINER_BIND=/etc/hostname:/x APPTAINERENV_A=1 SINGULARITY_BIND=/nowhere:/y",
    "LC_ALL=C LANG=tlh LANGUAGE=xx",
    "TMPDIR=/nowhere HOME=/nowhere",
    "TMPDIR=$PWD/" + "long" * 40,
    "SLURM_SLIPWAY_STEP=x SLURM_SLIPWAY_ENV=%%% SLURM_SLIPWAY_REQUEST=e30=",
    "ENV=$PWD/fake/json.py BASH_ENV=$PWD/fake/json.py CDPATH=/ IFS=i",
]


def test_a_poisoned_environment_changes_nothing(batch: Batch) -> None:
    """The jobs run side by side, as far as a user's processors permit."""
    batch.shell("mkdir -p fake; mkdir -p $PWD/" + "long" * 40)
    for name in ("json", "os", "re", "sitecustomize", "zipfile"):
        batch.write(f"fake/{name}.py", "raise SystemExit('poisoned')\n")
    batch.write("fake/python3", "#!/bin/sh\necho poisoned\n")
    batch.shell("chmod +x fake/python3")
    jobs = {}
    for poison in POISONS:
        line = f"{poison} slipway sbatch --parsable --mem=150M -o $PWD/%j.out --image=debian/12"
        done = batch.shell(line, stdin=OK)
        assert done.returncode == 0, (poison, done.stderr)
        jobs[poison] = done.stdout.strip()
    for poison, job in jobs.items():
        assert batch.end(job) == End("COMPLETED", "0:0"), (poison, batch.output(job))
        lines = [line for line in batch.output(job).splitlines() if not THEIRS.match(line)]
        assert lines == ["12"], poison


def test_another_slurm_conf_is_slurms_own_matter(batch: Batch) -> None:
    """Slurm tries for a minute to read it, here for both at the same time."""
    commands = ("sbatch", "slipway sbatch --image=debian/12")
    lines = [f"SLURM_CONF=/nowhere/slurm.conf timeout 100 {command}" for command in commands]
    with ThreadPoolExecutor(len(lines)) as pool:
        plain, imaged = pool.map(lambda line: batch.shell(line, stdin=OK), lines)
    assert plain.returncode != 0
    assert (imaged.returncode, imaged.stdout) == (plain.returncode, plain.stdout)


SCRIPTS = {
    "CRLF": "#!/bin/sh\r\n#SLIPWAY --image=debian/12\r\necho\r\n",
    "CRLF later": "#!/bin/sh\n#SLIPWAY --image=debian/12\necho\r\n",
    "no interpreter": "#SLIPWAY --image=debian/12\necho\n",
    "empty": "",
    "only a comment": "#!/bin/sh",
    "an option that sbatch refuses": "#!/bin/sh\n#SBATCH --nope\n#SLIPWAY --image=debian/12\n",
    "an unmatched quote": "#!/bin/sh\n#SBATCH --comment='x\n#SLIPWAY --image=debian/12\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_sbatch_says_what_is_wrong_with_a_script(name: str, batch: Batch) -> None:
    batch.write("odd.sh", SCRIPTS[name])
    for file in ("odd.sh", ""):
        line = file or "< odd.sh"
        plain = batch.shell(f"sbatch {line}")
        ours = batch.shell(f"slipway sbatch --image=debian/13 {line}")
        same = (plain.returncode, plain.stdout, plain.stderr)
        if name == "only a comment":
            assert plain.returncode == 0
            continue
        assert plain.returncode != 0
        assert (ours.returncode, ours.stdout, ours.stderr) == same


def test_a_nul_in_a_script(batch: Batch) -> None:
    for option in ("", "--image=debian/12"):
        line = "printf '#!/bin/sh\\n\\0echo\\n' > nul.sh; "
        plain = batch.shell(f"{line} sbatch nul.sh")
        ours = batch.shell(f"{line} slipway sbatch {option} nul.sh")
        assert plain.returncode == 1
        assert (ours.returncode, ours.stderr) == (plain.returncode, plain.stderr)


def test_a_script_of_four_megabytes(batch: Batch) -> None:
    batch.shell("{ cat; head -c 4000000 /dev/zero | tr '\\0' '#'; echo; } > big.sh", stdin=OK)
    done = batch.shell("slipway sbatch --wait --mem=150M -o big.out --image=debian/12 big.sh")
    assert done.returncode == 0, done.stderr
    assert batch.shell("cat big.out").stdout == "12\n"
    batch.shell("{ cat; head -c 5000000 /dev/zero | tr '\\0' '#'; echo; } > huge.sh", stdin=OK)
    plain = batch.shell("sbatch huge.sh")
    ours = batch.shell("slipway sbatch --image=debian/12 huge.sh")
    assert plain.returncode != 0
    assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, "", plain.stderr)


@pytest.mark.parametrize("name", ["my image.sif", "li\nne.sif", "-x.sif", "a,b:c.sif", "link.sif"])
def test_an_image_with_an_odd_name(name: str, batch: Batch) -> None:
    image = "/srv/slipway/images/debian/12/image.sif"
    how = "ln -s" if name == "link.sif" else "cp"
    batch.shell(f"{how} {image} ./{shlex.quote(name)}")
    line = f"slipway sbatch --wait --mem=150M -o odd.out --image ./{shlex.quote(name)}"
    done = batch.shell(line, stdin=OK)
    batch.shell(f"rm -f ./{shlex.quote(name)}")
    if "\n" in name:
        assert done.returncode == 255
        assert done.stderr == "sbatch: error: --image: the file's name has control characters\n"
        return
    assert done.returncode == 0, done.stderr + batch.shell("cat odd.out").stdout
    assert batch.shell("cat odd.out").stdout == "12\n"


def test_directives_inject_nothing_into_the_shell(batch: Batch) -> None:
    batch.shell("rm -f pwned; cp /srv/slipway/images/debian/12/image.sif 'x$(touch pwned).sif'")
    script = f"#!/bin/sh\n#SLIPWAY --image='./x$(touch pwned).sif'\n{OK[10:]}"
    done = batch.shell("slipway sbatch --wait --mem=150M -o inject.out --array=1-2", stdin=script)
    assert done.returncode == 0, done.stderr
    assert batch.shell("cat inject.out; ls pwned 2>&1").stdout.startswith("12\n")
    assert batch.shell("ls pwned").returncode != 0
    batch.shell("rm -f x*.sif")
    wrong = "#!/bin/sh\n#SLIPWAY --image=debian/12 --uid=0\n"
    done = batch.shell("slipway sbatch", stdin=wrong)
    assert (done.returncode, done.stdout) == (255, "")
    assert "'--uid=0' is not an option of Slipway" in done.stderr


def test_two_links_to_the_command_do_not_call_each_other(batch: Batch) -> None:
    batch.shell("mkdir -p a b; cp /usr/local/bin/slipway a/sbatch; ln -sf ../a/sbatch b/sbatch")
    done = batch.shell("PATH=$PWD/a:$PWD/b:$PATH timeout 20 sbatch --version")
    assert done.returncode == 0
    assert done.stdout.startswith("slurm")
    gone = batch.shell("PATH=$PWD/a:$PWD/b /usr/bin/timeout 20 $PWD/a/sbatch --version")
    assert gone.returncode == 127
    assert gone.stderr == "sbatch: error: Slurm's sbatch was not found in PATH\n"


def test_stdin_and_descriptors_are_passed_on(batch: Batch) -> None:
    line = (
        "exec 7< /etc/hostname; ulimit -n 777; umask 027; {} --parsable --mem=50M -o %j.out < s.sh"
    )
    batch.write("s.sh", "#!/bin/sh\numask; ulimit -n\n")
    ends = []
    for command in ("sbatch", "slipway sbatch"):
        job = batch.shell(line.format(command)).stdout.strip()
        batch.end(job)
        ends.append(batch.output(job))
    assert ends[0] == ends[1]
    assert ends[0].startswith("0027\n")


WORDS = [
    "-n", "2", "--nodes=1", "-N", "1-2", "-c1", "--time", "1:00", "--time=x", "-t5", "--mem=1G",
    "-J", "a b", "--job-name=", "-", "--", "-H", "-Hn1", "--nice", "--nice=5", "--exclusive", "-k",
    "--parsable", "-Q", "-v", "--nope", "--part=main", "--par", "-pnowhere", "-p", "short", ":",
    "--array=0-1", "-a", "--wrap=true", "--wrap", "--test-only", "job.sh", "gone.sh", "x y", "",
    "--export=NONE", "--output=/dev/null", "--chdir=/tmp", "-D", "--dependency=singleton",
    "--requeue", "--begin=now+1hour", "--comment=ü", "--gres=shard:1", "--gres",
    "--signal=USR1", "--usage", "-V",
]  # fmt: skip


def _submit(batch: Batch, command: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    line = f"cd {batch.folder} && {command} --hold {shlex.join(words)} < job.sh"
    argv = ("exec", "--user", batch.user, "login", "--", "sh", "-c", line)
    return batch.cluster.attempt(*argv, seconds=120)  # a login shell each time takes longer


def test_random_command_lines_are_accepted_and_refused_alike(batch: Batch) -> None:
    batch.write("job.sh", "#!/bin/sh\n#SBATCH --mem=60M\n")
    chance = random.Random(20261123)
    wrong, accepted = [], 0
    for _ in range(120):
        words = [chance.choice(WORDS) for _ in range(chance.randrange(6))]
        found = []
        for command in ("sbatch", "slipway sbatch", "slipway sbatch --image=busybox"):
            done = _submit(batch, command, words)
            text = re.sub(r"/tmp/slipway-\w+/", "", done.stdout + done.stderr)
            # With --verbose sbatch prints what it was given to wrap.
            text = re.sub(r"(?s)sbatch: wrap +: .*?(?=sbatch: -----)", "", text)
            found.append((done.returncode, re.sub(r"\d+", "N", text)))
        accepted += found[0][0] == 0
        if len(set(found)) > 1:
            wrong.append((words, found))
        if accepted % 10 == 9:
            batch.shell("scancel --me")
    batch.shell("scancel --me")
    assert wrong == []
    assert accepted > 20
