"""The container of a batch job or of a task: Apptainer's command line."""

from __future__ import annotations

import glob
import os
import shutil

from portal.node.batch.request import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from portal.node.batch.request import Request

TOOLKIT = "/opt/slipway"
LAUNCHER = f"{TOOLKIT}/bin/command"
"""Starts the program in the container (node/runner/batch/command.py)."""
GPU_JOBS = "/run/slipway/gpu/jobs"
GPU_MOUNT = "/opt/slipway-gpu"
MPS_MOUNT = "/opt/slipway-gpu-mps"
PROFILE = "/etc/profile"
NVIDIA = "/dev/nvidia[0-9]*"
TEMPORARY = ("TMPDIR", "TMP", "TEMP")
VISIBLE = ("/tmp", "/var/tmp", "/dev", "/proc", "/sys")  # noqa: S108
"""Apptainer mounts these."""
SYSTEM = frozenset("bin boot etc home lib lib32 lib64 libx32 opt root run sbin srv usr var".split())


class ContainerError(Exception):
    """The container cannot be started; the text is for the job's owner."""


def argv(
    request: Request,
    program: Sequence[str],
    *,
    launcher: Iterable[str] = (),
    files: Iterable[tuple[str, str]] = (),
    environment: Mapping[str, str],
    shared: bool = False,
    instance: str = "",
) -> list[str]:
    """Return the command that runs a program in the image; `files`: (source, target) of mounts.

    `launcher`: options of the launcher. `shared`: the container is shared by all tasks of a step on
    this node (shared.py); `instance`: its name, to enter it. Raises ContainerError.
    """
    node = environment.get("SLURMD_NODENAME", "this node")
    if not os.access(request.toolkit, os.R_OK):
        raise ContainerError(
            f"Slipway's own programs cannot be read on {node} ({request.toolkit}). "
            "Tell the administrators."
        )
    if "://" not in request.image and not os.access(request.image, os.R_OK):
        raise ContainerError(f"the image {request.image} cannot be read on {node}")
    words = [*apptainer_command(request.apptainer, environment), "--silent", "exec"]
    words += ["--sharens"] if shared and not instance else []
    words += ["--bind", f"{request.toolkit}:{TOOLKIT}:image-src=/"]
    identities = []
    for path, mode, *owner in request.binds:
        words += _mount_folder(path, mode, node)
        identities += _identity_option(path, *owner)
    for source, target in files:
        words += _mount(source, target)
    for folder in pmix_folders(environment):
        words += _mount(folder, folder)
    gpu = gpu_options(environment)
    options = [*launcher, *identities]
    for name, folder in temporary_folders(environment).items():
        options += ["--temporary", name]
        words += _mount(folder, folder) if _can_be_mounted(folder, environment) else []
    if request.shm_mb and not shared:  # a separate mount would isolate the task from the others
        options += ["--shm", str(request.shm_mb)]
    if shared:
        options.append("--shared")
    if GPU_MOUNT in " ".join(gpu):
        options.append("--gpu")
    image = f"instance://{instance}" if instance else request.image
    return [*words, *gpu, image, LAUNCHER, *options, "--", *program]


def _mount_folder(path: str, mode: str, node: str) -> list[str]:
    if not os.path.isdir(path):
        raise ContainerError(f"there is no folder {path} on {node}")
    return _mount(path, path, read_only=mode == "ro")


def _identity_option(path: str, owner: str = "") -> list[str]:
    """Return the option by which the launcher verifies a folder that its owner can exchange."""
    if not owner:
        return []
    device_inode = identity(path, owner)
    if not device_inode:
        name = os.path.basename(path)
        raise ContainerError(f"the folder {owner}/{name} is no longer shared with you")
    return ["--seen", f"{device_inode} {path}"]


def temporary_folders(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the job's folders for temporary files by variable name, without /tmp itself."""
    folders = {name: environment.get(name, "") for name in TEMPORARY}
    return {
        name: folder
        for name, folder in folders.items()
        if os.path.isabs(folder) and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
        if folder not in VISIBLE
    }


def _can_be_mounted(folder: str, environment: Mapping[str, str]) -> bool:
    """Whether a user's folder can be mounted: a system folder would hide the image's."""
    real = os.path.realpath(folder)
    hides = real == "/" or (os.path.dirname(real) == "/" and real[1:] in SYSTEM)
    is_visible = _is_in(folder, (*VISIBLE, environment.get("HOME", "/home")))
    return not hides and not is_visible and folder.isprintable()


def _is_in(folder: str, parents: Iterable[str]) -> bool:
    return any(f"{folder}/".startswith(f"{parent}/") for parent in parents)


def apptainer_command(program: str, environment: Mapping[str, str]) -> list[str]:
    """Return Apptainer's command; if it is a module of the site, the login environment finds it."""
    path = shutil.which(program, path="/usr/local/bin:/usr/bin:/bin")
    path = path or shutil.which(program, path=environment.get("PATH"))
    if path:
        return [path]
    clean = 'unset "${!APPTAINER@}" "${!SINGULARITY@}"'
    return ["/bin/bash", "-c", f'. {PROFILE} > /dev/null 2>&1; {clean}; exec "$0" "$@"', program]


def _mount(source: str, target: str, *, read_only: bool = False) -> list[str]:
    quoted = [path.replace('"', '""') for path in (source, target)]
    mode = ",ro" if read_only else ""
    return ["--mount", f'type=bind,"src={quoted[0]}","dst={quoted[1]}"{mode}']


def gpu_options(environment: Mapping[str, str]) -> list[str]:
    """Return Apptainer's options for the GPUs that Slurm allocated to the job on this node."""
    folder = f"{GPU_JOBS}/{environment.get('SLURM_JOB_ID', '')}"
    if os.access(f"{folder}/slice", os.R_OK) and may_use_gpu():
        words = ["--nv", "--bind", f"{folder}:{GPU_MOUNT}"]
        pipes = f"{os.path.dirname(GPU_JOBS)}/mps"
        if os.path.isdir(pipes) and _has_mps(folder):
            words += ["--bind", f"{pipes}:{MPS_MOUNT}"]
        return words
    variables = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
    return ["--nv"] if any(environment.get(name) for name in variables) else []


def may_use_gpu() -> bool:
    """Whether Slurm lets this step use a GPU; with srun --gres=none it does not."""
    devices = glob.glob(NVIDIA)
    # The kernel asks the cgroup's rules for devices here, too. Without devices there is a fault,
    # which the launcher explains.
    return not devices or any(os.access(path, os.R_OK | os.W_OK) for path in devices)


def _has_mps(folder: str) -> bool:
    """Whether root has written that MPS shares the job's GPU."""
    with open(f"{folder}/slice", encoding="ascii", errors="replace") as file:
        return "compute=mps" in file.read().splitlines()


def pmix_folders(environment: Mapping[str, str]) -> list[str]:
    """Return the folders of slurmstepd's PMIx server that are not in containers by default."""
    names = ("PMIX_SERVER_TMPDIR", "PMIX_SYSTEM_TMPDIR")
    folders = {environment[name] for name in names if os.path.isdir(environment.get(name, ""))}
    return sorted(path for path in folders if not path.startswith(("/tmp/", "/dev/")))  # noqa: S108
