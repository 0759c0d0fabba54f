"""What a script sees of signals is what it sees without a container, at each moment of its life.

SLIPWAY_SIGNAL_RUNS is the number of repetitions of each case, with other random numbers.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from portal.node.batch import handover
from portal.node.batch.execute.supervisor import SETTLING, STARTUP
from tests.support.paths import ROOT
from tests.unit.node.batch.execute.jobs import (
    Node,
    descendants,
    has_blocked,
    started,
    wait_until,
)

RUNS = int(os.environ.get("SLIPWAY_SIGNAL_RUNS", "1"))
NAMES = ("HUP", "QUIT", "USR1", "USR2", "ALRM", "TERM", "CONT", "XCPU", "WINCH", "PIPE")
# Not INT: Bash itself loses what comes with it while it waits for a child.
SIGNALS = [signal.Signals[f"SIG{name}"] for name in NAMES]
LAST = signal.SIGVTALRM
SHELL = "#!/bin/bash\n" + "".join(
    f"trap 'echo {signal.Signals[f'SIG{name}'].value} >> seen' {name}\n" for name in NAMES
)
SHELL += f"trap 'echo {LAST.value} >> seen; exit 3' VTALRM\n"
SHELL += "echo 0 >> seen\nwhile ((SECONDS < 90)); do sleep 0.01; done\n"
PYTHON = f"""#!{sys.executable} -IS
import os, signal, sys, time
def see(number, frame):
    os.write(seen, b"%d\\n" % number)
