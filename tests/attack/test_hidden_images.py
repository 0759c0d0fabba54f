"""An image that is hidden from alice, or retired, by all the names that its file can have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slurm.batch import Batch
from tests.slurm.conftest import MakeHub
from tests.support.catalog import wait_for_catalog
from tests.support.client import OVER, Api
from tests.support.cluster import Cluster, wait_for
from tests.support.hubs import HubApi, path_of, sessions_at
from tests.support.own_images import (
    BUSYBOX,
    FOLDER,
    TINY_RESOURCES,
    as_alice,
    end_text,
    launch_body,
    launch_image,
)

IMAGES = "/srv/slipway/images"
RULE = "/admin/images/busybox/1.37"
HIDDEN = "it is not offered to you"
OF_SITE = "this is one of the site's images: "
LEARNT = 40.0
"""Seconds until login nodes and all processes of the portal know a rule."""
CHANGE_ID = """
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(48), file.write(b"changed-by-tests")
"""

pytestmark = pytest.mark.timeout(300)


def change_id(cluster: Cluster, file: str) -> None:
    """Give a copy another id in its header, which makes it an image that nobody recognises."""
    cluster.run("n1", "python3", "-c", CHANGE_ID, file)


@pytest.fixture(autouse=True)
def hidden(admin: Api, cluster: Cluster) -> Iterator[None]:
    """BusyBox is hidden from alice, who has copied it before."""
    as_alice(cluster, f"rm -rf {FOLDER}; mkdir -p {FOLDER}; cp -L {BUSYBOX} {FOLDER}/copy.sif")
    admin.ask("PUT", RULE, json={"seen_by": "except", "users": ["alice"]})
    try:
        yield
    finally:
        admin.ask("PUT", RULE, json={"seen_by": "everybody"})
        as_alice(cluster, f"chmod -R u+w {FOLDER}; rm -rf {FOLDER}")


@pytest.fixture
def links(cluster: Cluster) -> Iterator[str]:
    """A folder beside the site's images with a symbolic and a hard link to BusyBox's file."""
    name = f"links-{cluster.project}"
    place = f"{IMAGES}/{name}"
    make = f"mkdir -p {place} && ln -s {BUSYBOX} {place}/soft.sif"
    cluster.shell("portal", f"{make} && ln $(readlink -f {BUSYBOX}) {place}/hard.sif")
    yield name
    cluster.shell("portal", f"rm -rf {place}")


@pytest.fixture
def jobs(cluster: Cluster) -> Iterator[Batch]:
    """Alice's batch jobs, on a login node that knows the rule."""
    found = Batch(cluster)

    def knows() -> bool:
        said = found.shell("slipway sbatch --test-only --image=busybox/1.37 --wrap=true").stderr
        return "there is no image 'busybox/1.37'" in said

    wait_for("the rule on the login node", knows, LEARNT)
    yield found
    found.clean()


def test_its_name_and_path_in_the_web_api(alice: Api, bob: Api, cluster: Cluster) -> None:
    named = {"environment": "busybox", "version": "1.37", "resources": TINY_RESOURCES}
    assert alice("POST", "/sessions", json=named).status_code == 422
    real = cluster.run("n1", "readlink", "-f", BUSYBOX).strip()
    for path in (BUSYBOX, real):
        answer = alice("POST", "/sessions", json=launch_body(path))
        assert answer.status_code == 422
        assert answer.json()["errors"] == [{"field": "image", "message": OF_SITE + HIDDEN}]
        job = alice("POST", "/jobs", json={"script": "#!/bin/sh\ntrue\n", "image": path})
        assert job.status_code == 422
        assert job.json()["errors"] == [{"field": "image", "message": OF_SITE + HIDDEN}]
    bob.wait_state(launch_image(bob, BUSYBOX), "RUNNING")


def test_links_and_copies_in_sessions(alice: Api, bob: Api, links: str, cluster: Cluster) -> None:
    as_alice(cluster, f"ln {FOLDER}/copy.sif {FOLDER}/hard.sif; ln -s copy.sif {FOLDER}/soft.sif")
    names = {f"images/{name}.sif": f"images/{name}.sif" for name in ("copy", "hard", "soft")}
    names |= {f"{IMAGES}/{links}/{n}.sif": f"images/{links}/{n}.sif" for n in ("soft", "hard")}
    for name, shown in names.items():
        begin = f"The session did not start: {shown} is one of the site's images: {HIDDEN}"
        assert end_text(alice, launch_image(alice, name)).startswith(begin)
    bob.wait_state(launch_image(bob, f"{IMAGES}/{links}/hard.sif"), "RUNNING")


