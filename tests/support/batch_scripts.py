"""The template of session scripts, its golden files and job descriptions."""

from __future__ import annotations

from dataclasses import replace

from portal.core.session_job.description import JobDescription
from tests.support.paths import ROOT

TEMPLATE_FILE = ROOT / "templates" / "job" / "session.sh.j2"
TEMPLATE = TEMPLATE_FILE.read_text(encoding="utf-8")
GOLDEN = ROOT / "tests" / "golden"
PLAIN = JobDescription(
    session="0123456789abcdef0123456789abcdef",
    user="alice",
    cpus=1,
    memory_mb=600,
    partition=None,
    time_limit=None,
    image="/srv/slipway/images/python/3.13/image.sif",
    toolkit="/srv/slipway/toolkit.sqsh",
    directory=".slipway",
)
ONE_HOUR_JOB = replace(PLAIN, time_limit=60)
