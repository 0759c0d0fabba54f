"""Random cases: each is a batch job, how it is submitted, and the signals that it gets."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.oracle import pieces

INTERPRETERS = {
    "#!/bin/sh": "shell",
    "#!/bin/bash": "shell",
    "#!/bin/bash -l": "shell",
    "#!/usr/bin/env bash": "shell",
    "#!/usr/bin/python3": "python",
    "#!/usr/bin/env -S python3 -u": "python",
    "#!/bin/tcsh -f": "csh",
}
"""The first lines of scripts, with the languages of pieces.py."""
NAMES = ("job.sh", "my job.sh", "-odd", "ünder_score.py", "job")
ARGUMENTS = ("", "a b", "-x", "--time=9", "*", "$HOME", "é", "it's")
SIGNALS = ("USR1", "USR2", "HUP", "TERM", "CONT", "WINCH")
PEOPLE = ("", "022", "007", "027", "077")
"""Values of umask; "" for the usual one."""


@dataclass(frozen=True)
class Case:
    """One job; the same for each of the two ways to submit it."""

    seed: int
    number: int
    script: str
    way: str
    """How sbatch gets the script: "file", "pipe" (standard input), "name" (/dev/stdin), "wrap"."""
    file: str
    options: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    mask: str
    signals: tuple[str, ...] = ()
    to: str = ""
    """scancel's option for them: "--batch" or "--full"."""
    burst: bool = False
    """Whether they are sent without a pause."""

    @property
    def command(self) -> str:
        """What repeats this case."""
        return f"python -m tests.oracle 1 --seed {self.seed} --first {self.number}"


def generate(seed: int, number: int) -> Case:
    """The case of a number; the same for the same seed, with every version of Python 3."""
    chance = Random(f"{seed}/{number}")
    signalled = chance.random() < 0.3
    if signalled:
        line = chance.choice(["#!/bin/bash", "#!/usr/bin/python3"])
    else:
        line = chance.choice(list(INTERPRETERS))
    language = INTERPRETERS[line]
    options = _options(chance, signalled, language)
    signals, to, burst = _signals(chance, language) if signalled else ((), "", False)
    limited = signalled and language == "python" and chance.random() < 0.15
    if limited:  # Slurm's own warning, with the SIGCONT that goes before it
        options, signals = (*options, "--time=1", "--signal=B:USR1@50"), ()
    way = chance.choice(["file", "file", "file", "pipe", "name", "wrap"])
    if way == "wrap":
        line, language = "#!/bin/sh", "shell"
        signals, limited = (), False
        options = tuple(option for option in options if "--signal" not in option)
    waits = bool(signals) or limited
    bare = "--export=NONE" in options
    script = _script(chance, line, language, waits, limited, "--full" in to, bare)
    words = chance.choices(ARGUMENTS, k=chance.randrange(4)) if way in ("file", "name") else []
    return Case(
        seed=seed,
        number=number,
        script=script,
        way=way,
        file=chance.choice(NAMES),
        options=options,
        arguments=tuple(words),
        environment=_environment(chance),
        mask=chance.choice(PEOPLE),
        signals=signals,
        to=to,
        burst=burst,
    )


def _options(chance: Random, signalled: bool, language: str) -> tuple[str, ...]:
    node = chance.choice(["n1", "n2"])
    options = {"--nodelist": f"--nodelist={node}"}
    for group in chance.sample(pieces.OPTIONS, chance.randrange(4)):
        names = [option.partition("=")[0] for option in group]
        if "--array" in names and (signalled or language == "csh"):
            continue  # tasks would write the same files
        if "--chdir" in names and signalled:
            continue  # the runner looks for the script's files in the job's own folder
        options.update(zip(names, group, strict=True))
    return tuple(options.values())


def _signals(chance: Random, language: str) -> tuple[tuple[str, ...], str, bool]:
    """Each signal at most once: Linux merges equal ones that are pending, at its own time.

    A shell's children would die of them, with their PIDs in its messages: only the shell gets them.
    """
    to = chance.choice(["--batch", "--full"]) if language == "python" else "--batch"
    names = chance.sample(SIGNALS, chance.randrange(1, 5))
    return tuple(names), to, chance.random() < 0.6


def _script(
    chance: Random,
    line: str,
    language: str,
    waits: bool,
    limited: bool,
    child: bool,
    bare: bool,
) -> str:
    parts = {"shell": pieces.SHELL, "python": pieces.PYTHON, "csh": pieces.CSH}[language]
    if bare:  # steps have no PATH then, and find the programs of an image alone
        parts = {name: text for name, text in parts.items() if "srun" not in text}
    names = chance.sample(list(parts), chance.randrange(1, 6))
    directive = chance.choice(["", "#SBATCH --comment='of the script'\n", "# no directive\n"])
    text = f"{line}\n{directive}{pieces.BEGIN[language]}"
    if waits:
        notes = pieces.NOTES[language]
        text += notes.format(limited=limited, child=child) if language == "python" else notes
        names = names[:2]
    text += "".join(parts[name] + "\n" for name in names)
    return text + chance.choice(pieces.ENDS[language]) + chance.choice(["\n", ""])


def _environment(chance: Random) -> tuple[tuple[str, str], ...]:
    pairs = chance.sample(pieces.ENVIRONMENT, chance.choice([0, 1, 2, 3, 5]))
    return tuple(dict(pairs).items())
