#!/bin/sh
# JupyterHub's server on a unix socket, which only the gateway can reach; it asks JupyterHub who its users
# are. The options that apps/jupyterlab/start.sh has as well are explained there.
export JUPYTER_RUNTIME_DIR="$SLIPWAY_RUN/runtime"
mkdir -p -m 700 "$JUPYTER_RUNTIME_DIR"
export SHELL="$(command -v bash || echo /bin/sh)"
export TERMINFO_DIRS=":$SLIPWAY_TOOLKIT/share/terminfo"
jupyter="$SLIPWAY_TOOLKIT/jupyter"
export JUPYTER_CONFIG_PATH="$jupyter/config${JUPYTER_CONFIG_PATH:+:$JUPYTER_CONFIG_PATH}"
unset JUPYTER_NO_CONFIG JUPYTER_PREFER_ENV_PATH
export JUPYTER_PATH="${JUPYTER_PATH:+$JUPYTER_PATH:}$jupyter/share"
# The server's own Python sees nothing of what users install (portal/node/runner/apps/packages.py); its kernels and
# terminals do, by the PATH that jupyter_server_config.py gives back.
export SLIPWAY_USERS_PATH="$PATH" SLIPWAY_USERS_NOUSERSITE="${PYTHONNOUSERSITE:-}" PYTHONNOUSERSITE=1
PATH="${SLIPWAY_PATH:-$PATH}"

# With internal_ssl: the certificate for requests to JupyterHub. The server itself needs none, since
# only the gateway reaches its socket, over mutual TLS.
if [ -n "${JUPYTERHUB_SSL_KEYFILE_PEM:-}" ]; then
    tls="$SLIPWAY_RUN/jupyterhub-tls"
    mkdir -p -m 700 "$tls"
    umask=$(umask)
    umask 077
    printf '%b\n' "$JUPYTERHUB_SSL_KEYFILE_PEM" > "$tls/key.pem"
    printf '%b\n' "$JUPYTERHUB_SSL_CERTFILE_PEM" > "$tls/certificate.pem"
    printf '%b\n' "$JUPYTERHUB_SSL_CLIENT_CA_PEM" > "$tls/authorities.pem"
    umask "$umask"
    unset JUPYTERHUB_SSL_KEYFILE_PEM JUPYTERHUB_SSL_CERTFILE_PEM JUPYTERHUB_SSL_CLIENT_CA_PEM
    set -- --HubAuth.keyfile="$tls/key.pem" --HubAuth.certfile="$tls/certificate.pem" \
        --HubAuth.client_ca="$tls/authorities.pem"
fi
# The server would listen on this port of the node, were there no socket.
export JUPYTERHUB_SERVICE_URL="http://127.0.0.1:8888$JUPYTERHUB_SERVICE_PREFIX"
root_dir="${SLIPWAY_FILES:-$HOME}"
# c.Spawner.notebook_dir; "~" is the home in the session.
case "${JUPYTERHUB_ROOT_DIR:-}" in
    '') ;;
    \~) root_dir=$HOME ;;
    \~/*) root_dir=$HOME/${JUPYTERHUB_ROOT_DIR#\~/} ;;
    *) root_dir=$JUPYTERHUB_ROOT_DIR ;;
esac
unset JUPYTERHUB_ROOT_DIR

exec jupyterhub-singleuser \
    --ServerApp.sock="$SLIPWAY_SOCKET" --ServerApp.sock_mode=0600 \
    --ServerApp.certfile= --ServerApp.keyfile= --ServerApp.client_ca= --ServerApp.ssl_options={} \
    --ServerApp.root_dir="$root_dir" \
    --Application.log_level=ERROR \
    --ServerApp.kernel_manager_class=jupyter_server.services.kernels.kernelmanager.AsyncMappingKernelManager \
    --AsyncMappingKernelManager.kernel_manager_class=slipway_jupyter.KernelManager \
    --KernelManager.transport=ipc \
    --NotebookNotary.secret_file="$SLIPWAY_RUN/notebook_secret" \
    --NotebookNotary.db_file="$SLIPWAY_RUN/nbsignatures.db" \
    --FileContentsManager.delete_to_trash=False --LargeFileManager.delete_to_trash=False \
    --AsyncLargeFileManager.delete_to_trash=False \
    --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LabApp.news_url=None \
    --LabApp.extension_manager=readonly "$@"
