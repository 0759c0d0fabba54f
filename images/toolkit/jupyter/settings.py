"""How a session's Jupyter server joins its user's settings with what the session needs.

The server's command line (apps/jupyterlab/start.sh) has the values that no file changes; whoever
has set them otherwise is told in the app's log. Dictionaries are merged. For the image's Python.
"""

from __future__ import annotations

import sys

from traitlets.config import loader
from traitlets.config.loader import LazyConfigValue

# What a command line's values are, which the setting itself reads; since traitlets 5.
FromText = getattr(loader, "DeferredConfigString", str)
TOLD = "Slipway: %s in your Jupyter settings is not used in sessions, which need another value\n"


class Fixed(LazyConfigValue):
    """A value that the command line has: says that the user's is another one."""

    def __init__(self, name, value):
        super().__init__()
        self.name, self.fixed = name, value

    def get_value(self, initial):
        """No change: the command line is read after the files."""
        return initial

    def merge_into(self, other):
        """Called with the value of the user's files, if they have one, and of the command line."""
        given = other.get_value(self.fixed) if isinstance(other, LazyConfigValue) else other
        if str(given) != self.fixed:
            tell(self.name)
        return FromText(self.fixed)


class Merged(LazyConfigValue):
    """A dictionary that adds to the user's: `forced` wins over it, and `usual` does not."""

    def __init__(self, name, usual, forced):
        super().__init__()
        self.name, self.usual, self.forced = name, usual, forced

    def get_value(self, initial):
        """The dictionary, with `initial` as the user's."""
        given = initial if isinstance(initial, dict) else {}
        return {**self.usual, **given, **self.forced}

    def merge_into(self, other):
        """Called with the dictionary of the user's files, if they have one."""
        given = other.get_value({}) if isinstance(other, LazyConfigValue) else other
        if not isinstance(given, dict):
            return self
        for key, value in self.forced.items():
            if given.get(key, value) != value:
                tell(f"{self.name}[{key!r}]")
        return self.get_value(given)


def tell(name):
    """Say that a setting is not used; its value may be secret."""
    sys.stderr.write(TOLD % name)


def fixed_by(arguments):
    """Settings in a command line: (class, setting, value)."""
    for argument in arguments:
        option, equals, value = argument.partition("=")
        names = option[2:].split(".")
        if option.startswith("--") and equals and len(names) == 2:
            yield names[0], names[1], value


def join(settings, arguments, merged):
    """Put both kinds into `settings`, the configuration of the file with the highest priority.

    `merged`: (class, setting) of each dictionary, with its usual and its forced part.
    """
    for group, name, value in fixed_by(arguments):
        settings[group][name] = Fixed(f"{group}.{name}", value)
        if name == "hashed_password":  # `jupyter server password` writes it for the class above
            settings["IdentityProvider"][name] = Fixed(f"IdentityProvider.{name}", value)
    for (group, name), (usual, forced) in merged.items():
        settings[group][name] = Merged(f"{group}.{name}", usual, forced)
