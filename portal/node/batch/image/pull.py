"""Pull an image of a registry into the cache, with Apptainer and as the user."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time

from portal.node.batch.image import ImageError, sif
from portal.node.batch.image.cache import Cache
from portal.node.batch.image.registry import Login, Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from portal.node.batch.image.registry import Resolved
    from portal.node.common.reference import Reference

    Tell = Callable[[str], None]

LONGEST = 2 * 3600.0
"""Seconds of one pull."""
PAUSE = 1.0
MAX_LINES = 100
_PASSED_ON = ("PATH", "HOME", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE")
_FULL = ("no space left on device", "disk quota exceeded")


class Limits:
    """The site's limits: megabytes of one image and of the cache, registries without TLS."""

    __slots__ = ("cache_mb", "folder", "insecure", "max_mb")

    def __init__(self, folder: str, max_mb: int, cache_mb: int, insecure: Sequence[str]) -> None:
        self.folder = folder
        self.max_mb = max_mb
        self.cache_mb = cache_mb
        self.insecure = frozenset(insecure)


def image_of(
    reference: Reference, login: Login | None, limits: Limits, apptainer: Sequence[str], tell: Tell
) -> tuple[int, int]:
    """Return descriptors of a pulled image and of its lock in the cache; raises ImageError."""
    login = login or saved_login(reference.host)
    tell(f"Asking {reference.host} for {reference.name}")
    insecure = reference.host in limits.insecure
    resolved = Registry(reference.host, login, insecure=insecure).resolve(reference)
    if resolved.size > limits.max_mb << 20:
        raise ImageError(
            f"{reference} has {resolved.size >> 20:,} MiB compressed, and images may have "
            f"{limits.max_mb:,} MiB here. Ask the administrators, or build it with less in it"
        )
    puller = _Puller(reference, login, limits, apptainer, tell, insecure)
    cache = Cache(limits.folder, limits.cache_mb)
    try:
        return cache.use(
            resolved,
            lambda folder, file: puller.pull(resolved, folder, file),
            lambda: tell("Waiting for another job of yours that pulls the same image"),
        )
    except OSError as error:
        raise ImageError(
            f"{reference} cannot be kept in {limits.folder}: {error.strerror or error}"
        ) from None


def saved_login(host: str) -> Login | None:
    """Return the login that `apptainer registry login` stored for a registry, or None."""
    import base64  # noqa: PLC0415

    path = os.path.expanduser("~/.apptainer/docker-config.json")
    try:
        with open(path, encoding="utf-8") as stream:
            entry = json.load(stream)["auths"][host]["auth"]
        user, _, password = base64.b64decode(entry).decode().partition(":")
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return Login(user, password)


class _Puller:
    def __init__(
        self,
        reference: Reference,
        login: Login | None,
        limits: Limits,
        apptainer: Sequence[str],
        tell: Tell,
        insecure: bool,
    ) -> None:
        self._reference = reference
        self._login = login
        self._limits = limits
        self._apptainer = apptainer
        self._tell = tell
        self._insecure = insecure

    def pull(self, resolved: Resolved, folder: str, file: str) -> None:
        """Create the file from the resolved image; raises ImageError."""
        self._tell(f"Pulling {self._reference}")
        # By its digest: a tag may have moved since.
        source = f"docker://{self._reference.host}/{self._reference.name}@{resolved.digest}"
        options = ["--no-https"] if self._insecure else []
        command = [*self._apptainer, "pull", *options, file, source]
        with open(os.path.join(folder, "messages"), "w+b") as messages:
            child = subprocess.Popen(
                command,
                env=self._environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                preexec_fn=self._bound,  # noqa: PLW1509 - this program has no other threads yet
                start_new_session=True,
            )
            try:
                self._watch(child, resolved, folder)
            finally:
                _end(child)
            messages.seek(0)
            text = messages.read(1 << 20).decode(errors="replace")
        if child.returncode != 0:
            raise ImageError(self._why(text))
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            sif.check(descriptor, str(self._reference), self._limits.max_mb)
        finally:
            os.close(descriptor)

    def _environment(self, folder: str) -> dict[str, str]:
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        for name in ("cache", "tmp", "config"):
            os.mkdir(os.path.join(folder, name), 0o700)
            variable = f"APPTAINER_{name.upper()}DIR"
            environment[variable] = os.path.join(folder, name)
        if self._login is not None:
            # In a file: the arguments and the environment of a process can be seen.
            path = os.path.join(folder, "config", "docker-config.json")
            content = {"auths": {self._reference.host: {"auth": self._login.basic}}}
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as stream:
                json.dump(content, stream)
        return {**environment, "LC_ALL": "C.UTF-8", "TMPDIR": environment["APPTAINER_TMPDIR"]}

    def _bound(self) -> None:
        # A few bytes may unpack to a file that fills every disk.
        size = self._limits.max_mb << 20
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    def _watch(self, child: subprocess.Popen[bytes], resolved: Resolved, folder: str) -> None:
        """Wait for the end of the pull, and report its progress."""
        deadline = time.monotonic() + LONGEST
        most = resolved.size >> 20
        while True:
            try:
                child.wait(PAUSE)
            except subprocess.TimeoutExpired:
                pass
            else:
                return
            if time.monotonic() > deadline:
                raise ImageError(
                    f"{self._reference} was not pulled within {LONGEST / 3600:.0f} hours"
                )
            loaded = _size(os.path.join(folder, "cache")) >> 20
            if loaded < most:
                self._tell(f"Pulling {self._reference}: {loaded:,} of {most:,} MiB")
            else:
                self._tell(f"Converting {self._reference}")
            if _size(folder) > 8 * (self._limits.max_mb << 20):
                raise ImageError(
                    f"{self._reference} needs far more space unpacked than is permitted"
                )

    def _why(self, text: str) -> str:
        small = text.lower()
        if any(words in small for words in _FULL):
            return (
                f"there was no room for {self._reference} in {self._limits.folder}; your home "
                "directory may be full"
            )
        if "file too large" in small or "file size limit" in small:
            return f"{self._reference} has more than the {self._limits.max_mb:,} MiB permitted here"
        lines = [line for line in text.strip().split("\n")[-MAX_LINES:] if "FATAL" in line]
        # Apptainer's messages give the context first and the error last.
        last = lines[-1].rpartition("FATAL:")[2].strip() if lines else "it gave no reason"
        return f"Apptainer could not pull {self._reference}: {last[-300:].rstrip('.')}"


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill a pull that still runs, with all its processes."""
    import signal  # noqa: PLC0415

    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _size(folder: str) -> int:
    """Bytes of all files in a folder; files may vanish meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except OSError:
                continue
    return total