seen = os.open("seen", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for name in {NAMES!r}:
    signal.signal(getattr(signal, "SIG" + name), see)
# Not sys.exit: at its end Python takes back what was set for signals.
signal.signal({LAST.value}, lambda number, frame: (see(number, frame), os._exit(3)))
os.write(seen, b"0\\n")
for _ in range(90):
    time.sleep(1)
"""
# Python's handlers merge signals that the kernel queues.
AWAITS = f"""#!{sys.executable} -IS
import os, signal, sys, time
awaited = signal.valid_signals() - {{signal.SIGCHLD}}
signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
seen = os.open("seen", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(seen, b"0\\n")
while found := signal.sigtimedwait(awaited, 90):
    os.write(seen, b"%d\\n" % found.si_signo)
    if found.si_signo == {LAST.value}:
        sys.exit(3)
"""
POLL = """def poll():
    while not (taken := signal.sigtimedwait(awaited, 0)):
        time.sleep(0.005)
    return taken
"""
POLLS = AWAITS.replace("signal.sigtimedwait(awaited, 90)", "poll()").replace(
    "seen =", POLL + "seen ="
)
SCRIPTS = {"shell": SHELL, "python": PYTHON}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.chdir(tmp_path)
    found = Node(tmp_path)
    yield found
    found.end()


def seen() -> list[int]:
    """The signals that the script has seen; first 0, as soon as it expects them."""
    file = Path("seen")
    return list(map(int, file.read_text().split())) if file.exists() else []


def end_of(child: subprocess.Popen[bytes]) -> tuple[int, Counter[int]]:
    """Send the last signal when all others were seen; the exit code, and what was seen."""
    child.send_signal(LAST)
    return child.wait(60), Counter(seen())


def expected(sent: list[signal.Signals]) -> Counter[int]:
    return Counter([0, LAST.value, *(number.value for number in sent)])


def patterns(chance: random.Random) -> dict[str, list[signal.Signals]]:
    """Signals that follow each other immediately; each kind once, since others merge."""
    burst = SIGNALS.copy()
    chance.shuffle(burst)
    return {"pair": [signal.SIGCONT, signal.SIGUSR1], "burst": burst}


@pytest.mark.parametrize("pattern", ["pair", "burst"])
@pytest.mark.parametrize("phase", ["start", "mounting", "running", "late"])
@pytest.mark.parametrize("language", SCRIPTS)
def test_each_signal_is_seen_once(language: str, phase: str, pattern: str, node: Node) -> None:
    node.delay = 0.5 if phase == "mounting" else 0.0
    for run in range(RUNS):
        sent = patterns(random.Random(run))[pattern]
        Path("seen").unlink(missing_ok=True)
        with started(node.batch(SCRIPTS[language])) as child:
            if phase in ("start", "mounting"):
                wait_until(lambda: has_blocked(child.pid))
                time.sleep(node.delay / 2)
            else:
                wait_until(seen)
                time.sleep(STARTUP if phase == "late" else 0)
            for number in sent:
                child.send_signal(number)
            wait_until(partial(has_seen, Counter(map(int, [0, *sent]))))
            assert end_of(child) == (3, expected(sent))


@pytest.mark.parametrize("language", SCRIPTS)
def test_directly_it_sees_the_same(language: str, node: Node) -> None:
    """The expectation of the test above, without any program of ours."""
    for run in range(RUNS):
        for sent in patterns(random.Random(run)).values():
            Path("seen").unlink(missing_ok=True)
            path = node.program("direct", SCRIPTS[language])
            with started([str(path)]) as child:
                wait_until(seen)
                for number in sent:
                    child.send_signal(number)
                wait_until(partial(has_seen, Counter(map(int, [0, *sent]))))
                assert end_of(child) == (3, expected(sent))


def storm(child: subprocess.Popen[bytes], chance: random.Random) -> Counter[int]:
    """Send many signals; standard ones that wait already are not sent twice by the kernel."""
    queued = [signal.SIGRTMIN, signal.SIGRTMIN + 1, signal.SIGRTMIN + 2]
    sent = [chance.choice([*SIGNALS, *queued]) for _ in range(300)]
    for number in sent:
        child.send_signal(number)
        if chance.random() < 0.05:
            time.sleep(0.002)
    return Counter(map(int, sent))


def has_seen(sent: Counter[int]) -> bool:
    """Whether all were seen: each that the kernel queues, and one of each kind of the others."""
    found = Counter(seen())
    return all(found[x] >= (sent[x] if x >= signal.SIGRTMIN else 1) for x in sent)


@pytest.mark.parametrize("way", ["batch", "step", "direct"])
def test_a_storm_loses_nothing(way: str, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(node.program("direct", AWAITS))
    monkeypatch.setenv(handover.REQUEST, handover.plain(node.request.text()))
    commands = {"batch": node.batch(AWAITS), "step": node.step(path), "direct": [path]}
    for run in range(RUNS):
        Path("seen").unlink(missing_ok=True)
        with started(commands[way]) as child:
            wait_until(seen)
            sent = storm(child, random.Random(run))
            queued = {number for number in sent if number >= signal.SIGRTMIN}
            wait_until(partial(has_seen, sent))
            code, found = end_of(child)
        assert code == 3
        assert {number: found[number] for number in queued} == {x: sent[x] for x in queued}
        assert all(1 <= found[number] <= sent[number] for number in sent)


def test_repeated_signals_from_before_the_start_are_not_merged(node: Node) -> None:
    node.delay = 2.0
    with started(node.batch(POLLS)) as child:
        wait_until(lambda: has_blocked(child.pid))
        time.sleep(STARTUP)
        for _ in range(3):
            child.send_signal(signal.SIGUSR1)
            time.sleep(0.2)
        assert not seen()
        wait_until(lambda: seen().count(signal.SIGUSR1) == 3)
        assert end_of(child) == (3, expected([signal.SIGUSR1] * 3))


def test_repeated_signals_to_a_program_in_sigwait_are_not_merged(node: Node) -> None:
    """What it awaits is not blocked meanwhile, as if it were not prepared for it."""
    node.delay = SETTLING
    with started(node.batch(AWAITS)) as child:
        wait_until(seen)
        for _ in range(3):
            child.send_signal(signal.SIGUSR1)
            time.sleep(0.3)
        wait_until(lambda: seen().count(signal.SIGUSR1) == 3)
        assert end_of(child) == (3, expected([signal.SIGUSR1] * 3))


CHILD = """#!/bin/bash
bash -c 'trap "echo child >> seen" USR2; echo 0 >> seen
    while ((SECONDS < 90)); do sleep 0.01; done' &
trap 'echo script >> heard' USR2
trap 'exit 4' VTALRM
echo 0 >> heard
while ((SECONDS < 90)); do sleep 0.01; done
"""


def says(file: Path, word: str, count: int) -> bool:
    """Whether a file has a word as often as that."""
    return file.read_text().count(word) == count


def test_a_whole_group_is_signalled_where_slurm_signals_it(node: Node) -> None:
    """`scancel --full` signals the script's group, `--batch` the script alone."""
    heard, saw = Path("heard"), Path("seen")
    chance = random.Random(RUNS)
    with started(node.batch(CHILD)) as child:
        wait_until(lambda: heard.exists() and saw.exists())
        time.sleep(STARTUP)
        groups = [chance.random() < 0.5 for _ in range(10 * RUNS)]
        for number, group in enumerate(groups, 1):
            (os.killpg if group else os.kill)(child.pid, signal.SIGUSR2)
            wait_until(partial(says, heard, "script", number))
            wait_until(partial(says, saw, "child", sum(groups[:number])))
        time.sleep(0.2)
        assert saw.read_text().count("child") == sum(groups)
        assert heard.read_text().count("script") == len(groups)
        child.send_signal(LAST)
        assert child.wait(60) == 4


def test_between_children_and_while_one_runs(node: Node) -> None:
    """A shell's script sees a signal when the program in the foreground has ended."""
    script = "#!/bin/bash\ntrap 'echo 10 >> seen' USR1\necho 0 >> seen\n"
    script += "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; /bin/true; done\nexit 6\n"
    with started(node.batch(script)) as child:
        wait_until(seen)
        time.sleep(STARTUP)
        for _ in range(3):
            child.send_signal(signal.SIGUSR1)
            time.sleep(0.25)
        assert child.wait(60) == 6
    assert Counter(seen()) == Counter([0, 10, 10, 10])


@pytest.mark.parametrize("language", SCRIPTS)
def test_signals_at_the_end_do_not_change_it(language: str, node: Node) -> None:
    for run in range(RUNS):
        Path("seen").unlink(missing_ok=True)
        chance = random.Random(run)
        with started(node.batch(SCRIPTS[language])) as child:
            wait_until(seen)
            child.send_signal(LAST)
            while child.poll() is None:
                child.send_signal(chance.choice(SIGNALS))
                time.sleep(0.001)
            assert child.returncode == 3


@pytest.mark.parametrize("name", ["TERM", "USR1", "KILL", "SEGV", "RTMIN"])
def test_a_script_that_expects_none_ends_by_it(name: str, node: Node) -> None:
    number = getattr(signal, f"SIG{name}")
    with started(node.batch("#!/bin/sh\necho 0 > seen\nkill -STOP $$\nexec sleep 60\n")) as child:
        wait_until(seen)
        if name == "KILL":  # nobody can pass it on
            os.kill(_stopped(child.pid), number)
        else:
            child.send_signal(number)
            child.send_signal(signal.SIGCONT)
        assert child.wait(60) == -number


def _stopped(process: int) -> int:
    """The PID of the stopped script below a process."""

    def found() -> list[int]:
        files = {below: Path(f"/proc/{below}/stat") for below in descendants(process)}
        return [x for x, file in files.items() if ") T " in file.read_text()]

    wait_until(found)
    return found()[0]


def test_what_apptainer_cannot_start_has_the_exit_code_of_the_manual(node: Node) -> None:
    command = node.batch("#!/bin/sh\n")
    node.program("apptainer", "#!/bin/sh\necho 'FATAL: no' >&2\nexit 255\n")
    with started(command, stderr=subprocess.PIPE) as child:
        assert child.wait(60) == 70


HELD = """
import signal, subprocess, sys
from portal.node.batch.execute.supervisor import Supervisor
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
class Launcher:
    script, status = 0, None
found = Supervisor(is_batch=False)
found._launcher = Launcher()
for name in sys.argv[1:]:
    subprocess.run(["/bin/sh", "-c", f"kill -{name} $PPID"], check=True)
    for _ in range(4):  # SIGCHLD is taken as well
        found._take(0.05)
print(*[signal.Signals(held.number).name[3:] for held in found._queue])
"""


@pytest.mark.parametrize(
    ("sent", "held"),
    [
        ("TSTP USR1 CONT", "USR1 CONT"),  # or it would be stopped after all, for ever
        ("CONT TSTP", "TSTP"),
        ("TSTP CONT TTIN", "TTIN"),
        ("USR1 CONT USR2", "USR1 CONT USR2"),
    ],
)
def test_what_stops_and_what_continues_do_not_wait_together(sent: str, held: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELD, *sent.split()],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == (held, "")
