"""Two accounts, the folders in which both may write, and what must not change outside of them."""

from __future__ import annotations

import functools
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.attack.doors import Doors, Proxy
from tests.attack.throwaway import Account, throwaway
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for

HERE = Path(__file__).parent
MEDDLER = (HERE / "meddler.py").read_text()
CANARIES = (HERE / "canaries.py").read_text()
KINDS = ("his", "hers", "group", "world", "sticky")
"""His folder shared with her, hers shared with him, one of a group (2775), one of everybody, and a
sticky one of his."""
SECRET = "her-own-" + uuid.uuid4().hex

_FILES = """
cd /home/{name} && umask 077
mkdir -p .ssh canaries/folder/deep storage/other held
echo 'export OWN=1' > .bashrc; echo nobody > .ssh/authorized_keys
for file in canaries/{{secret,listed,program,folder/deep/file}} storage/other/file; do
    echo {secret} > $file
done
chmod 755 canaries/program; chmod 644 .bashrc
ln -sfn secret canaries/link
"""
_HOME = """
mkdir -p sources/tree/deep incoming
for number in $(seq 30); do head -c 65536 /dev/urandom > sources/tree/$number; done
echo end > sources/tree/deep/end
mkdir -p /dev/shm/{name}
chown -R {name}: . /dev/shm/{name}
python3 - <<'E'
import os, struct
rows = ((1, 6, -1), (2, 4, 1), (4, 0, -1), (0x10, 4, -1), (0x20, 0, -1))
data = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *row) for row in rows)
os.setxattr("canaries/listed", "system.posix_acl_access", data)
os.setxattr("canaries/listed", "user.hers", b"hers")
E
"""
_PLACES = """
mkdir -p {places} && cd {places} && chmod 755 .
install -d -m 2775 -g {group} group; install -d -m 777 world; install -d -m 1777 -o {group} sticky
"""
_LINKS = """
for name in {names}; do
    cd /home/$name/storage
    for link in group world sticky across; do
        target={places}/$link; [ $link != across ] || target=/dev/shm/$name
        [ -h $link ] || rm -rf $link
        ln -sfn $target $link; chown -h $name: $link
    done
done
"""


@dataclass
class Person:
    """An account with a client of the portal."""

    account: Account
    token: str

    @property
    def name(self) -> str:
        return self.account.name

    @property
    def home(self) -> str:
        return f"/home/{self.name}"

    def api(self) -> Api:
        """A client with connections of its own."""
        return Api(self.account.cluster, self.name, self.token)

    @functools.cached_property
    def doors(self) -> Doors:
        """By HAProxy, for one thread."""
        return Doors(Proxy(self.api()))


