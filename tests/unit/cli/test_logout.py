"""`slipway logout`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from portal.cli.main import main
from portal.core.auth.logins import BROWSER, TOKEN, Login
from portal.store.engine import open_database
from portal.store.logins import LoginStore


def log_in(folder: Path, user: str, kind: str) -> None:
    """A login in the database."""
    now = datetime.now(UTC)
    engine = open_database(f"sqlite:///{folder}/slipway.db")
    LoginStore(engine).add_login(
        Login(
            hash=f"{user} {kind}", id=f"{user}{kind}"[:16], user=user, kind=kind, name="",
            scopes=("read",), created=now, used=now, expires=now + timedelta(hours=1),
        ),
        10,
    )  # fmt: skip
    engine.dispose()


def test_logins_of_one_or_of_all_end(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", config, "init"]) == 0
    for user in ("alice", "bob"):
        for kind in (BROWSER, TOKEN):
            log_in(tmp_path / "state", user, kind)
    assert main(["--config", config, "logout", "alice"]) == 0
    assert "ended 2 logins and tokens of 1 users" in capsys.readouterr().out
    assert main(["--config", config, "logout", "--everybody"]) == 0
    assert "ended 2 logins and tokens of 1 users" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--config", config, "logout"])
