#!/bin/sh
# JupyterLab and Notebook on one unix socket. Only the gateway reaches it, so it asks for no password.
export JUPYTER_RUNTIME_DIR="$SLIPWAY_RUN/runtime"
mkdir -p -m 700 "$JUPYTER_RUNTIME_DIR"
export SHELL="$(command -v bash || echo /bin/sh)"
export TERMINFO_DIRS=":$SLIPWAY_TOOLKIT/share/terminfo"

# Kernels must not listen on TCP, where every neighbour on the node could connect. What sees to that
# (images/toolkit/jupyter) is read-only, and asked for on the command line below, which no variable and
# no file of settings overrides. Nobody is asked for newsletters either.
jupyter="$SLIPWAY_TOOLKIT/jupyter"
export JUPYTER_CONFIG_PATH="$jupyter/config${JUPYTER_CONFIG_PATH:+:$JUPYTER_CONFIG_PATH}"
unset JUPYTER_NO_CONFIG JUPYTER_PREFER_ENV_PATH

# Kernels that come to ipykernel by a way of their own find the same here.
profile="${IPYTHONDIR:-$HOME/.ipython}/profile_default"
if [ ! -e "$profile/ipython_kernel_config.py" ] && mkdir -p "$profile" 2>/dev/null; then
    cat > "$profile/ipython_kernel_config.py" <<PYTHON
# Written by Slipway: no TCP port of a kernel on the shared node.
import runpy

runpy.run_path("$jupyter/kernel.py", run_name="slipway_kernel")["guard"]()
PYTHON
fi

# No trash: it would be in the session's own home, to which whole mounted folders would be copied, to be
# lost with it at the end. So what is deleted is gone, and Jupyter says that before.
# No secret of Jupyter's in the home, which people serve and share: it signs notebooks elsewhere.
# No pings on WebSockets: they would look like use, and TCP itself finds out who is gone.
# The port is the one that counts as none beside a socket, whatever else names one.
# Terminals in JupyterLab are no login shells: /etc/profile of many an image would forget its PATH.
exec jupyter-lab \
    --ServerApp.sock="$SLIPWAY_SOCKET" --ServerApp.sock_mode=0600 --ServerApp.port=8888 \
    --IdentityProvider.token= --ServerApp.password= \
    --ServerApp.allow_remote_access=True --ServerApp.trust_xheaders=True \
    --ServerApp.root_dir="$HOME" --ServerApp.open_browser=False \
    --Application.log_level=ERROR --ServerApp.quit_button=False \
    --ServerApp.jpserver_extensions="{'jupyter_lsp': False}" \
    --ServerApp.tornado_settings="{'ws_ping_interval': 0}" \
    --ServerApp.terminado_settings="{'shell_command': ['$SHELL']}" \
    --ServerApp.kernel_manager_class=jupyter_server.services.kernels.kernelmanager.AsyncMappingKernelManager \
    --AsyncMappingKernelManager.kernel_manager_class=slipway_jupyter.KernelManager \
    --KernelManager.transport=ipc \
    --NotebookNotary.secret_file="$SLIPWAY_RUN/notebook_secret" \
    --NotebookNotary.db_file="$SLIPWAY_RUN/nbsignatures.db" \
    --FileContentsManager.delete_to_trash=False --LargeFileManager.delete_to_trash=False \
    --AsyncLargeFileManager.delete_to_trash=False \
    --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LabApp.news_url=None \
    --LabApp.extension_manager=readonly
