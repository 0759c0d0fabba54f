"""The cost of our route to an app against other routes to the same upstream, in turns.

    bench/proxy.sh [--rounds 7] [--seconds 2] [--connections 32] [--pings 3000] [--only ours]

runs it in a container with the portal's HAProxy; nothing else needs to run, `make up` must have
built the portal's image. The routes:

- direct  nginx with the files, an echo and a sink (bench/upstream.py), on TCP ports of loopback.
- nginx   one plain nginx in between, with keep-alive: the minimum cost of any proxy.
- CHP     JupyterHub's configurable-http-proxy in between, also plain.
- ours    HAProxy with the portal's own configuration (cookie, map look-up, header rules), mutual
  TLS, the session's gateway, unix sockets.

wrk sends the requests, with one thread and a browser's headers. All share the machine's processors,
so less work means more requests: the last column is the processor time of the route itself, per
request or gigabyte, and hardly depends on other load. Ratios are medians of the ratios in each
round; each round begins with another route.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.routes import GIGABYTE, MEGABYTE, Endpoint, Route, Routes, children

BROWSER = (
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Accept: application/json, text/plain, */*",
    "Accept-Language: en-US,en;q=0.5",
    "Accept-Encoding: gzip, deflate",
    "Sec-Fetch-Dest: empty",
    "Sec-Fetch-Mode: cors",
    "Sec-Fetch-Site: same-origin",
)
PING = b"x" * 64
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Result:
    """One measurement of one route."""

    rate: float
    """Requests, or bytes, per second."""
    work: float
    """Processor seconds of the route per request or byte."""


Measure = Callable[[Route], Result]


def headers(endpoint: Endpoint) -> list[str]:
    """The headers that a browser sends to this endpoint."""
    site = [
        f"Host: {endpoint.host}",
        f"Origin: http://{endpoint.host}",
        f"Referer: http://{endpoint.host}/lab",
    ]
    cookies = ["_xsrf=2|6c1f0a1e|5b1d9f4c0e7d", *([endpoint.cookie] if endpoint.cookie else [])]
    return [*site, *BROWSER, f"Cookie: {'; '.join(cookies)}"]


def processor_time(route: Route) -> float:
    """Processor seconds used by the processes of a route."""
    ticks = 0
    for program in route.programs:
        for pid in (program, *children(program)):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def requests(path: str, seconds: int, connections: int) -> Measure:
    """Request a file as often as possible."""

    def measure(route: Route) -> Result:
        argv = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s"]
        for header in headers(route.files):
            argv += ["-H", header]
        before = processor_time(route)
        argv.append(f"http://127.0.0.1:{route.files.port}/{path}")
        text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        if "Non-2xx" in text or "Socket errors" in text or " 0 requests" in text:
            raise SystemExit(f"{route.name}: {text}")
        count = re.search(r"(\d+) requests in", text)
        rate = re.search(r"Requests/sec: +([\d.]+)", text)
        assert count, text
        assert rate, text
        return Result(float(rate[1]), (processor_time(route) - before) / int(count[1]))

    return measure


def connect(endpoint: Endpoint, line: str, *more: str) -> socket.socket:
    """Send the head of a request."""
    connection = socket.create_connection(("127.0.0.1", endpoint.port), 60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head = [f"{line} HTTP/1.1", *headers(endpoint), *more]
    connection.sendall("\r\n".join([*head, "", ""]).encode())
    return connection


def head_of(connection: socket.socket, status: str) -> bytes:
    """Read the head of the response; return the bytes after it."""
    got = b""
    while b"\r\n\r\n" not in got:
        part = connection.recv(65536)
        assert part, got
        got += part
    head, _, body = got.partition(b"\r\n\r\n")
    if head.split()[1] != status.encode():
        raise SystemExit(head.decode())
    return body


def transfer(route: Route, carry: Callable[[], None]) -> Result:
    """The rate of a transfer of one gigabyte."""
    before, start = processor_time(route), time.perf_counter()
    carry()
    taken = time.perf_counter() - start
    return Result(GIGABYTE / taken, (processor_time(route) - before) / GIGABYTE)


def download(route: Route) -> Result:
    """Fetch a gigabyte and discard it."""
    buffer = bytearray(MEGABYTE)

    def carry() -> None:
        with connect(route.files, "GET /gigabyte") as connection:
            missing = GIGABYTE - len(head_of(connection, "200"))
            while missing:
                got = connection.recv_into(buffer)
                assert got, f"{missing} bytes are missing"
                missing -= got

    return transfer(route, carry)


def upload(route: Route) -> Result:
    """Send a gigabyte."""
    block = bytes(MEGABYTE)

    def carry() -> None:
        with connect(route.echo, "POST /echo", f"Content-Length: {GIGABYTE}") as connection:
            for _ in range(GIGABYTE // MEGABYTE):
                connection.sendall(block)
            head_of(connection, "204")

    return transfer(route, carry)


def pings(routes: list[Route], count: int) -> dict[str, list[float]]:
    """Round trips of small messages in milliseconds, on each route in turn."""
    open_ones = {route.name: websocket(route.echo) for route in routes}
    taken: dict[str, list[float]] = {name: [] for name in open_ones}
    for number in range(count + 100):
        for name, connection in open_ones.items():
            start = time.perf_counter()
            connection.sendall(PING)
            missing = len(PING)
            while missing:
                missing -= len(connection.recv(missing))
            if number >= 100:
                taken[name].append((time.perf_counter() - start) * 1000)
    for connection in open_ones.values():
        connection.close()
    return taken


def websocket(endpoint: Endpoint) -> socket.socket:
    """An open WebSocket."""
    upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    connection = connect(endpoint, "GET /echo", *upgrade, key)
    assert head_of(connection, "101") == b""
    return connection


def compare(routes: list[Route], measure: Measure, rounds: int) -> dict[str, list[Result]]:
    """All rounds, each beginning with another route; the very first one is a warm-up."""
    for route in routes:
        measure(route)
    results: dict[str, list[Result]] = {route.name: [] for route in routes}
    for number in range(rounds):
        first = number % len(routes)
        for route in routes[first:] + routes[:first]:
            results[route.name].append(measure(route))
    return results


def ratio(results: dict[str, list[Result]], name: str, to: str) -> str:
    """The median of the rounds' ratios."""
    if not results.get(to) or not results.get(name):
        return "     -"
    pairs = zip(results[name], results[to], strict=True)
    return f"{statistics.median(ours.rate / theirs.rate for ours, theirs in pairs):6.2f}"


