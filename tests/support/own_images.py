"""Own images for tests on a cluster: a registry, images pushed by a real client, odd SIF files."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.client import OVER, Api, Json
from tests.support.cluster import Cluster, wait_for

OPEN, CLOSED = 5000, 5001
"""Ports of the registry on ctl that anybody may read, and of the one that wants a login."""
USER, PASSWORD = "team", "open sesame: 1 & 2"
BUSYBOX = "/srv/slipway/images/busybox/1.37/image.sif"
FOLDER = "/home/alice/storage/images"


@contextmanager
def registry(cluster: Cluster, port: int) -> Iterator[str]:
    """A registry of Debian's; yields its host as references name it."""
    place = f"/tmp/registry-{port}"
    start = [f"rm -rf {place}", f"mkdir -p {place}/data", f"cat > {place}/config.yml"]
    cluster.run("ctl", "sh", "-c", " && ".join(start), stdin=_config(port, place))
    if port == CLOSED:
        make = f"htpasswd -iBn {USER} > {place}/passwords"
        cluster.run("ctl", "sh", "-c", make, stdin=PASSWORD)
    serve = f"setsid docker-registry serve {place}/config.yml > {place}/log 2>&1 & echo $!"
    process = cluster.run("ctl", "sh", "-c", serve).strip()
    try:
        ask = ["curl", "--silent", "--output", "/dev/null", f"http://localhost:{port}/v2/"]
        wait_for("the registry", lambda: cluster.attempt("exec", "ctl", "--", *ask).returncode == 0)
        yield f"ctl:{port}"
    finally:
        cluster.run("ctl", "sh", "-c", f"kill {process}; rm -rf {place}")


def _config(port: int, place: str) -> str:
    config: dict[str, object] = {
        "version": 0.1,
        "log": {"level": "info"},
        "storage": {"filesystem": {"rootdirectory": f"{place}/data"}},
        "http": {"addr": f"0.0.0.0:{port}"},
    }
    if port == CLOSED:
        config["auth"] = {"htpasswd": {"realm": "tests", "path": f"{place}/passwords"}}
    return json.dumps(config)  # JSON is YAML, too


def push(
    cluster: Cluster,
    port: int,
    name: str,
    *,
    architecture: str = "amd64",
    extra: bytes = b"",
) -> None:
    """Push a small image by skopeo; `extra`: a file that makes it larger and different."""
    data = base64.b64encode(_layout(_root(cluster, extra), architecture)).decode()
    unpack = "rm -rf /tmp/layout && mkdir /tmp/layout && base64 -d | tar -x -C /tmp/layout"
    cluster.run("ctl", "sh", "-c", unpack, stdin=data)
    login = [f"--dest-creds={USER}:{PASSWORD}"] if port == CLOSED else []
    target = f"docker://localhost:{port}/{name}"
    options = ["--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false", *login]
    cluster.run("ctl", "skopeo", *options, "oci:/tmp/layout:it", target)


def _root(cluster: Cluster, extra: bytes) -> bytes:
    """A root file system as a tar file: that of the BusyBox image."""
    words = f"apptainer --silent exec --containall {BUSYBOX} tar -C / -c bin etc | base64"
    found = cluster.run("n1", "runuser", "-u", "alice", "--", "sh", "-c", words)
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(base64.b64decode(found))) as old,
        tarfile.open(fileobj=out, mode="w") as new,
    ):
        for member in old:
            new.addfile(member, old.extractfile(member) if member.isreg() else None)
        info = tarfile.TarInfo("etc/extra")
        info.size = len(extra)
        new.addfile(info, io.BytesIO(extra))
    return out.getvalue()


def _layout(layer: bytes, architecture: str) -> bytes:
    """An OCI image layout of one layer as a tar file."""
    files: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

    def blob(data: bytes, kind: str) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        files[f"blobs/sha256/{digest}"] = data
        media = f"application/vnd.oci.image.{kind}"
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}

    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Env": ["PATH=/usr/bin:/bin", "TEAM=blue"], "Entrypoint": ["sleep", "100000"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(json.dumps(config).encode(), "config.v1+json"),
        "layers": [blob(layer, "layer.v1.tar")],
    }
    entry = blob(json.dumps(manifest).encode(), "manifest.v1+json")
    entry["annotations"] = {"org.opencontainers.image.ref.name": "it"}
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as layout:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            layout.addfile(info, io.BytesIO(data))
    return out.getvalue()


def as_alice(cluster: Cluster, script: str) -> str:
    """Run a shell script on a node as alice, in her home."""
    return cluster.run("n1", "runuser", "-u", "alice", "--", "sh", "-c", f"cd && {script}")


TINY_RESOURCES: Json = {"cpus": 1, "memory": "300m"}


def launch_body(image: str, **more: object) -> Json:
    return {"image": image, "resources": TINY_RESOURCES, **more}


def launch_image(api: Api, image: str) -> str:
    """Launch a session with an own image; returns its id."""
    answer = api.ask("POST", "/sessions", 201, json=launch_body(image))
    found: str = answer["sessions"][0]["id"]
    api.launched.append(found)
    return found


def end_text(api: Api, session: str) -> str:
    """Why a session did not start, as its page says."""
    api.wait_state(session, *OVER, seconds=90)

    def explained() -> str | None:
        text: str = api.get(session)["end"]["text"]
        return None if "finding out why" in text else text

    return wait_for("why it ended", explained, 30)
