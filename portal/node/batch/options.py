"""The options of sbatch, srun and salloc, and which words of a command line are options.

Slurm parses its own options; here it only matters whether an option takes the next word as its
value, to find the script or command. The tables have all options of Slurm 22.05 to 26.05.
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

SLIPWAY_WITH_VALUE = frozenset(("env-file", "fgpu", "gpu-kind", "image", "mount", "shm"))
SLIPWAY_WITHOUT_VALUE = frozenset(("dry-run",))


class CommandLine:
    """A parsed command line: Slipway's options, Slurm's options, and the script or command."""

    __slots__ = ("chdir", "command", "options", "slipway_options", "values", "wrap")

    def __init__(self) -> None:
        self.slipway_options: list[tuple[str, str]] = []
        """Slipway's options and their values, in order."""
        self.options: list[str] = []
        """Slurm's options, unchanged."""
        self.command: list[str] = []
        """The script or command with its arguments."""
        self.wrap: int | None = None
        """Index in `options` of the word with the value of --wrap."""
        self.chdir = ""
        self.values: dict[str, str] = {}
        """The last value of each long option of Slurm."""


class OptionError(Exception):
    """One of Slipway's options is wrong; the text begins with its name."""


def parse(name: str, words: Sequence[str]) -> CommandLine:
    """Parse the words after the command `name`; raises OptionError."""
    line = CommandLine()
    index = 0
    while index < len(words):
        word = words[index]
        if word == "--":
            line.options.append(word)
            index += 1
            break
        if word == ":":  # the next component of a heterogeneous job
            line.options.append(word)
            index += 1
        elif word.startswith("--"):
            index = _long(name, words, index, line)
        elif word.startswith("-") and len(word) > 1:
            index = _short(name, words, index, line)
        else:
            break
    line.command = list(words[index:])
    return line


def _long(name: str, words: Sequence[str], index: int, line: CommandLine) -> int:
    option, equals, value = words[index][2:].partition("=")
    if option in SLIPWAY_WITHOUT_VALUE:
        if equals:
            raise OptionError(f"--{option}: it has no value")
        line.slipway_options.append((option, ""))
        return index + 1
    if option in SLIPWAY_WITH_VALUE:
        if not equals:
            if index + 1 == len(words):
                raise OptionError(f"--{option}: it needs a value")
            value = words[index + 1]
        line.slipway_options.append((option, value))
        return index + (1 if equals else 2)
    line.options.append(words[index])
    full = completed(name, option)
    is_known = full in WITH_VALUE[name] or full in WITHOUT_VALUE
    if not equals and (full in WITH_VALUE[name] or (not is_known and _is_value(words, index + 1))):
        index += 1
        if index == len(words):
            return index  # its value is missing, as Slurm will say
        value = words[index]
        line.options.append(value)
    _note(full, value, line)
    return index + 1


def _is_value(words: Sequence[str], index: int) -> bool:
    """Whether a word after an option that a newer Slurm may have is probably its value."""
    return index < len(words) and not words[index].startswith("-") and not exists(words[index])


def _short(name: str, words: Sequence[str], index: int, line: CommandLine) -> int:
    """A word such as "-n4", "-n" with "4" after it, or "-Hn4"."""
    word = words[index]
    line.options.append(word)
    for position, letter in enumerate(word[1:], 1):
        if letter in SHORT_WITH_VALUE[name]:
            value = word[position + 1 :]
            if not value:
                index += 1
                if index < len(words):
                    value = words[index]
                    line.options.append(value)
            _note({"D": "chdir", "J": "job-name"}.get(letter, ""), value, line)
            break
        if letter in "kIK":  # the rest of the word is the optional value
            break
    return index + 1


def _note(option: str, value: str, line: CommandLine) -> None:
    if option == "wrap":
        line.wrap = len(line.options) - 1
    elif option == "chdir":
        line.chdir = value
    if option:
        line.values[option] = value


def completed(name: str, option: str) -> str:
    """The full name of an option, which getopt lets people abbreviate."""
    names = WITH_VALUE[name] | WITHOUT_VALUE
    if option in names:
        return option
    matches = [full for full in names if full.startswith(option)]
    return matches[0] if len(matches) == 1 else option
