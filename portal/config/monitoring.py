"""[monitoring]: access to metrics and health."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from portal.config.base import FROZEN


def _is_network(text: str) -> str:
    try:
        ip_network(text)
    except ValueError as error:
        raise ValueError(f'"{text}" is not an address or a network, such as 10.0.0.0/8') from error
    return text


Network = Annotated[str, AfterValidator(_is_network)]


class MonitoringSettings(BaseModel):
    """Metrics for Prometheus, and the details of readiness."""

    model_config = FROZEN

    listen: str = Field(
        "",
        pattern=r"^((\[[0-9A-Fa-f:]+\]|[^\s:\[\]]*):[0-9]{1,5})?$",
        description="Address and port where HAProxy serves /metrics, /haproxy-metrics and the "
        "details of /readyz, by plain http, such as 127.0.0.1:9464; empty: nowhere.",
    )
    allow: tuple[Network, ...] = Field(
        ("127.0.0.0/8", "::1"),
        min_length=1,
        max_length=64,
        description="Addresses and networks that may connect there; all others are refused.",
    )
    free_mb: int = Field(
        200,
        ge=0,
        description="MiB that must be free in state.directory; with less, /readyz says so.",
    )
