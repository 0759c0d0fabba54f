"""A certified OpenID provider (npm package oidc-provider) in a process of its own."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests.support.paths import ROOT

HERE = Path(__file__).parent
CLIENT, SECRET = "slipway", "s3cret/+:%25"
FILES = ("package.json", "package-lock.json", "provider.js")


@dataclass(frozen=True)
class CertifiedProvider:
    """The running provider; everybody logs in with an account's name and any password."""

    issuer: str
    settings: dict[str, object]
    _folder: Path

    @contextmanager
    def running(self, portal: str, groups: Mapping[str, Sequence[str]]) -> Iterator[None]:
        """Run it for the portal at this origin."""
        told = self.settings | {"portal": portal, "groups": groups}
        process = subprocess.Popen(
            ["node", "provider.js", json.dumps(told)],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", "the provider does not start"
            yield
        finally:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


def provider() -> CertifiedProvider:
    """Install it into build/, once for each lock file, and choose a port."""
    digest = sha256(b"".join((HERE / name).read_bytes() for name in FILES)).hexdigest()[:16]
    folder = ROOT / "build" / f"openid-{digest}"
    if not (folder / "node_modules/oidc-provider").is_dir():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in FILES:
            shutil.copy(HERE / name, folder)
        options = ["--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(["npm", "ci", *options], cwd=folder, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings: dict[str, object] = {"port": port, "client": CLIENT, "secret": SECRET}
    return CertifiedProvider(f"http://127.0.0.1:{port}", settings, folder)