def test_every_name_on_the_command_line(jobs: Batch, links: str, cluster: Cluster) -> None:
    as_alice(cluster, f"ln -s {BUSYBOX} {FOLDER}/soft.sif; ln -s {IMAGES} {FOLDER}/up")
    names = [
        BUSYBOX,
        f"{IMAGES}/busybox/../busybox/1.37/image.sif",
        f"{IMAGES}/{links}/hard.sif",
        *(f"{FOLDER}/{name}" for name in ("soft.sif", "up/busybox/1.37/image.sif", "copy.sif")),
    ]
    for name in names:
        for command in ("sbatch --wrap=true", "srun true", "salloc true"):
            program, _, rest = command.partition(" ")
            done = jobs.shell(f"slipway {program} --mem=100M --image={name} {rest}")
            assert done.returncode != 0
            assert f"is one of the site's images: {HIDDEN}" in done.stderr, (name, done)
    script = f"#!/bin/sh\n#SLIPWAY --image={BUSYBOX}\ntrue\n"
    assert HIDDEN in jobs.shell("slipway sbatch", stdin=script).stderr


def test_a_file_that_is_exchanged_while_its_job_waits(jobs: Batch, cluster: Cluster) -> None:
    as_alice(cluster, f"cp {FOLDER}/copy.sif {FOLDER}/mine.sif; chmod u+w {FOLDER}/mine.sif")
    change_id(cluster, f"{FOLDER}/mine.sif")
    job = jobs.submit("#!/bin/sh\necho ran\n", f"--image={FOLDER}/mine.sif", "--hold")
    as_alice(cluster, f"mv -f {FOLDER}/copy.sif {FOLDER}/mine.sif")
    jobs.shell(f"scontrol release {job}")
    assert jobs.end(job).exit_code == "70:0"
    assert f"mine.sif is one of the site's images: {HIDDEN}" in jobs.output(job)


def test_a_copy_with_another_id_is_another_image(alice: Api, cluster: Cluster) -> None:
    """What the documentation says is not recognised: only permissions keep a file from her."""
    as_alice(cluster, f"chmod u+w {FOLDER}/copy.sif")
    change_id(cluster, f"{FOLDER}/copy.sif")
    alice.wait_state(launch_image(alice, "images/copy.sif"), "RUNNING")


def test_its_path_and_a_copy_in_jupyterhub(make_hub: MakeHub, alice: Api) -> None:
    hub: HubApi = make_hub("alice")
    try:
        refused = hub.start("hidden", launch_body(BUSYBOX))
        assert refused.status_code == 422
        assert OF_SITE + HIDDEN in refused.json()["message"]
        # The node refuses it, before or after JupyterHub answers.
        assert hub.start("copy", launch_body("images/copy.sif")).status_code in (202, 424)
        (found,) = wait_for("its session", lambda: sessions_at(alice, path_of("alice", "copy")))
        alice.wait_state(found["id"], *OVER, seconds=90)
        assert HIDDEN in end_text(alice, found["id"])
    finally:
        hub.clean()


def test_a_retired_image_by_path_and_as_a_copy(alice: Api, bob: Api, cluster: Cluster) -> None:
    name = f"attic-{cluster.project}"
    place = f"{IMAGES}/{name}/1"
    make = f"mkdir -p {place} && cp -L {BUSYBOX} {place}/image.sif && touch {place}/retired"
    toml = f"printf 'title = \"Attic 1\"\\n' > {place}/image.toml"
    try:
        cluster.shell("portal", make)
        # Another id than BusyBox's, which bob may start; the portal reads it with the description.
        cluster.run("portal", "python3", "-c", CHANGE_ID, f"{place}/image.sif")
        cluster.shell("portal", toml)
        reason = f"{name} 1 was retired by an administrator"

        def refused() -> bool:
            answer = bob("POST", "/sessions", json=launch_body(f"{place}/image.sif"))
            if answer.status_code == 201:
                bob.launched += [one["id"] for one in answer.json()["sessions"]]
            return answer.status_code == 422 and OF_SITE + reason in answer.text

        wait_for("the mark in the catalogue", refused, LEARNT, 5.0)
        wait_for_catalog()
        as_alice(cluster, f"cp {place}/image.sif {FOLDER}/kept.sif")
        assert reason in end_text(alice, launch_image(alice, "images/kept.sif"))
    finally:
        cluster.shell("portal", f"rm -rf {IMAGES}/{name}")
