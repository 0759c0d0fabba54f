"""People at the pages, and the runners of their sessions, as clients that do what those do."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http import HTTPStatus
from pathlib import Path

from bench.centre.http import Answer, Client, Portal
from portal.node.runner.callback import spread, until_next

ROOT = Path(__file__).parents[2]
PACE = (ROOT / "portal" / "web" / "client" / "common" / "pace.js").read_text(encoding="utf-8")
TRIES = 6
"""Presses of a button that the portal refuses, before somebody gives up."""
OPEN = 180.0
"""Seconds that somebody waits for a page that says what it waits for."""
BUSY = 5.0
"""Seconds before somebody presses again, where the portal names none."""


def _of_page(name: str) -> float:
    """A constant of pace.js."""
    match = re.search(rf"const {name} = ([\d_.]+);", PACE)
    assert match, f"pace.js has no constant {name}"
    return float(match[1].replace("_", ""))


class Pace:
    """The pauses between the polls of a visible page, as pace.js computes them; in seconds."""

    USUAL, LONGEST = _of_page("USUAL") / 1000, _of_page("LONGEST") / 1000
    SHARE, RECOVERY, SPREAD = _of_page("SHARE"), _of_page("RECOVERY"), _of_page("SPREAD")

    def __init__(self) -> None:
        self.pause = self.USUAL
        self.failures = 0

    def answered(self, took: float) -> None:
        """After an answer that took so many seconds."""
        usual = took * self.SHARE
        self._set(usual if self.failures else max(usual, self.pause / self.RECOVERY))
        self.failures = 0

    def refused(self, seconds: float) -> None:
        """After a refusal that asks for these seconds."""
        self._set(max(self.pause * 2, seconds))
        self.failures = 0

    def failed(self) -> None:
        """After no answer, or an error."""
        self._set(self.pause * 2)
        self.failures += 1

    def next(self) -> float:
        """Seconds until the next poll."""
        spread = 1 + self.SPREAD * random.random()  # not security relevant
        return self.pause * (spread if self.pause > self.USUAL else 1)

    def _set(self, pause: float) -> None:
        self.pause = min(max(pause, self.USUAL), self.LONGEST)


class Form(HTMLParser):
    """The fields that a browser would send of the form with this id or action."""

    def __init__(self, form: str, page: str) -> None:
        super().__init__()
        self.fields: list[tuple[str, str]] = []
        self._form = form
        self._inside = False
        self._select = ""
        self._options: list[tuple[str, bool]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read a field."""
        about = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._inside = self._form in (about.get("id"), about.get("action"))
        if not self._inside or "disabled" in about:
            return
        if tag == "select":
            self._select, self._options = about.get("name", ""), []
        elif tag == "option" and self._select:
            self._options.append((about.get("value", ""), "selected" in about))
        elif tag == "input" and about.get("name"):
            ticked = about.get("type") not in ("checkbox", "radio") or "checked" in about
            if ticked and about.get("type") != "submit":
                self.fields.append((about["name"], about.get("value", "")))
        elif tag == "textarea" and about.get("name"):
            self.fields.append((about["name"], ""))

    def handle_endtag(self, tag: str) -> None:
        """Note what is selected."""
        if tag == "form":
            self._inside = False
        if tag == "select" and self._select:
            chosen = [value for value, selected in self._options if selected]
            usual = [value for value, _ in self._options[:1]]
            self.fields += [(self._select, value) for value in chosen or usual]
            self._select = ""


def _token(page: str) -> str:
    match = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)
    return match[1] if match else ""


