"""The load of one part of the campaign; runs in the network of the portal, where each client has
an address of its own (127.0.0.0/8), and reads what to do from standard input."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import ssl
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from bench.centre.http import Portal
from bench.centre.people import Person, Runner, Tab
from bench.centre.sockets import WebSocket

Json = dict[str, Any]


def _address(number: int) -> str:
    """An address of a client's own; those of runners are few, as nodes are."""
    return f"127.{1 + number // 62500}.{number // 250 % 250}.{number % 250 + 1}"


def _portal(order: Json, port: int, host: str, secure: bool) -> Portal:
    context = None
    if secure:
        context = ssl.create_default_context(cadata=order["ca"])
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return Portal(port, host, order["origin"], context)


def _people(order: Json) -> list[Person]:
    portal = _portal(order, 8080, order["host"], order["origin"].startswith("https:"))
    return [
        Person(portal, each["name"], each["password"], _address(number), each.get("cookies") or {})
        for number, each in enumerate(order["people"])
    ]


def _sum(counters: list[Counter[Any]]) -> Json:
    return {str(key): count for key, count in sum(counters, Counter()).items()}


async def log_in(order: Json) -> Json:
    """Everybody logs in within some seconds."""
    people = _people(order)
    problems = await _spread([person.log_in for person in people], order["seconds"])
    return {
        "cookies": {
            person.name: person.cookies
            for person, problem in zip(people, problems, strict=True)
            if not problem
        },
        "problems": [problem for problem in problems if problem],
        "refused": _sum([person.refusals for person in people]),
    }


async def launch(order: Json) -> Json:
    """Everybody launches within some seconds."""
    people = _people(order)
    launches = await _spread([person.launch for person in people], order["seconds"])
    return {
        "launches": [asdict(each) for each in launches],
        "refused": _sum([person.refusals for person in people]),
    }


async def _spread(actions: Sequence[Callable[[], Awaitable[Any]]], seconds: float) -> list[Any]:
    async def later(action: Callable[[], Awaitable[Any]], pause: float) -> Any:
        await asyncio.sleep(pause)
        return await action()

    step = seconds / len(actions)
    tasks = [later(action, number * step) for number, action in enumerate(actions)]
    return await asyncio.gather(*tasks)


async def visit(order: Json) -> Json:
    """Everybody loads a page within some seconds."""
    people = _people(order)
    pages = [partial(person.visit, order["path"]) for person in people]
    visits = await _spread(pages, order["seconds"])
    return {
        "problems": [problem for problem, _ in visits if problem],
        "seconds": sorted(took for problem, took in visits if not problem),
        "refused": _sum([person.refusals for person in people]),
    }


async def websockets(order: Json) -> Json:
    """Open WebSockets to an app, leave them open for some seconds, and have each answer a ping."""
    portal = _portal(order, order["port"], order["host"], order["origin"].startswith("https:"))
    sockets = [
        WebSocket(portal, _address(n % 1000), order["cookies"]) for n in range(order["number"])
    ]
    opened = await _spread(
        [partial(each.open, order["path"]) for each in sockets], order["seconds"]
    )
    await asyncio.sleep(order["idle"])
    pongs = await asyncio.gather(*(each.ping() for each in sockets if each.stream))
    for each in sockets:
        each.close()
    return {"opened": dict(Counter(map(str, opened))), "pongs": sum(pongs)}


async def tabs(order: Json) -> Json:
    """Tabs of people who are logged in, and heartbeats of sessions meanwhile."""
    people = {person.name: person for person in _people(order)}
    opened = [
        Tab(people[each["person"]], each["page"], each["path"], watched=each.get("watched", False))
        for each in order["tabs"]
    ]
    portal = _portal(order, 8443, "portal", True)
    beats = [
        Runner(portal, _address(60000 + n % 250), each["id"], each["token"], order["every"])
        for n, each in enumerate(order["runners"])
    ]
    random.shuffle(opened)

    async def open_later(tab: Tab, pause: float) -> None:
        await asyncio.sleep(pause)
        await tab.run(order["seconds"] - pause)

    ramp = order["ramp"] / max(len(opened), 1)
    started = time.process_time()
    await asyncio.gather(
        *(open_later(tab, number * ramp) for number, tab in enumerate(opened)),
        *(beat.run(order["seconds"]) for beat in beats),
    )
    return {
        "answers": _sum([tab.answers for tab in opened]),
        "beats": _sum([beat.answers for beat in beats]),
        "contents": {tab.person.name: tab.contents for tab in opened if tab.watched},
        "own_cpu": time.process_time() - started,
    }


ACTIONS = {
    "log_in": log_in,
    "launch": launch,
    "tabs": tabs,
    "visit": visit,
    "websockets": websockets,
}


def main() -> None:
    """Carry out the action on standard input, and print its results."""
    order = json.load(sys.stdin)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    json.dump(asyncio.run(ACTIONS[order["action"]](order)), sys.stdout)


if __name__ == "__main__":
    main()
