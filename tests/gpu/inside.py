"""One case, in the process that the runner started for it."""

from __future__ import annotations

import json
import subprocess
import traceback
from pathlib import Path

from tests.gpu.case import Case, FailsBare, NotRun, Trial, all_cases
from tests.gpu.machine import Gpu
from tests.gpu.program import ProgramFailed

PASSED, FAILED, BARE_TOO, NOT_RUN = "passed", "failed", "fails bare too", "not run"


def run_here(name: str, result: Path) -> int:
    """Run the case, and write its result as JSON."""
    one = next(one for one in all_cases() if one.name == name)
    trial = Trial(Gpu.find())
    status, why = _outcome(one, trial)
    result.write_text(json.dumps({"status": status, "why": why, "figures": trial.figures}))
    return 0


def _outcome(one: Case, trial: Trial) -> tuple[str, str]:
    if missing := one.missing():
        return NOT_RUN, missing
    try:
        one.run(trial)
    except NotRun as error:
        return (FAILED, "; ".join(trial.wrong)) if trial.wrong else (NOT_RUN, str(error))
    except FailsBare as error:
        return BARE_TOO, str(error)
    except ProgramFailed as error:
        trial.wrong.append(f"in the session: {error}")
    except (OSError, subprocess.SubprocessError, RuntimeError) as error:
        trial.wrong.append(f"{type(error).__name__}: {error}")
    except Exception as error:  # a mistake in the case: it fails alone, and says where
        traceback.print_exc()
        trial.wrong.append(f"mistake in the case: {type(error).__name__}: {error}")
    return (FAILED, "; ".join(trial.wrong)) if trial.wrong else (PASSED, "")
