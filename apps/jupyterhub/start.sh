#!/bin/sh
# JupyterHub's server on a unix socket, which only the gateway can reach; it asks JupyterHub who its users
# are. What differs from apps/jupyterlab/start.sh, where the options are explained, is the address alone.
export JUPYTER_RUNTIME_DIR="$SLIPWAY_RUN/runtime"
mkdir -p -m 700 "$JUPYTER_RUNTIME_DIR"
export SHELL="$(command -v bash || echo /bin/sh)"
export TERMINFO_DIRS=":$SLIPWAY_TOOLKIT/share/terminfo"
jupyter="$SLIPWAY_TOOLKIT/jupyter"
export JUPYTER_CONFIG_PATH="$jupyter/config${JUPYTER_CONFIG_PATH:+:$JUPYTER_CONFIG_PATH}"
unset JUPYTER_NO_CONFIG JUPYTER_PREFER_ENV_PATH
export JUPYTER_PATH="${JUPYTER_PATH:+$JUPYTER_PATH:}$jupyter/share"
# The server would listen on this port of the node, were there no socket.
export JUPYTERHUB_SERVICE_URL="http://127.0.0.1:8888$JUPYTERHUB_SERVICE_PREFIX"

exec jupyterhub-singleuser \
    --ServerApp.sock="$SLIPWAY_SOCKET" --ServerApp.sock_mode=0600 \
    --ServerApp.root_dir="${SLIPWAY_FILES:-$HOME}" \
    --Application.log_level=ERROR \
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
