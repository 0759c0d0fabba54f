"""Which commands are measured, and how they ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.monitoring.commands import MeasuredTransport, command_of
from portal.adapters.monitoring.prometheus import PrometheusMeasures
from portal.adapters.ssh.hosts import HostOrder
from portal.adapters.ssh.transport import Completed, SshTransport
from portal.config import LoginSettings
from portal.core.monitoring import Snapshot
from portal.errors import Unavailable

NOTHING = Snapshot("", (), None, None, None, None, {}, None)


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["env", "LC_ALL=C.UTF-8", "squeue", "--all"], "squeue"),
        (["timeout", "--kill-after=2", "20", "scancel", "7"], "scancel"),
        (["/bin/sh", "-c", "cd && exec env LC_ALL=C timeout 20 sbatch --parsable"], "sbatch"),
        (["/opt/slurm/bin/sacctmgr", "show", "user"], "sacctmgr"),
        (["rm", "-rf", "--", "sbatch.log"], ""),
        (["cat", "mysqueue"], ""),
        (["id", "-u", "alice"], ""),
    ],
)
def test_the_name_is_one_of_slurms(argv: list[str], name: str) -> None:
    assert command_of(argv) == name


@pytest.mark.parametrize(
    ("code", "outcome"), [(0, "ok"), (1, "failed"), (124, "unanswered"), (None, "unanswered")]
)
def test_its_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int | None, outcome: str
) -> None:
    def run(*_args: object) -> Completed:
        if code is None:
            raise Unavailable("The login node does not answer.")
        return Completed(code, b"", "")

    monkeypatch.setattr(SshTransport, "run", run)
    prepare_authorities(tmp_path, "portal")
    measures = PrometheusMeasures()
    transport = MeasuredTransport(
        LoginSettings(), CertificateAuthority(tmp_path), "", HostOrder(("login",), 22), measures
    )
    for argv in (["squeue"], ["id"]):
        try:
            transport.run("slipway", argv)
        except Unavailable:
            assert code is None
    text = measures.exposition(NOTHING).decode()
    assert f'slipway_slurm_commands_total{{command="squeue",outcome="{outcome}"}} 1.0' in text
    assert 'slipway_slurm_command_seconds_count{command="squeue"} 1.0' in text
    assert '"id"' not in text