def table(title: str, unit: str, scale: float, work: str, results: dict[str, list[Result]]) -> str:
    """One kind of measurement as text."""
    parts = 1e6 if work == "us each" else GIGABYTE
    lines = [f"{title:24}{unit:>10}  of nginx  of CHP  of direct  processor, {work}"]
    for name, measured in results.items():
        rate = statistics.median(result.rate for result in measured) / scale
        used = statistics.median(result.work for result in measured) * parts
        ratios = [ratio(results, name, to) for to in ("nginx", "CHP", "direct")]
        lines.append(
            f"  {name:22}{rate:10,.0f}    {ratios[0]}  {ratios[1]}     {ratios[2]}  {used:18.2f}"
        )
    return "\n".join(lines)


def latencies(taken: dict[str, list[float]]) -> str:
    """Round-trip times as text."""
    lines = [f"{'WebSocket, ms':24}{'p50':>10}{'p99':>8}   p50 beyond direct   p99 beyond direct"]
    points = {name: statistics.quantiles(all_of, n=100) for name, all_of in taken.items()}
    for name, sample in points.items():
        beyond = [sample[at] - points["direct"][at] for at in (49, 98)]
        lines.append(
            f"  {name:22}{sample[49]:10.3f}{sample[98]:8.3f}{beyond[0]:+20.3f}{beyond[1]:+20.3f}"
        )
    return "\n".join(lines)


def memory(pid: int) -> str:
    """Resident and proportional size in MB; a shared page counts once among its users."""
    rss = pss = 0
    for process in (pid, *children(pid)):
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
        rss += int(re.findall(r"^Rss: +(\d+)", text, re.M)[0])
        pss += int(re.findall(r"^Pss: +(\d+)", text, re.M)[0])
    return f"{rss / 1024:.1f} ({pss / 1024:.1f} proportional)"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--pings", type=int, default=3000)
    parser.add_argument("--only", nargs="*", default=[], help="routes, to look closer at some")
    parser.add_argument("--what", nargs="*", default=[], help="small, megabyte, bulk, websocket")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    chosen = options.what or ["small", "megabyte", "bulk", "websocket"]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        running = Routes(Path(folder))
        with running as all_routes:
            routes = [
                route
                for route in all_routes
                if route.name in (options.only or [w.name for w in all_routes])
            ]
            memories = [(memory(running.ours_gateway), memory(running.ours_front))]
            run(routes, options, chosen)
            memories.append((memory(running.ours_gateway), memory(running.ours_front)))
    for moment, (gate, front) in zip(("idle", "after the load"), memories, strict=True):
        print(f"memory {moment}, MB: gateway {gate}, portal's HAProxy {front}")


def run(routes: list[Route], options: argparse.Namespace, chosen: list[str]) -> None:
    """Run the chosen measurements."""
    count, seconds, rounds = options.connections, options.seconds, options.rounds
    if "small" in chosen:
        measured = compare(routes, requests("small", seconds, count), rounds)
        print(table(f"1 KB, {count} connections", "1/s", 1, "us each", measured), flush=True)
    if "megabyte" in chosen:
        measured = compare(routes, requests("megabyte", seconds, count), rounds)
        print(table(f"1 MB, {count} connections", "1/s", 1, "us each", measured), flush=True)
    if "bulk" in chosen:
        for title, measure in (("download of 1 GB", download), ("upload of 1 GB", upload)):
            measured = compare(routes, measure, rounds)
            print(table(title, "MB/s", MEGABYTE, "s/GB", measured), flush=True)
    if "websocket" in chosen:
        print(latencies(pings(routes, options.pings)), flush=True)


if __name__ == "__main__":
    main()
