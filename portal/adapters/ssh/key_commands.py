"""The commands that keep a user's SSH key for sessions, in the portal's folder of their home.

DIRECTORY/key/id_container      the private key: the user downloads it, no session ever sees it
DIRECTORY/ssh/authorized_keys   its public half, shown to all sessions of the user, read-only
DIRECTORY/ssh/renewed           the key was renewed and the new one has not been fetched yet

All run as the user on the login node, with a POSIX shell and OpenSSH's ssh-keygen.
"""

from __future__ import annotations

from portal.core.apps.ssh import KEY_FILE, KEY_FOLDER


def make_step(directory: str) -> str:
    """A line of shell that makes the key if there is none; run in the home, with umask 077.

    Of several at once the first one's key counts for all: a link is made whole, and only once.
    """
    key = _key(directory)
    keep = f"{{ ln {key}.$$ {key} 2>/dev/null; rm -f {key}.$$; }}"
    made = f"{{ [ -s {key} ] || {{ {_make(key)} && {keep}; }}; }}"
    return f"{{ {_folders(directory)} && {_renew(directory)} && {made} && {_publish(directory)}; }}"


def key_argv(directory: str, new: bool = False) -> list[str]:
    """Print the private key, made if need be (or anew), once sessions take it."""
    key, renewed = _key(directory), f"{directory}/ssh/renewed"
    # Somebody else may have the old key: nobody gets in until the new one counts.
    shut = f"rm -f {directory}/ssh/authorized_keys"
    anew = f"{_folders(directory)} && {_renew(directory)} && {_make(key)} && {shut}"
    steps = [
        "cd && umask 077 || exit 1",
        f"{anew} && mv -f {key}.$$ {key} && {_publish(directory)} || exit 1"
        if new
        else f"{make_step(directory)} || exit 1",
        f"cat {key} && rm -f {renewed}",
    ]
    return ["/bin/sh", "-c", "\n".join(steps)]


def _key(directory: str) -> str:
    return f"{directory}/{KEY_FOLDER}/{KEY_FILE}"


def _folders(directory: str) -> str:
    folders = f"{directory}/{KEY_FOLDER} {directory}/ssh"
    return f"mkdir -p {folders} && chmod 700 {directory} {folders}"


def _make(key: str) -> str:
    """Make a key under a name of this shell's own."""
    make = f'ssh-keygen -q -t ed25519 -N "" -C {KEY_FILE} -f {key}.$$ < /dev/null'
    return f"{{ rm -f {key}.$$; {make} && rm -f {key}.$$.pub; }}"


def _renew(directory: str) -> str:
    """Do away with a key of an earlier version, copies of which lay in the homes of sessions.

    It is removed last: a crash before that repeats all of this.
    """
    old = f"{directory}/{KEY_FILE}"
    copies = f"{directory}/sessions/*/home/{KEY_FILE}"
    remove = f": > {directory}/ssh/renewed && rm -f {copies} && rm -f {old}"
    return f"{{ [ ! -e {old} ] || {{ {remove}; }}; }}"


def _publish(directory: str) -> str:
    """Let sessions take the key, and no other.

    It looks again after it has written: whoever writes last has then seen the key that counts,
    also where two renew it at once, or one was cut short before.
    """
    ours = f"$(ssh-keygen -y -P '' -f {_key(directory)} < /dev/null)"
    known = f"{directory}/ssh/authorized_keys"
    write = f'printf "%s\\n" "$public" > {known}.$$ && mv -f {known}.$$ {known} || break'
    return (
        "{ published=no; for try in 1 2 3 4 5 6 7 8; do "
        f'public={ours} && [ -n "$public" ] || break; '
        f'[ "$(cat {known} 2>/dev/null)" != "$public" ] || {{ published=yes; break; }}; '
        f'{write}; done; [ "$published" = yes ]; }}'
    )
