#!/bin/sh
# JupyterLab and Notebook on one unix socket. Only the gateway reaches it, so it asks for no password.
export JUPYTER_RUNTIME_DIR="$SLIPWAY_RUN/runtime"
mkdir -p -m 700 "$JUPYTER_RUNTIME_DIR"
export SHELL="$(command -v bash || echo /bin/sh)"
export TERMINFO_DIRS=":$SLIPWAY_TOOLKIT/share/terminfo"

# Nobody is asked for newsletters at every new session; the user's own settings still win.
export JUPYTER_CONFIG_PATH="$SLIPWAY_RUN/config${JUPYTER_CONFIG_PATH:+:$JUPYTER_CONFIG_PATH}"
mkdir -p "$SLIPWAY_RUN/config/labconfig"
cat > "$SLIPWAY_RUN/config/labconfig/default_setting_overrides.json" <<'JSON'
{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}
JSON

# Kernels must not listen on TCP, where every neighbour on the node could connect: their channels are
# unix sockets (transport below), and so becomes ipykernel's pipe for forked children. Its debugger
# can only do TCP, without any password, so it is off.
profile="${IPYTHONDIR:-$HOME/.ipython}/profile_default"
mkdir -p "$profile"
[ -e "$profile/ipython_kernel_config.py" ] || cat > "$profile/ipython_kernel_config.py" <<'PYTHON'
# Written by Slipway: no TCP port of a kernel on the shared node.
import os
import sys

sys.modules.setdefault("debugpy", None)
try:
    import zmq
    from ipykernel.iostream import IOPubThread
    from zmq.eventloop.zmqstream import ZMQStream

    ADDRESS = "ipc://%s/pipe-%d" % (os.environ["JUPYTER_RUNTIME_DIR"], os.getpid())

    def receive_from_children(self):
        self._pipe_uuid = os.urandom(16)
        receiver = self.socket.context.socket(zmq.PULL)
        receiver.linger = 0
        receiver.bind(ADDRESS)
        self._pipe_in = ZMQStream(receiver, self.io_loop)
        self._pipe_in.on_recv(self._handle_pipe_msg)

    def send_to_parent(self):
        context = zmq.Context()
        sender = context.socket(zmq.PUSH)
        sender.linger = 3000
        sender.connect(ADDRESS)
        return context, sender

    IOPubThread._setup_pipe_in = receive_from_children
    IOPubThread._setup_pipe_out = send_to_parent
except (ImportError, KeyError):
    pass
PYTHON

# No trash: it would be in the session's own home, to which whole mounted folders would be copied, to be
# lost with it at the end. So what is deleted is gone, and Jupyter says that before.
# No pings on WebSockets: they would look like use, and TCP itself finds out who is gone.
# Terminals in JupyterLab are no login shells: /etc/profile of many an image would forget its PATH.
exec jupyter-lab \
    --ServerApp.sock="$SLIPWAY_SOCKET" --ServerApp.sock_mode=0600 \
    --IdentityProvider.token= --ServerApp.password= \
    --ServerApp.allow_remote_access=True --ServerApp.trust_xheaders=True \
    --ServerApp.root_dir="$HOME" --ServerApp.open_browser=False \
    --Application.log_level=ERROR --ServerApp.quit_button=False \
    --ServerApp.jpserver_extensions="{'jupyter_lsp': False}" \
    --ServerApp.tornado_settings="{'ws_ping_interval': 0}" \
    --ServerApp.terminado_settings="{'shell_command': ['$SHELL']}" \
    --KernelManager.transport=ipc --FileContentsManager.delete_to_trash=False \
    --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LabApp.news_url=None \
    --LabApp.extension_manager=readonly
