"""[hub]: a JupyterHub that starts its users' servers as sessions."""

from __future__ import annotations

from pydantic import BaseModel, Field, model_validator

from portal.config.base import FROZEN


class HubSettings(BaseModel):
    """Connections of JupyterHub's proxy to the servers."""

    model_config = FROZEN

    listen: str = Field(
        "",
        pattern=r"^([^\s:]*:[0-9]{1,5})?$",
        description="Address and port where JupyterHub's proxy connects, such as 10.0.0.5:8090; "
        "empty: there is no JupyterHub.",
    )
    proxies: tuple[str, ...] = Field(
        ("127.0.0.1", "::1"),
        max_length=32,
        description="Addresses and networks of JupyterHub and its proxy; all others are refused.",
    )
    url: str = Field(
        "",
        pattern=r"^(https?://[^\s/]+)?$",
        description="Address of JupyterHub in browsers, for the link to a server.",
    )
    base_url: str = Field(
        "/",
        pattern=r"^/([A-Za-z0-9._~@-]+/)*$",
        description="JupyterHub's own setting of this name: the path before hub/ and user/.",
    )
    tls_certificate: str = Field(
        "",
        description="Certificate and key (PEM) for that port, which JupyterHub must trust.",
    )
    client_ca: str = Field(
        "", description="Only connections with a certificate of this authority (PEM) are accepted."
    )

    front_end_token_file: str = Field(
        "",
        description="File with one line of 32 or more letters and digits, by which JupyterHub "
        "proves that it may name the client that it asks for: limits and audit log then have that "
        "address. Empty: all who log in at JupyterHub count as one address.",
    )

    @model_validator(mode="after")
    def _tls(self) -> HubSettings:
        if self.client_ca and not self.tls_certificate:
            raise ValueError("client_ca needs tls_certificate")
        return self
