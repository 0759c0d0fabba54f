"""`python -m portal.cli` is the command `slipway`."""

from __future__ import annotations

import sys

from portal.cli.main import main

sys.exit(main())
