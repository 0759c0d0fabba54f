"""The command that keeps a user's id_container: one key, in the portal's folder of their home.

It runs as the user on the login node, with a POSIX shell and OpenSSH's ssh-keygen.
"""

from __future__ import annotations

from portal.core.ssh import KEY_FILE


def make_step(directory: str) -> str:
    """A line of shell that makes the key if there is none; run in the home, with umask 077.

    Of several at once the first one's key counts for all: a link is made whole, and only once.
    """
    key = f"{directory}/{KEY_FILE}"
    keep = f"{{ ln {key}.$$ {key} 2>/dev/null; rm -f {key}.$$; }}"
    return f"[ -s {key} ] || {{ {_make(key)} && {keep}; }}"


def _make(key: str) -> str:
    """Make a key under a name of this shell's own."""
    make = f'ssh-keygen -q -t ed25519 -N "" -C {KEY_FILE} -f {key}.$$ < /dev/null'
    return f"rm -f {key}.$$; {make} && rm -f {key}.$$.pub"


def key_argv(directory: str, new: bool = False) -> list[str]:
    """Print the key, made if need be (or anew), and put it into the homes of all sessions."""
    key = f"{directory}/{KEY_FILE}"
    steps = [
        "cd && umask 077 || exit 1",
        f"mkdir -p {directory} || exit 1",
        f"{_make(key)} && mv -f {key}.$$ {key}" if new else make_step(directory),
        f"[ -s {key} ] || exit 1",
        f"for home in {directory}/sessions/*/home; do",
        f'[ -d "$home" ] && ! cmp -s {key} "$home/{KEY_FILE}" || continue',
        f'cp {key} "$home/.{KEY_FILE}.$$" && mv -f "$home/.{KEY_FILE}.$$" "$home/{KEY_FILE}"',
        "done",
        f"exec cat {key}",
    ]
    return ["/bin/sh", "-c", "\n".join(steps)]
