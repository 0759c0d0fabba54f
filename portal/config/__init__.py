"""The settings of a site: one TOML file, read once, never changed while running.

`slipway config` prints every key with its description and default (annotate.py).
"""

from portal.config.cluster import LoginSettings, SlurmSettings
from portal.config.gpu import GpuKindSettings, GpuSettings
from portal.config.log import LogSettings
from portal.config.monitoring import MonitoringSettings
from portal.config.oidc import OidcSettings
from portal.config.sessions import SessionSettings
from portal.config.settings import Settings, SettingsError, load_settings, settings_file
from portal.config.state import StateSettings
from portal.config.web import WebSettings

__all__ = [
    "GpuKindSettings",
    "GpuSettings",
    "LogSettings",
    "LoginSettings",
    "MonitoringSettings",
    "OidcSettings",
    "SessionSettings",
    "Settings",
    "SettingsError",
    "SlurmSettings",
    "StateSettings",
    "WebSettings",
    "load_settings",
    "settings_file",
]
