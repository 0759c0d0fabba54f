"""The parts of the campaign: each puts a load on the portal and measures it."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from bench.centre import meters
from bench.centre.clients import Clients, Json
from bench.centre.people import Pace
from bench.centre.site import ACCOUNT, Site
from tests.support.client import Api, login, port_of
from tests.support.cluster import in_database, wait_for

OF_TABS = 250
"""The people who have tabs open."""
PAGES = (
    ("/sessions", "/sessions/rows"),
    ("/jobs", "/jobs/rows"),
    ("/jobs?state=pending", "/jobs/rows?state=pending"),
    ("/sessions/{session}", "/sessions/{session}/now"),
)
"""The tabs of each of them, and where these poll."""
PAUSED = "Paused"
"""The word of the Sessions page for a session whose job is suspended."""


@dataclass(frozen=True)
class Row:
    """One figure of the table."""

    part: str
    measure: str
    value: str
    wanted: str = ""
    fine: bool = True


class Campaign:
    """Runs parts on a prepared site."""

    def __init__(self, site: Site, tabs: int = 1000) -> None:
        self.site = site
        self.tabs = tabs
        self.cluster = site.cluster
        self.rows: list[Row] = []
        self.clients = Clients(site.cluster, lambda _name: site.password)

    def say(
        self, part: str, measure: str, value: object, wanted: str = "", *, fine: bool = True
    ) -> None:
        """Add a figure to the table."""
        row = Row(part, measure, str(value), wanted, fine)
        self.rows.append(row)
        print(line(row), flush=True)

    def used(self, part: str, before: meters.Reading, per: int = 0, unit: str = "") -> meters.Used:
        """Say what the portal's and Slurm's programs used since."""
        used = meters.read(self.cluster).since(before)
        shares = ", ".join(f"{name} {used.share(name):.0f} %" for name in used.cpu)
        shares += f"; all else here {100 * used.others / used.seconds:.0f} %"
        self.say(part, f"processor, of one core in {used.seconds:.0f} s", shares)
        if per:
            each = ", ".join(f"{name} {1000 * cpu / per:.1f}" for name, cpu in used.cpu.items())
            self.say(part, f"processor for each {unit}, ms", each)
        return used


def line(row: Row) -> str:
    """A line of the table."""
    verdict = "" if not row.wanted else ("  yes" if row.fine else "  NO")
    return f"{row.part:9} {row.measure:42} {row.value:60} {row.wanted:14}{verdict}".rstrip()


def first(campaign: Campaign) -> None:
    """The worker's first polls of a long queue after a start, until all of its jobs are stored."""
    cluster, size = campaign.cluster, campaign.site.size
    known = size.jobs // size.people * size.people + size.sessions
    with campaign.site.worker_stopped():
        stored = meters.followed(cluster)
        before = meters.read(cluster)

    def follows() -> bool:
        # The second poll begins after the first: rows of an earlier run say nothing.
        polled = meters.polls(cluster) >= before.polls + 2
        return polled and meters.followed(cluster) >= known

    wait_for("the jobs in the portal", follows, 600, 1)
    used = meters.read(cluster).since(before)
    campaign.say(
        "first",
        f"{known} jobs, {stored} in the database, after",
        f"{used.seconds:.0f} s (loaded machine)",
    )
    campaign.say(
        "first",
        "processor, s",
        f"worker {used.cpu['worker']:.1f}, login node {used.cpu['login']:.1f}",
    )


def logins(campaign: Campaign, seconds: float = 60.0) -> None:
    """Everybody logs in within a minute."""
    before = meters.read(campaign.cluster)
    people = campaign.site.people
    results = campaign.clients.log_in(people, seconds)
    if not results:
        return
    failed: Counter[str] = Counter(results["problems"])
    campaign.say(
        "logins",
        f"of {len(people)} in {seconds:.0f} s",
        f"{len(people) - failed.total()} logged in, {results['refused'] or 'none'} refused",
        "all",
        fine=not failed,
    )
    campaign.used("logins", before, len(people), "person")


