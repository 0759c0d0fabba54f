"""Starts a Python kernel without TCP ports, or not at all.

server.py replaces `python -m ipykernel_launcher ARGUMENT…` by `python kernel.py ARGUMENT…`. It runs
in the kernel's own Python, so it is plain Python 3.7 and imports little.

All users on the node can connect to a TCP port on 127.0.0.1. The channels of a kernel already are
unix sockets. What is left is ipykernel's pipe for forked children, which becomes one as well, and
its debugger, which supports only TCP, without a password, and is disabled.
"""

import atexit
import os
import runpy
import shutil
import socket
import stat
import sys
import tempfile

REASON = (
    "Slipway: this kernel does not start, since it would listen on TCP port %s, "
    "where everybody on this node could reach it.\n"
)


def tcp_ports():
    """The TCP ports that this process listens on."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if not stat.S_ISSOCK(os.stat("/proc/self/fd/" + name).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as one:
                if one.family in (socket.AF_INET, socket.AF_INET6) and one.getsockopt(
                    socket.SOL_SOCKET, socket.SO_ACCEPTCONN
                ):
                    found.append(one.getsockname()[1])
        except OSError:
            continue
    return sorted(found)


def no_debugger():
    """Make debugpy appear not to be installed."""
    sys.modules.setdefault("debugpy", None)
    for name in ("ipykernel.debugger", "ipykernel.ipkernel"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "_is_debugpy_available"):
            module._is_debugpy_available = False


def folder_for_sockets():
    """A folder that other users cannot access."""
    folder = os.environ.get("JUPYTER_RUNTIME_DIR", "")
    if folder and len(folder) < 80 and os.path.isdir(folder):
        return folder
    folder = tempfile.mkdtemp(prefix="kernel-")
    parent = os.getpid()
    # Not by a forked child of the kernel, which runs the same exit handlers.
    atexit.register(lambda: os.getpid() == parent and shutil.rmtree(folder, ignore_errors=True))
    return folder


def pipe_by_unix_socket():
    """Transport the output of forked children over a unix socket."""
    import zmq  # noqa: PLC0415 - the check below must work without it
    from ipykernel.iostream import IOPubThread  # noqa: PLC0415
    from zmq.eventloop.zmqstream import ZMQStream  # noqa: PLC0415

    address = f"ipc://{folder_for_sockets()}/pipe-{os.getpid()}"

    def receive_from_children(self):
        self._pipe_uuid = os.urandom(16)
        receiver = self.socket.context.socket(zmq.PULL)
        receiver.linger = 0
        receiver.bind(address)
        self._pipe_in = ZMQStream(receiver, self.io_loop)
        self._pipe_in.on_recv(self._handle_pipe_msg)

    def send_to_parent(_self):
        context = zmq.Context()
        sender = context.socket(zmq.PUSH)
        sender.linger = 3000
        sender.connect(address)
        return context, sender

    IOPubThread._setup_pipe_in = receive_from_children
    IOPubThread._setup_pipe_out = send_to_parent


def check_before_it_serves():
    """End the kernel if, whatever other settings say, it listens on TCP when it is set up."""
    from ipykernel.kernelapp import IPKernelApp  # noqa: PLC0415

    start = IPKernelApp.start
    stderr = os.dup(2)  # ipykernel replaces descriptor 2

    def checked(self, *arguments, **options):
        ports = tcp_ports() if self.subapp is None else []
        if ports:
            os.write(stderr, (REASON % ", ".join(map(str, ports))).encode())
            os._exit(1)
        os.close(stderr)
        return start(self, *arguments, **options)

    IPKernelApp.start = checked


def guard():
    """Apply all of the above, once."""
    import ipykernel.kernelapp  # noqa: PLC0415

    if not hasattr(ipykernel.kernelapp, "_slipway"):
        ipykernel.kernelapp._slipway = True
        no_debugger()
        pipe_by_unix_socket()
        check_before_it_serves()


if __name__ == "__main__":
    if sys.path and os.path.realpath(sys.path[0] or ".") == os.path.dirname(
        os.path.realpath(__file__)
    ):
        del sys.path[0]
    sys.modules.setdefault("debugpy", None)
    guard()
    runpy.run_module("ipykernel_launcher", run_name="__main__", alter_sys=True)
