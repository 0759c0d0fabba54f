"""[service]: how the portal's own processes are run, for `slipway apply`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from portal.config.base import FROZEN


class ServiceSettings(BaseModel):
    """How the portal's own processes are run."""

    model_config = FROZEN

    supervisor: Literal["systemd", "supervisord", "none"] = Field(
        "systemd",
        description="What runs HAProxy, web and worker: systemd (slipway-proxy, slipway-web, "
        "slipway-worker), supervisord (programs haproxy, web, worker), or none: then "
        "`slipway apply` prints what is to be done.",
    )
    supervisorctl: str = Field(
        "supervisorctl", min_length=1, description="Command that controls supervisord."
    )
    haproxy_config: str = Field(
        "/etc/slipway/haproxy.cfg", description="HAProxy's configuration, which is rendered."
    )
    units: str = Field(
        "/etc/systemd/system",
        description="Folder of the systemd units; those that are there are kept current.",
    )