def launch_class(campaign: Campaign, seconds: float = 60.0, patience: float = 180.0) -> None:
    """Everybody launches a session from the wizard within a minute."""
    people, cluster = campaign.site.people, campaign.cluster
    campaign.clients.log_in(people, seconds)
    before, began = meters.read(cluster), time.monotonic()
    results = campaign.clients.act("launch", people, seconds=seconds)
    launches = results["launches"]
    accepted = [identifier for each in launches for identifier in each["ids"]]
    refused, gave_up = (
        results["refused"],
        Counter(each["problem"] for each in launches if each["problem"]),
    )
    say = partial(campaign.say, "class")
    say("accepted", f"{len(accepted)} of {len(people)}", "all", fine=len(accepted) == len(people))
    say("refused answers", refused or "none", "no launch", fine="launch" not in refused)
    if gave_up:
        say("gave up", dict(gave_up))
    waits = sorted(each["seconds"] for each in launches if each["ids"]) or [0.0]
    say(
        "answer to Launch, s (loaded machine)",
        f"p50 {waits[len(waits) // 2]:.1f}, longest {waits[-1]:.1f}",
    )
    _await(campaign, accepted, began + seconds + patience)
    stored = _stored(campaign)
    say("seconds until all are in Slurm, from the first", f"{time.monotonic() - began:.0f}")
    jobs = Counter(cluster.run("ctl", "squeue", "-h", "-a", "-o", "%j").split())
    lost = sorted(set(accepted) - set(stored))
    doubled = [name for name in stored if jobs[name] > 1] + sorted(set(stored) - set(accepted))
    say("lost", len(lost), "0", fine=not lost)
    say("doubled", len(doubled), "0", fine=not doubled)
    there = sum(jobs[identifier] > 0 for identifier in accepted)
    wanted = f"all, {seconds + patience:.0f} s"
    say("in Slurm", f"{there} of {len(accepted)}", wanted, fine=there == len(accepted))
    campaign.used("class", before, max(len(accepted), 1), "launch")
    _end(campaign)


LAUNCHED = f"owner LIKE '{ACCOUNT}%' AND preset = '' AND state NOT IN ('FINISHED', 'FAILED')"
"""The condition of sessions that the campaign's people have launched, and are not over."""


def _stored(campaign: Campaign) -> list[str]:
    text = in_database(campaign.cluster, f"SELECT id FROM session WHERE {LAUNCHED}")
    return re.findall(r"[0-9a-f]{32}", text)


def _await(campaign: Campaign, sessions: Sequence[str], until: float) -> None:
    """Wait until Slurm has these sessions, or has refused them."""
    waiting = "SELECT id FROM session WHERE state = 'SUBMITTING'"
    while time.monotonic() < until:
        text = in_database(campaign.cluster, waiting)
        if not set(re.findall(r"[0-9a-f]{32}", text)) & set(sessions):
            return
        time.sleep(1)


def _end(campaign: Campaign) -> None:
    """Cancel what was launched, and wait until the portal has cleaned up."""

    def ended() -> bool:
        text = in_database(campaign.cluster, f"SELECT job_id FROM session WHERE {LAUNCHED}")
        if jobs := re.findall(r"\d+", text):
            campaign.cluster.run("ctl", "scancel", *jobs, seconds=120, check=False)
        return text == "[]\n"

    wait_for("the end of what was launched", ended, 600, 5)
    left = f"SELECT id FROM session WHERE NOT cleaned AND owner LIKE '{ACCOUNT}%' AND preset = ''"
    wait_for("clean homes", lambda: in_database(campaign.cluster, left) == "[]\n", 600, 5)


