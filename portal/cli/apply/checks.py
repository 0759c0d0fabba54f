"""Checks before any change; none of them needs the network."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from jinja2 import TemplateError

from portal.cli.check_certificates import certificate_findings
from portal.cli.checks.host import accepted, check_folders, check_keys, check_settings_file
from portal.cli.checks.places import check_templates
from portal.cli.checks.tls import check_browsers_tls
from portal.cli.findings import Finding, warn
from portal.cli.render import haproxy_config
from portal.config import Settings
from portal.wiring import now


def local_findings(settings: Settings, file: Path) -> Generator[Finding, None, None]:
    """Check settings and files of this host; run as the portal's account, as HAProxy is."""
    yield from check_settings_file(file)
    yield from check_browsers_tls(settings.web)
    templates = list(check_templates(settings))
    yield from templates
    keys = check_keys(settings)
    yield keys
    if not keys.ok:
        return
    yield from check_folders(settings)
    for finding in certificate_findings(settings.state.ca_file(""), now()):
        # A certificate that expires soon does not prevent other changes.
        yield finding if finding.ok else warn(finding.text)
    if templates:
        return
    try:
        text = haproxy_config(settings)
    except (TemplateError, OSError) as error:
        yield Finding(False, f"HAProxy's configuration cannot be rendered: {error}")
        return
    yield accepted(text)
