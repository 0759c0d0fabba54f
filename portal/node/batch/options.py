"""The options of sbatch, srun and salloc, and which words of a command line are options.

Slurm parses its own options; here it only matters whether an option has a value of its own, so that
the script or command is found. The tables have all options of Slurm 22.05 to 26.05.
"""

from __future__ import annotations

from os.path import exists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COMMON = frozenset(
    "account acctg-freq autocomplete bb bbf begin chdir cluster cluster-constraint clusters "
    "comment constraint container container-id container-type context core-spec "
    "cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency "
    "distribution exclude extra extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node "
    "gpus-per-socket gpus-per-task gres gres-flags hint job-name licenses mail-type mail-user "
    "mcs-label mem mem-bind mem-per-cpu mem-per-gpu mem-update mincpus network nodefile "
    "nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket "
    "ntasks-per-tres partition power prefer priority profile qos reservation resources segment "
    "signal sockets-per-node switches tasks-per-node thread-spec threads-per-core time time-min "
    "tmp tres-bind tres-per-task uid wckey".split()
)
"""Options of all three commands that have a value, as the next word or after "="."""

WITH_VALUE = {
    "sbatch": COMMON
    | frozenset(
        "array batch error export export-file input kill-on-invalid-dep open-mode output "
        "wait-all-nodes wrap".split()
    ),
    "srun": COMMON
    | frozenset(
        "accel-bind bcast-exclude cpu-bind cpu_bind epilog error export het-group ignore-signals "
        "input jobid mpi msg-timeout open-mode output pack-group prolog relative slurmd-debug "
        "task-epilog task-prolog threads treewidth wait".split()
    ),
    "salloc": COMMON | frozenset(("wait-all-nodes",)),
}

WITHOUT_VALUE = frozenset(
    "async bcast bell compress consolidate-segments contiguous debugger-test disable-status "
    "exact exclusive external external-launcher get-user-env help hold ignore-pbs immediate "
    "interactive kill-command kill-on-bad-exit label multi-prog nice no-allocate no-bell "
    "no-kill no-requeue no-shell oom-kill-step overcommit overlap oversubscribe parsable "
    "preserve-env propagate pty quiet quit-on-interrupt reboot requeue resv-ports send-libs "
    "spread-job spread-segments stepmgr test-only unbuffered usage use-min-nodes verbose "
    "version wait wait-for-children whole x11".split()
)
"""Options without a value, or with an optional one that only "=" can introduce."""

SHORT_WITH_VALUE = {
    "sbatch": frozenset("ABCDFGJLMNSabcdeimnopqtwx"),
    "srun": frozenset("ABCDFGJLMNSTWbcdeimnopqrtwx"),
    "salloc": frozenset("ABCDFGJLMNSbcdmnpqtwx"),
}

OWN_WITH_VALUE = frozenset(("env-file", "fgpu", "gpu-kind", "image", "mount", "shm"))
OWN_WITHOUT_VALUE = frozenset(("dry-run",))


class CommandLine:
    """A command line, divided: our options, Slurm's options, and the script or command."""

    __slots__ = ("chdir", "command", "options", "own", "values", "wrap")

    def __init__(self) -> None:
        self.own: list[tuple[str, str]] = []
        """Our options and their values, in their order."""
        self.options: list[str] = []
        """Slurm's options, unchanged."""
        self.command: list[str] = []
        """The script or command with its arguments."""
        self.wrap: int | None = None
        """Where in `options` the word with the value of --wrap is."""
        self.chdir = ""
        self.values: dict[str, str] = {}
        """The last value of each of Slurm's long options that has one."""


class OptionError(Exception):
    """An option of ours is wrong; the text begins with its name."""


def parse(name: str, words: Sequence[str]) -> CommandLine:
    """Divide the words after the command `name`; raises OptionError."""
    found = CommandLine()
    place = 0
    while place < len(words):
        word = words[place]
        if word == "--":
            found.options.append(word)
            place += 1
            break
        if word == ":":  # the next component of a heterogeneous job
            found.options.append(word)
            place += 1
        elif word.startswith("--"):
            place = _long(name, words, place, found)
        elif word.startswith("-") and len(word) > 1:
            place = _short(name, words, place, found)
        else:
            break
    found.command = list(words[place:])
    return found


def _long(name: str, words: Sequence[str], place: int, found: CommandLine) -> int:
    option, equals, value = words[place][2:].partition("=")
    if option in OWN_WITHOUT_VALUE:
        if equals:
            raise OptionError(f"--{option}: it has no value")
        found.own.append((option, ""))
        return place + 1
    if option in OWN_WITH_VALUE:
        if not equals:
            if place + 1 == len(words):
                raise OptionError(f"--{option}: it needs a value")
            value = words[place + 1]
        found.own.append((option, value))
        return place + (1 if equals else 2)
    found.options.append(words[place])
    full = completed(name, option)
    known = full in WITH_VALUE[name] or full in WITHOUT_VALUE
    if not equals and (full in WITH_VALUE[name] or (not known and _is_value(words, place + 1))):
        place += 1
        if place == len(words):
            return place  # its value is missing, as Slurm will say
        value = words[place]
        found.options.append(value)
    _note(full, value, found)
    return place + 1


def _is_value(words: Sequence[str], place: int) -> bool:
    """Whether a word after an option that a newer Slurm may have is probably its value."""
    return place < len(words) and not words[place].startswith("-") and not exists(words[place])


def _short(name: str, words: Sequence[str], place: int, found: CommandLine) -> int:
    """A word such as "-n4", "-n" with "4" after it, or "-Hn4"."""
    word = words[place]
    found.options.append(word)
    for position, letter in enumerate(word[1:], 1):
        if letter in SHORT_WITH_VALUE[name]:
            value = word[position + 1 :]
            if not value:
                place += 1
                if place < len(words):
                    value = words[place]
                    found.options.append(value)
            _note({"D": "chdir", "J": "job-name"}.get(letter, ""), value, found)
            break
        if letter in "kIK":  # the rest of the word is the optional value
            break
    return place + 1


def _note(option: str, value: str, found: CommandLine) -> None:
    if option == "wrap":
        found.wrap = len(found.options) - 1
    elif option == "chdir":
        found.chdir = value
    if option:
        found.values[option] = value


def completed(name: str, option: str) -> str:
    """The full name of an option, which getopt lets people abbreviate."""
    known = WITH_VALUE[name] | WITHOUT_VALUE
    if option in known:
        return option
    fitting = [full for full in known if full.startswith(option)]
    return fitting[0] if len(fitting) == 1 else option
