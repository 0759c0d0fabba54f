"""Splits and checks the script's arguments and typed options of sbatch."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

MAX_WORDS = 100
MAX_OPTIONS = 8192
"""Characters of all options together, or of one line of a script with options."""
_TOO_MANY = f"use up to {MAX_WORDS} words with {MAX_OPTIONS:,} characters in total"

REFUSED = {
    "wrap": "the script is what is submitted",
    "parsable": "Slipway reads sbatch's answer itself",
    "wait": "Slipway does not wait for the end of a job",
    "quiet": "it hides the number of the job",
    "test-only": "use Check instead",
    "version": "nothing would be submitted",
    "help": "nothing would be submitted",
    "usage": "nothing would be submitted",
    "dry-run": "use Show the command instead",
}
"""Options that would prevent the submission, or the parsing of its job id."""
_REFUSED_LETTERS = {"W": "wait", "Q": "quiet", "V": "version", "h": "help"}

WITHOUT_VALUE = frozenset(
    "bell consolidate-segments contiguous debugger-test exclusive external get-user-env hold "
    "ignore-pbs immediate kill-command nice no-bell no-kill no-requeue oom-kill-step overcommit "
    "oversubscribe propagate reboot requeue resv-ports spread-job spread-segments stepmgr "
    "use-min-nodes verbose x11".split()
)
"""Options without a value or with an optional one, which is never the next word."""
LETTERS_WITH_VALUE = frozenset("ABCDFGJLMNSabcdeimnopqtwx")
_LETTERS_WITH_OPTIONAL_VALUE = frozenset("IKk")

ONCE = {"account": "A", "qos": "q", "reservation": "", "constraint": "C"}
"""Options that must not be both typed and set in their field, with their letters: the field would
show a value that sbatch does not use."""


def divide(text: str) -> list[str]:
    """Split a line into words as a shell would; raises ValueError with a message for users."""
    if len(text) > MAX_OPTIONS:  # shlex takes seconds for a word of some 100 KB
        raise ValueError(_TOO_MANY)
    try:
        return shlex.split(text, comments=False)
    except ValueError:
        raise ValueError("a quotation mark or backslash is not closed") from None


def check_arguments(words: Sequence[str]) -> tuple[str, ...]:
    """The arguments of a script; raises ValueError with a message for users."""
    _check_words(words)
    return tuple(words)


def _check_words(words: Sequence[str]) -> None:
    if len(words) > MAX_WORDS or sum(map(len, words)) > MAX_OPTIONS:
        raise ValueError(_TOO_MANY)
    if not all(map(str.isprintable, words)):
        raise ValueError("use printable characters, in one line")


def check_options(words: Sequence[str]) -> tuple[str, ...]:
    """The options, each as one word; raises ValueError with a message for users.

    An option and its value are joined, so that sbatch takes no word for the name of a script.
    """
    _check_words(words)
    joined = []
    following = iter(words)
    for word in following:
        if word in ("-", "--", ":") or not word.startswith("-"):
            raise ValueError(f"{_shown(word)} is not an option: the script is entered above")
        joined.append(_long(word, following) if word.startswith("--") else _short(word, following))
    return tuple(joined)


def check_not_twice(words: Iterable[str], filled: Iterable[str]) -> None:
    """Refuse typed options whose field is filled; raises ValueError with a message for users.

    `words` come from `check_options`: each is an option with its value.
    """
    typed = [_option_of(word) for word in words]
    for name in filled:
        # sbatch accepts abbreviated names.
        if any(option == ONCE[name] or _begins(option, name) for option in typed if option):
            raise ValueError(f"--{name} has a field of its own, which is filled: use one of them")


def _begins(option: str, name: str) -> bool:
    return len(option) > 1 and name.startswith(option)


def _option_of(word: str) -> str:
    """The name of an option, or the letter of that with a value, as A in -HAproject."""
    if word.startswith("--"):
        return word[2:].partition("=")[0]
    return next((letter for letter in word[1:] if letter in LETTERS_WITH_VALUE), "")


def _long(word: str, following: Iterator[str]) -> str:
    name, equals, _ = word[2:].partition("=")
    _refuse(name)
    if equals or name in WITHOUT_VALUE:
        return word
    return f"{word}={_value(word, following)}"


def _short(word: str, following: Iterator[str]) -> str:
    for position, letter in enumerate(word[1:], 2):
        if letter in _REFUSED_LETTERS:
            _refuse(_REFUSED_LETTERS[letter])
        if letter in LETTERS_WITH_VALUE:
            return word if word[position:] else f"{word}{_value(word, following)}"
        if letter in _LETTERS_WITH_OPTIONAL_VALUE:
            return word
    return word


def _value(option: str, following: Iterator[str]) -> str:
    value = next(following, None)
    if value is None:
        raise ValueError(f"{_shown(option)} needs a value")
    return value


def _refuse(name: str) -> None:
    """Refuse an option by its name or an abbreviation, which sbatch accepts."""
    match = next((full for full in REFUSED if name and full.startswith(name)), None)
    if match is not None:
        raise ValueError(f"--{match} is not possible here: {REFUSED[match]}")


def _shown(word: str) -> str:
    return word if len(word) <= 40 else f"{word[:39]}…"


def check_directives(script: str) -> None:
    """Refuse the same options in #SBATCH lines; raises ValueError with a message for users.

    Only in lines that sbatch reads: up to the first one that is neither empty nor a comment. Other
    errors in them are left to sbatch.
    """
    for number, line in enumerate(script.split("\n"), 1):
        text = line.strip()
        if text and not text.startswith("#"):
            return
        if not line.startswith("#SBATCH"):
            continue
        try:
            for word in _directive(line):
                _refuse_word(word)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None


def _directive(line: str) -> Iterable[str]:
    if len(line) > MAX_OPTIONS:
        raise ValueError(f"use up to {MAX_OPTIONS:,} characters in one line of options")
    try:
        return shlex.split(line.removeprefix("#SBATCH"), comments=True)
    except ValueError:
        return ()  # sbatch's message names the line


def _refuse_word(word: str) -> None:
    if word.startswith("--"):
        _refuse(word[2:].partition("=")[0])
    elif word.startswith("-"):
        _short(word, iter(("",)))
