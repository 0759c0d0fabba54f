"""The command: `slipway sbatch|srun|salloc …`, or a link of that name in front of Slurm's own."""

from __future__ import annotations

import os
import sys

from portal.node.batch import real

NAMES = ("sbatch", "srun", "salloc")
USAGE = """\
usage: slipway sbatch [OPTION…] [SCRIPT [ARGUMENT…]]
       slipway srun   [OPTION…] PROGRAM [ARGUMENT…]
       slipway salloc [OPTION…] [PROGRAM [ARGUMENT…]]

They are Slurm's commands with all their options, and these:
  --image=NAME[/VERSION]   run in one of the site's images; also FILE.sif or
                           docker://HOST/NAME:TAG where the site permits it
  --mount=FOLDER[:ro]      make a folder visible: a path, the name of a storage folder,
                           or OWNER/FOLDER if it is shared with you; may be repeated
  --fgpu=AMOUNT            a share of a GPU, as in sessions
  --gpu-kind=KIND          which kind of GPU
  --shm=SIZE               size of /dev/shm, such as 2g
  --env-file=FILE          variables, in lines NAME=value; may be repeated
  --dry-run                print what would be submitted

In a batch script they are lines such as: #SLIPWAY --image=python/3.13
"""


def main() -> None:
    """Run the command that the program's name or the first word says."""
    name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
    on_node = name not in NAMES and words[:1] in (["node-batch"], ["node-step"])
    # Slurm may send one already, which is for the script.
    mask = real.block_signals() if on_node else set()
    real.reserve_streams()
    real.take_back_locale()
    if name not in NAMES:
        name, words = (words[0], words[1:]) if words else ("--help", [])
        if name in NAMES and words[:1] in (["--help"], ["-h"]):
            print(USAGE, flush=True)
    if name == "sbatch":
        from portal.node.batch import sbatch  # noqa: PLC0415

        sbatch.main(words)
    if name in NAMES:
        from portal.node.batch import srun  # noqa: PLC0415

        (srun.srun if name == "srun" else srun.salloc)(words)
    if name in ("node-batch", "node-step"):
        from portal.node.batch.execute import run  # noqa: PLC0415

        (run.batch if name == "node-batch" else run.step)(words, mask)
    if name == "node-session":
        from portal.node.batch.execute import session  # noqa: PLC0415

        session.main(words)
    if name == "as-login":
        from portal.node.batch import login_shell  # noqa: PLC0415

        login_shell.main(words)
    if name == "file-server":
        if not words:
            from portal.node.batch import login_shell  # noqa: PLC0415

            login_shell.adopt_umask()
        from portal.node.file_server import daemon  # noqa: PLC0415

        (daemon.clean if words == ["--clean"] else daemon.main)()
    is_help = name in ("--help", "-h", "help")
    print(USAGE, end="", file=sys.stdout if is_help else sys.stderr)
    sys.exit(0 if is_help else 2)
