#!/bin/sh
# JupyterLab and Notebook on one unix socket. Only the gateway can reach it, so there is no password.
export JUPYTER_RUNTIME_DIR="$SLIPWAY_RUN/runtime"
mkdir -p -m 700 "$JUPYTER_RUNTIME_DIR"
export SHELL="$(command -v bash || echo /bin/sh)"
export TERMINFO_DIRS=":$SLIPWAY_TOOLKIT/share/terminfo"

# Kernels must not listen on TCP, where every user on the node could connect. This is enforced by
# images/toolkit/jupyter, which is read-only and enabled on the command line below, which no variable
# or configuration file overrides. The news prompt is disabled, too.
jupyter="$SLIPWAY_TOOLKIT/jupyter"
export JUPYTER_CONFIG_PATH="$jupyter/config${JUPYTER_CONFIG_PATH:+:$JUPYTER_CONFIG_PATH}"
# The windows' title has the session's name (a valid name needs no escaping in JSON).
titles="$SLIPWAY_RUN/titles"
mkdir -p -m 700 "$titles/labconfig"
printf '{"appName": "%s · JupyterLab"}\n' "$SLIPWAY_NAME" > "$titles/labconfig/page_config.json"
[ -z "$SLIPWAY_NAME" ] || JUPYTER_CONFIG_PATH="$titles:$JUPYTER_CONFIG_PATH"
unset JUPYTER_NO_CONFIG JUPYTER_PREFER_ENV_PATH
# The extension that shows the session's name and the time left, after the user's own ones.
export JUPYTER_PATH="${JUPYTER_PATH:+$JUPYTER_PATH:}$jupyter/share"

# The server's own Python sees nothing of what users install (portal/node/runner/apps/packages.py); its kernels and
# terminals do, by the PATH that jupyter_server_config.py gives back.
export SLIPWAY_USERS_PATH="$PATH" SLIPWAY_USERS_NOUSERSITE="${PYTHONNOUSERSITE:-}" PYTHONNOUSERSITE=1
PATH="${SLIPWAY_PATH:-$PATH}"

# No trash: it would be in the session's own home, to which whole mounted folders would be copied, and
# be lost with it at the end. So deletion is final, and Jupyter says so before.
# Jupyter's secrets are not in the home, which users serve and share: the notary's files are elsewhere.
# With a socket, port 8888 means none, whatever other settings name.
# The gateway speaks plain HTTP, to the root of an origin of its own. The user's settings join in by
# jupyter_server_config.py, where dictionaries are merged.
# Sessions that began before the last update of Slipway have no SLIPWAY_WORKDIR.
exec jupyter-lab \
    --ServerApp.sock="$SLIPWAY_SOCKET" --ServerApp.sock_mode=0600 --ServerApp.port=8888 \
    --IdentityProvider.token= --ServerApp.password= --PasswordIdentityProvider.hashed_password= \
    --PasswordIdentityProvider.password_required=False \
    --ServerApp.identity_provider_class=jupyter_server.auth.identity.PasswordIdentityProvider \
    --ServerApp.login_handler_class=jupyter_server.auth.login.LoginHandler \
    --ServerApp.base_url=/ \
    --ServerApp.certfile= --ServerApp.keyfile= --ServerApp.client_ca= --ServerApp.ssl_options={} \
    --ServerApp.allow_remote_access=True --ServerApp.trust_xheaders=True \
    --ServerApp.root_dir="${SLIPWAY_FILES:-$HOME}" \
    --ServerApp.open_browser=False \
    --Application.log_level=ERROR --ServerApp.quit_button=False \
    --ServerApp.kernel_manager_class=jupyter_server.services.kernels.kernelmanager.AsyncMappingKernelManager \
    --AsyncMappingKernelManager.kernel_manager_class=slipway_jupyter.KernelManager \
    --KernelManager.transport=ipc \
    --NotebookNotary.secret_file="$SLIPWAY_RUN/notebook_secret" \
    --NotebookNotary.db_file="$SLIPWAY_RUN/nbsignatures.db" \
    --FileContentsManager.delete_to_trash=False --LargeFileManager.delete_to_trash=False \
    --AsyncLargeFileManager.delete_to_trash=False \
    --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LabApp.news_url=None \
    --LabApp.extension_manager=readonly