@dataclass
class Shared:
    """She writes by the portal's doors; he meddles on the login node."""

    cluster: Cluster
    she: Person
    he: Person

    @property
    def places(self) -> str:
        return f"/home/{self.he.name}-places"

    def path(self, kind: str) -> str:
        """Where a folder is on the login node."""
        owners = {"his": self.he, "hers": self.she}
        return f"{owners[kind].home}/storage/{kind}" if kind in owners else f"{self.places}/{kind}"

    def location(self, kind: str, writer: Person | None = None) -> str:
        """The same folder as a writer names it, which is she if nobody else is named."""
        owner = {"his": self.he, "hers": self.she}.get(kind)
        if owner in (None, writer or self.she):
            return f"storage/{kind}"
        assert owner is not None
        return f"shared/{owner.name}/{kind}"

    def make(self) -> None:
        """Create everything."""
        for person in (self.she, self.he):
            script = (_FILES + _HOME).format(name=person.name, secret=SECRET)
            self.cluster.run("login", "bash", "-c", script)
        self.cluster.shell("login", _PLACES.format(places=self.places, group=self.he.name))
        self._link()
        for owner, folder, other in (
            (self.he, "his", self.she),
            (self.she, "hers", self.he),
            # The way to them stays open while access to the first ones is taken back.
            (self.he, "anchor", self.she),
            (self.she, "anchor", self.he),
        ):
            api, share = owner.api(), f"/folders/{folder}/shares/user/{other.name}"
            api.ask("POST", "/folders", 201, json={"name": folder})
            api.ask("PUT", share, 200, json={"access": "write"})
        for person in (self.she, self.he):  # the first ones make folders in the home directory
            person.doors.op_copy_tree("home/incoming", "", b"")
            person.doors.tus_pieces("home/incoming", "first", b"first")

    def _link(self) -> None:
        """Give both storage areas their links to places elsewhere."""
        names = f"{self.she.name} {self.he.name}"
        self.cluster.shell("login", _LINKS.format(places=self.places, names=names))

    def clear(self) -> None:
        """Empty the shared folders, and the sources of copies."""
        script = "find " + " ".join(map(self.path, KINDS)) + " -mindepth 1 -delete"
        for person in (self.she, self.he):
            script += f"; find {person.home}/sources -maxdepth 1 -type f -delete"
            script += f"; find {person.home}/incoming /dev/shm/{person.name} -mindepth 1 -delete"
        self.cluster.shell("login", script, check=False)

    # What must not change

    def look(self, **more: object) -> Json:
        """What canaries.py tells."""
        argv = ("python3", "-", json.dumps(more))
        answer: Json = json.loads(self.cluster.run("login", *argv, stdin=CANARIES))
        return answer

    def canaries(self, person: Person) -> list[str]:
        """What is outside of every shared folder and belongs to one of them."""
        names = (".bashrc", ".ssh", "canaries", "storage/other", "held")
        return [f"{person.home}/{name}" for name in names]

    def outside(self, *people: Person, **more: object) -> dict[str, Json]:
        """Homes and the canaries in them, as they are now; hers if nobody is named.

        `more`: as for look(), inodes below a folder.
        """
        whose = people or (self.she,)
        trees = [path for person in whose for path in self.canaries(person)]
        tops = [path for person in whose for path in (person.home, f"{person.home}/storage")]
        looked = self.look(trees=trees, tops=tops, **more)
        return {**looked["trees"], **looked["tops"], **looked["inodes"]}

    def restore(self, outside: dict[str, Json]) -> None:
        """Undo what an attack that succeeded has done, or who meddles with what is his own."""
        for person in (self.she, self.he):
            script = _FILES.format(name=person.name, secret=SECRET)
            self.cluster.run("login", "bash", "-c", script)
        self._link()
        self.look(restore=outside)

    # What he does

    @contextmanager
    def meddling(
        self, act: str, order: Json, seconds: float = 60, who: Person | None = None
    ) -> Iterator[Json]:
        """He is at work meanwhile; the report is filled when he has ended."""
        meddler = who or self.he
        stop = f"/tmp/stop-{uuid.uuid4().hex}"
        text = json.dumps({"act": act, "seconds": seconds, "stop": stop, **order})
        report: Json = {}

        def work() -> None:
            argv = ("python3", "-", text)
            printed = self.cluster.run(
                "login", *argv, user=meddler.name, stdin=MEDDLER, seconds=seconds + 30
            )
            report.update(json.loads(printed))

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield report
        finally:
            self.cluster.run("login", "touch", stop)
            thread.join()
            self.cluster.run("login", "rm", stop)

    def holds(self, script: str) -> bool:
        """Whether a shell script on the login node succeeds."""
        return self.cluster.attempt("exec", "login", "--", "sh", "-c", script).returncode == 0

    def wait_for_bait(self, path: str) -> None:
        """Wait until his file with every permission lies there."""
        script = f"[ $(stat -c %a {path} 2>/dev/null || echo none) = 6777 ]"
        wait_for("the bait", lambda: self.holds(script), 10, 0.02)

    def end_servers(self) -> None:
        """Kill her file servers."""
        self.cluster.shell("login", f"pkill -9 -u {self.she.name} -f '[f]ile-server' || true")


def differences(before: dict[str, Json], after: dict[str, Json]) -> list[str]:
    """What has changed, in words."""
    lines = []
    for path, about in before.items():
        now = after.get(path, {})
        lines += [
            f"{path}: {key} was {value}, is {now.get(key, 'gone')}"
            for key, value in about.items()
            if now.get(key) != value
        ]
    return lines


@contextmanager
def shared_place(cluster: Cluster) -> Iterator[Shared]:
    """Two accounts and their folders, which are removed afterwards."""
    with throwaway(cluster, "login") as his, throwaway(cluster, "login") as hers:
        cluster.run("login", "usermod", "--append", "--groups", his.name, hers.name)
        she, he = (Person(who, who.token()) for who in (hers, his))
        place = Shared(cluster, she, he)
        try:
            place.make()
            yield place
        finally:
            cluster.run("login", "gpasswd", "--delete", hers.name, his.name)
            folders = f"{place.places} /dev/shm/{hers.name} /dev/shm/{his.name}"
            ending = f"pkill -KILL -u {hers.uid},{his.uid}; sleep 0.5; rm -rf {folders}"
            cluster.shell("login", ending)