def tabs(campaign: Campaign, seconds: float = 90.0, ramp: float = 20.0, changes: int = 20) -> None:
    """Open tabs of many people, while the states of some of their jobs change."""
    site = campaign.site
    people = site.people[: min(OF_TABS, max(campaign.tabs // len(PAGES), 1))]
    campaign.clients.log_in(people, 60.0)
    sessions = {each["owner"]: each for each in reversed(site.running)}
    people = [name for name in campaign.clients.logged_in(people) if name in sessions]
    opened = [
        {
            "person": name,
            "page": page.format(session=sessions[name]["id"]),
            "path": path.format(session=sessions[name]["id"]),
            "watched": page == "/sessions",
        }
        for name in people
        for page, path in PAGES
    ]
    changed = [sessions[name] for name in people[:: max(len(people) // changes, 1)]][:changes]
    moments: dict[str, float] = {}
    before: list[meters.Reading] = []
    changer = threading.Thread(
        target=_suspend, args=(campaign, changed, moments, before, ramp + 5, seconds - ramp - 20)
    )
    changer.start()
    results = campaign.clients.act(
        "tabs", people, tabs=opened, runners=[], every=10, seconds=seconds, ramp=ramp
    )
    changer.join()
    used = campaign.used("tabs", before[0])
    say = partial(campaign.say, "tabs")
    each = 1000 * used.cpu["web"] / used.seconds / max(len(opened), 1)
    say("web for each open tab and second, ms", f"{each:.2f}", "0.5", fine=each <= 0.5)
    busy = (
        results["answers"].get("503", 0)
        + results["answers"].get("429", 0)
        + results["answers"].get("0", 0)
    )
    say(
        f"answers to {len(opened)} tabs of {len(people)} people",
        results["answers"],
        "no 503",
        fine=not busy,
    )
    say(
        "polls a second, all tabs",
        # They are open for half of the ramp less than the whole time, on average.
        f"{sum(results['answers'].values()) / (seconds - ramp / 2):.0f} "
        f"(unloaded: {len(opened) / Pace.USUAL:.0f})",
    )
    say("web, share of a core", f"{used.share('web'):.0f} %", "60 %", fine=used.share("web") <= 60)
    say(
        "polls of the worker a minute",
        f"{60 * used.polls / used.seconds:.0f}",
        "28",
        fine=used.polls * 60 >= 28 * used.seconds,
    )
    delays = sorted(_delays(results["contents"], changed, moments))
    shown = f"{len(delays)} of {len(moments)} shown"
    if delays:
        shown += f", p50 {delays[len(delays) // 2]:.1f} s, longest {delays[-1]:.1f} s"
    say(
        "changes of jobs' states",
        shown,
        "5 s",
        fine=len(delays) == len(moments) and delays[-1] <= 5,
    )
    say("the clients' own processor share", f"{100 * results['own_cpu'] / seconds:.0f} %")


def _suspend(
    campaign: Campaign,
    changed: Sequence[Json],
    moments: dict[str, float],
    before: list[meters.Reading],
    wait: float,
    span: float,
) -> None:
    """Once all tabs are open, suspend jobs one after the other; let all go on at the end."""
    time.sleep(wait)
    before.append(meters.read(campaign.cluster))
    for each in changed:
        began = time.monotonic()
        # Before the command: a page may show the change before the command has returned.
        moments[each["id"]] = time.time()
        campaign.cluster.run("ctl", "scontrol", "suspend", each["job"])
        time.sleep(max(span / len(changed) - (time.monotonic() - began), 0))
    time.sleep(15)
    campaign.cluster.run("ctl", "scontrol", "resume", ",".join(each["job"] for each in changed))


def _delays(
    contents: dict[str, list[tuple[float, str]]], changed: Sequence[Json], moments: dict[str, float]
) -> list[float]:
    delays = []
    for each in changed:
        for moment, body in contents.get(each["owner"], []):
            row = body.partition(f'id="s-{each["id"]}"')[2].partition("</tr>")[0]
            if moment >= moments[each["id"]] and PAUSED in row:
                delays.append(moment - moments[each["id"]])
                break
    return delays


def worker(campaign: Campaign, seconds: float = 60.0) -> None:
    """The worker alone, with nobody at the pages."""
    before = meters.read(campaign.cluster)
    time.sleep(seconds)
    used = campaign.used("worker", before)
    polls = 60 * used.polls / used.seconds
    campaign.say("worker", "polls a minute", f"{polls:.0f}", "28", fine=polls >= 28)
    campaign.say(
        "worker", "its calls of slurmctld a minute", f"{60 * used.calls / used.seconds:.0f}"
    )


def heartbeats(campaign: Campaign, seconds: float = 60.0) -> None:
    """Heartbeats of all sessions that run."""
    before = meters.read(campaign.cluster)
    results = campaign.clients.act(
        "tabs", [], tabs=[], runners=campaign.site.running, every=10, seconds=seconds, ramp=0
    )
    number = sum(results["beats"].values())
    campaign.say(
        "beats",
        f"answers to {number} of {len(campaign.site.running)} sessions",
        results["beats"],
        "all 200",
        fine=set(results["beats"]) == {"200"},
    )
    used = campaign.used("beats", before, number, "heartbeat")
    campaign.say(
        "beats",
        "web, share of a core",
        f"{used.share('web'):.0f} %",
        "5 %",
        fine=used.share("web") <= 5,
    )


FILE_SERVERS = """
ps -C slipway -o rss=,args= |
    awk '/ file-server/ { number += 1; kb += $1 } END { print number + 0, int(kb / 1024) }'
"""
OF_FILES = 200
"""The people who open their files at once."""


def files(campaign: Campaign, seconds: float = 20.0) -> None:
    """Many people open their files, for which each of them gets a file server."""
    people = campaign.site.people[:OF_FILES]
    campaign.clients.log_in(people, 60.0)
    campaign.cluster.shell("login", f"pkill -f '[f]ile-server.*{ACCOUNT}' || true")
    before = meters.read(campaign.cluster)
    results = campaign.clients.act("visit", people, path="/files/home", seconds=seconds)
    say = partial(campaign.say, "files")
    took = results["seconds"] or [0.0]
    problems: Counter[str] = Counter(results["problems"])
    fine = not problems
    say(
        f"of {len(people)} in {seconds:.0f} s",
        f"{len(results['seconds'])} see their home",
        "all",
        fine=fine,
    )
    say("refused answers", results["refused"] or "none", "none", fine=not results["refused"])
    if problems:
        say("problems", dict(problems))
    say("answer, s (loaded machine)", f"p50 {took[len(took) // 2]:.1f}, longest {took[-1]:.1f}")
    number, memory = campaign.cluster.shell("login", FILE_SERVERS).split()
    say(
        "file servers on the login node", f"{number}, {memory} MB (RSS, shared pages several times)"
    )
    campaign.used("files", before, len(people), "file server")


SOCKETS = 2000
STARTS = 5


def start(campaign: Campaign) -> None:
    """Sessions that start at once, one after the other, at this size."""
    cluster = campaign.cluster
    with campaign.site.free_node():
        api = Api(cluster, "alice", login(cluster, "alice"))
        try:
            took = sorted(_start(api) for _ in range(STARTS))
        finally:
            api.clean()
    campaign.say(
        "start", "POST to RUNNING, s (loaded machine)", ", ".join(f"{each:.1f}" for each in took)
    )


def _start(api: Api) -> float:
    began = time.monotonic()
    session = api.wait_state(api.launch()["id"], "RUNNING", seconds=120)
    took = time.monotonic() - began
    api.stop(session["id"])
    api.wait_state(session["id"], "FINISHED", seconds=120)
    return took


def sockets(campaign: Campaign, seconds: float = 30.0, idle: float = 20.0) -> None:
    """WebSockets of one app, which all stay open."""
    cluster = campaign.cluster
    with campaign.site.free_node():
        api = Api(cluster, "alice", login(cluster, "alice"))
        try:
            session = api.wait_state(
                api.launch(resources={"cpus": 1, "memory": "2g"})["id"], "RUNNING", seconds=120
            )
            visitor = api.open(session["id"], "jupyterlab")
            before = meters.read(cluster)
            port = port_of(visitor.origin)
            # An app's own port is the same inside of the container.
            port = 8080 if port == port_of(cluster.url) else port
            results = campaign.clients.act(
                "websockets", [], number=SOCKETS, path="/api/events/subscribe", seconds=seconds,
                idle=idle, port=port, host=urlsplit(visitor.origin).netloc,
                origin=visitor.origin,
                cookies=f"{visitor.cookie_name}={visitor.cookie}",
            )  # fmt: skip
            memory = cluster.shell("portal", HAPROXY_MEMORY).strip()
            opened, pongs = results["opened"].get("101", 0), results["pongs"]
            say = partial(campaign.say, "sockets")
            say(f"of {SOCKETS}", f"opened: {results['opened']}", "all", fine=opened == SOCKETS)
            say("answer after being idle", pongs, "all", fine=pongs == SOCKETS)
            say("memory of HAProxy afterwards", f"{memory} MB")
            campaign.used("sockets", before, SOCKETS, "WebSocket")
        finally:
            api.clean()


HAPROXY_MEMORY = "ps -C haproxy -o rss= | awk '{ kb += $1 } END { print int(kb / 1024) }'"

PARTS: dict[str, Callable[[Campaign], None]] = {
    "first": first,
    "worker": worker,
    "logins": logins,
    "class": launch_class,
    "tabs": tabs,
    "beats": heartbeats,
    "files": files,
    "start": start,
    "sockets": sockets,
}
