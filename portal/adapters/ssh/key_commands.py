"""Commands that manage a user's SSH key for sessions, in the portal's folder of their home.

DIRECTORY/key/id_container      the private key: the user downloads it; not shown to sessions
DIRECTORY/key/own/ID.pub        public keys that the user added
DIRECTORY/ssh/authorized_keys   all public keys, shown to all sessions of the user, read-only
DIRECTORY/ssh/renewed           the key was renewed and the new one has not been downloaded yet

All run as the user on the login node, with a POSIX shell and OpenSSH's ssh-keygen.
"""

from __future__ import annotations

import shlex

from portal.adapters.ssh.shell.home import ENTER
from portal.core.apps.ssh import KEY_FILE, KEY_FOLDER

ADDED = "own"
"""Folder of added public keys, next to id_container."""


def make_step(directory: str) -> str:
    """A shell line that creates the key if it is missing; run in the home, with umask 077.

    If several run concurrently, all use the key that was linked first: ln(1) is atomic.
    """
    key = _key(directory)
    keep = f"{{ ln {key}.$$ {key} 2>/dev/null; rm -f {key}.$$; }}"
    create = f"{{ [ -s {key} ] || {{ {_make(key)} && {keep}; }}; }}"
    steps = (_folders(directory), _renew(directory), create, _publish(directory))
    return f"{{ {' && '.join(steps)}; }}"


def key_argv(directory: str, new: bool = False) -> list[str]:
    """Print the private key, created if missing (or replaced), once sessions accept it."""
    key, renewed = _key(directory), f"{directory}/ssh/renewed"
    # The old key may be compromised, so it is revoked before the new one is valid.
    revoke = f"rm -f {directory}/ssh/authorized_keys"
    replace = f"{_folders(directory)} && {_renew(directory)} && {_make(key)} && {revoke}"
    steps = [
        ENTER,
        "umask 077",
        f"{replace} && mv -f {key}.$$ {key} && {_publish(directory)} || exit 1"
        if new
        else f"{make_step(directory)} || exit 1",
        f"cat {key} && rm -f {renewed}",
    ]
    return ["/bin/sh", "-c", "\n".join(steps)]


def list_argv(directory: str) -> list[str]:
    """Print the public keys that the user added."""
    script = f"{ENTER}\nfor key in {_added(directory)}; do [ ! -f $key ] || head -c 5000 $key; done"
    return ["/bin/sh", "-c", script]


def add_argv(directory: str, name: str, line: str) -> list[str]:
    """Make sessions accept one more public key; `name` is its id. Idempotent."""
    file = f"{directory}/{KEY_FOLDER}/{ADDED}/{name}.pub"
    steps = [
        ENTER,
        "umask 077",
        f"{_folders(directory)} && mkdir -p {directory}/{KEY_FOLDER}/{ADDED} || exit 1",
        f"printf '%s\\n' {shlex.quote(line)} > {file}.$$ && mv -f {file}.$$ {file} || exit 1",
        make_step(directory),
    ]
    return ["/bin/sh", "-c", "\n".join(steps)]


def remove_argv(directory: str, name: str) -> list[str]:
    """Make sessions refuse a public key that the user added. Idempotent."""
    steps = [
        ENTER,
        "umask 077",
        f"rm -f {directory}/{KEY_FOLDER}/{ADDED}/{name}.pub || exit 1",
        make_step(directory),
    ]
    return ["/bin/sh", "-c", "\n".join(steps)]


def _added(directory: str) -> str:
    return f"{directory}/{KEY_FOLDER}/{ADDED}/*.pub"


def _key(directory: str) -> str:
    return f"{directory}/{KEY_FOLDER}/{KEY_FILE}"


def _folders(directory: str) -> str:
    folders = f"{directory}/{KEY_FOLDER} {directory}/ssh"
    return f"mkdir -p {folders} && chmod 700 {directory} {folders}"


def _make(key: str) -> str:
    """Create a key under a name with this shell's PID."""
    make = f'ssh-keygen -q -t ed25519 -N "" -C {KEY_FILE} -f {key}.$$ < /dev/null'
    return f"{{ rm -f {key}.$$; {make} && rm -f {key}.$$.pub; }}"


def _renew(directory: str) -> str:
    """Replace a key of an earlier release, which was copied into sessions' homes.

    The key is deleted last, so that all steps are repeated after a crash.
    """
    old = f"{directory}/{KEY_FILE}"
    copies = f"{directory}/sessions/*/home/{KEY_FILE}"
    remove = f": > {directory}/ssh/renewed && rm -f {copies} && rm -f {old}"
    return f"{{ [ ! -e {old} ] || {{ {remove}; }}; }}"


def _publish(directory: str) -> str:
    """Make sessions accept exactly this key and the keys that the user added.

    The key is read again after writing, so that the last writer has read the current key even if
    two processes renew it concurrently, or one was interrupted.
    """
    public_key = f"$(ssh-keygen -y -P '' -f {_key(directory)} < /dev/null)"
    added_keys = f"$(cat {_added(directory)} 2>/dev/null)"
    authorized = f"{directory}/ssh/authorized_keys"
    write = (
        f'printf "%s\\n" "$public" > {authorized}.$$ && mv -f {authorized}.$$ {authorized} || break'
    )
    return (
        "{ published=no; for try in 1 2 3 4 5 6 7 8; do "
        f'public={public_key} && [ -n "$public" ] || break; '
        f'own={added_keys}; [ -z "$own" ] || public=$(printf "%s\\n%s" "$public" "$own"); '
        f'[ "$(cat {authorized} 2>/dev/null)" != "$public" ] || {{ published=yes; break; }}; '
        f'{write}; done; [ "$published" = yes ]; }}'
    )