@dataclass
class Person:
    """Somebody with a browser, at an address of their own."""

    portal: Portal
    name: str
    password: str
    address: str
    cookies: dict[str, str] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)
    """How often the portal was too busy, by page."""

    def client(self) -> Client:
        """A connection with this person's cookies."""
        return Client(self.portal, self.address, self.cookies)

    async def log_in(self) -> str:
        """Log in; returns "" or why that failed."""
        client = self.client()
        page = await self._insist(client, "login page", "/login")
        fields = [
            ("csrf_token", _token(page.body)),
            ("username", self.name),
            ("password", self.password),
        ]
        answer = await self._insist(client, "login", "/login", fields)
        client.close()
        ok = answer.status in (HTTPStatus.SEE_OTHER, HTTPStatus.FOUND)
        return "" if ok else f"log-in: {answer.status}"

    async def launch(self) -> Launch:
        """Open the wizard and press Launch, again as long as the portal is too busy."""
        client = self.client()
        page = await self._insist(client, "wizard", "/sessions/new")
        fields = [*Form("wizard", page.body).fields, ("confirmed", "1")]
        if page.status != HTTPStatus.OK:
            return Launch(self.name, f"wizard: {page.status}")
        started = time.monotonic()
        before = self.refusals["launch"]
        answer = await self._insist(client, "launch", "/sessions", fields)
        client.close()
        ids = re.findall(r"[?&]new=([0-9a-f,]+)", answer.headers.get("hx-redirect", ""))
        problem = "" if ids else f"launch: {answer.status} {_problem(answer.body)}"
        return Launch(
            self.name, problem, ids[0].split(",") if ids else [], time.monotonic() - started,
            self.refusals["launch"] - before,
        )  # fmt: skip

    async def visit(self, path: str) -> tuple[str, float]:
        """Load a page; returns "" or what was wrong with it, and the seconds it took."""
        client, began = self.client(), time.monotonic()
        page = await self._insist(client, "page", path)
        # What is being started is loaded again by the browser, as long as the page is open.
        while "refresh" in page.headers and time.monotonic() - began < OPEN:
            await asyncio.sleep(float(page.headers["refresh"]))
            page = await self._insist(client, "page", path)
        client.close()
        took = time.monotonic() - began
        return "" if page.status == HTTPStatus.OK else f"{path}: {page.status}", took

    async def _insist(
        self, client: Client, page: str, path: str, fields: list[tuple[str, str]] | None = None
    ) -> Answer:
        """Repeat a request as somebody does who reads that the portal is busy."""
        for number in range(TRIES):
            if fields is None:
                answer = await client.get(path)
            else:
                answer = await client.post(
                    path, fields, **({"HX_Request": "true"} if page == "launch" else {})
                )
            if answer.status and (not answer.refused or "refresh" in answer.headers):
                break
            self.refusals[page] += 1
            if number < TRIES - 1:
                await asyncio.sleep((answer.pause or BUSY) * random.uniform(1, 1.5))
        return answer


def _problem(page: str) -> str:
    match = re.search(r'role="alert">.*?<span>(.*?)</span>', page, re.S)
    return " ".join(re.sub("<[^>]+>", " ", match[1]).split()) if match else ""


@dataclass
class Launch:
    """The result of a launch."""

    person: str
    problem: str
    ids: list[str] = field(default_factory=list)
    seconds: float = 0.0
    refused: int = 0


@dataclass
class Tab:
    """An open page that polls."""

    person: Person
    page: str
    path: str
    """The path of its polls."""
    answers: Counter[int] = field(default_factory=Counter)
    contents: list[tuple[float, str]] = field(default_factory=list)
    """Contents with their times of arrival; kept if `watched`."""
    watched: bool = False

    async def run(self, seconds: float) -> None:
        """Open the page, and poll until the time is over."""
        client, pace, until = self.person.client(), Pace(), time.monotonic() + seconds
        page = await client.get(self.page)
        self.answers[page.status] += 1
        match = re.search(r'data-mark="([^"]*)"', page.body)
        mark = match[1] if match else ""
        while (pause := pace.next()) + time.monotonic() < until:
            await asyncio.sleep(pause)
            asked = time.monotonic()
            answer = await client.get(self.path, HX_Request="true", If_None_Match=mark)
            took = time.monotonic() - asked
            self.answers[answer.status] += 1
            if HTTPStatus.OK <= answer.status < HTTPStatus.BAD_REQUEST:
                pace.answered(took)
                mark = answer.headers.get("etag", "").strip('"') or mark
            elif answer.refused:
                pace.refused(answer.pause)
            else:
                pace.failed()
            if self.watched and answer.status == HTTPStatus.OK:
                self.contents.append((time.time(), answer.body))
        client.close()


@dataclass
class Runner:
    """The runner of a session, of which only the heartbeats are sent."""

    portal: Portal
    address: str
    session: str
    token: str
    every: float
    """Seconds between two reports where the portal names none."""
    answers: Counter[int] = field(default_factory=Counter)

    async def run(self, seconds: float) -> None:
        """Report when the portal asks for it until the time is over, from a random moment on."""
        client, until = Client(self.portal, self.address), time.monotonic() + seconds
        headers = {"Authorization": f"Bearer {self.token}", "Slipway-Runner": "2"}
        headers["Content-Type"] = "application/json"
        path = f"/runner/v1/sessions/{self.session}/usage"
        await asyncio.sleep(random.uniform(0, self.every))
        for reading in self._readings():
            answer = await client.send("POST", path, json.dumps(reading), headers)
            self.answers[answer.status] += 1
            pause = self._pause(answer)
            if time.monotonic() + pause > until:
                break
            await asyncio.sleep(pause)
        client.close()

    def _pause(self, answer: Answer) -> float:
        """Seconds until the next report."""
        asked = json.loads(answer.body).get("next") if answer.status == HTTPStatus.OK else None
        return spread(self.every) if asked is None else until_next(asked, self.every)

    @staticmethod
    def _readings() -> Iterator[dict[str, object]]:
        used = random.uniform(0, 3600)
        while True:
            used += random.uniform(0, 10)
            yield {
                "cpu_seconds": used, "memory_bytes": random.randrange(10**8, 10**9),
                "memory_limit": 2 * 10**9, "apps": {"jupyterlab": "ready"}, "home_files": 3,
                "home_bytes": 4096,
            }  # fmt: skip
