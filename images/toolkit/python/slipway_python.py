"""What every Python of a session does at its start.

- Kernels get unix sockets, whichever program starts them: nbconvert, papermill, `jupyter console`.
  Their usual TCP ports are open to every user of the node, and ../jupyter/kernel.py refuses them.
- pip says so if what it installs ends with the session.

This runs in the image's, the user's and old Pythons: plain syntax, few imports, and no failure.
"""

import os
import sys

MANAGER = "jupyter_client.manager"
ROOM = 90  # characters of a path that leave some for the sockets' numbers (107 in all)
ENDS = (
    "Slipway: these packages end with this session, since no folder is mounted that is yours alone"
    " to write to. Launch with one, and they are there again next time."
)


class Finder(object):  # noqa: UP004 - also for Python 2
    """Changes jupyter_client as it is imported."""

    busy = False

    def find_spec(self, name, path=None, target=None):
        """The module's usual specification, with a loader that calls unix_sockets()."""
        if name != MANAGER or self.busy:
            return None
        from importlib.util import find_spec  # noqa: PLC0415

        self.busy = True
        try:
            spec = find_spec(name)
        finally:
            self.busy = False
        if spec is not None and hasattr(spec.loader, "exec_module"):
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                unix_sockets(module.KernelManager)

            spec.loader.exec_module = exec_module
        return spec


def unix_sockets(manager):
    """Make kernels of this class of jupyter_client's communicate over unix sockets."""
    begin, write = manager.__init__, manager.write_connection_file

    def __init__(self, *arguments, **options):  # noqa: N807 - it becomes a method
        begin(self, *arguments, **options)
        self.transport = "ipc"

    def write_connection_file(self, *arguments, **options):
        self.transport = "ipc"
        self.connection_file = private(self.connection_file)
        self.ip = os.path.splitext(self.connection_file)[0] + "-ipc"
        return write(self, *arguments, **options)

    manager.__init__, manager.write_connection_file = __init__, write_connection_file


def private(path):
    """An absolute path of a connection file, in a folder of the user's and short enough."""
    from jupyter_core.paths import jupyter_runtime_dir  # noqa: PLC0415

    if os.path.isabs(path) and len(path) < ROOM:
        return path
    import tempfile  # noqa: PLC0415
    import uuid  # noqa: PLC0415

    folder = jupyter_runtime_dir()
    if len(folder) > ROOM - 44:
        folder = tempfile.mkdtemp(prefix="kernel-")
    if not os.path.isdir(folder):
        os.makedirs(folder, 0o700)
    return os.path.join(folder, os.path.basename(path) or "kernel-%s.json" % uuid.uuid4())  # noqa: UP031


def announce_end():
    """Have `pip install` say that its packages end with the session."""
    with open("/proc/self/cmdline", "rb") as file:
        words = [
            os.path.basename(word) for word in file.read().decode("utf-8", "replace").split("\0")
        ]
    if "install" in words and any(word.startswith("pip") and word[3:4] in "3" for word in words):
        import atexit  # noqa: PLC0415

        atexit.register(lambda: sys.stderr.write(ENDS + "\n"))


if sys.version_info >= (3, 5):  # noqa: UP036 - images have old Pythons
    sys.meta_path.insert(0, Finder())
    if os.environ.get("SLIPWAY_PACKAGES") == "session":
        announce_end()
