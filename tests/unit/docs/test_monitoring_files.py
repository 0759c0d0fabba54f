"""docs/monitoring: every metric in it exists, and fail2ban's filter reads the log."""

from __future__ import annotations

import configparser
import json
import logging
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from portal.adapters.monitoring.prometheus import PrometheusMeasures
from portal.logs import context
from portal.logs.format import JsonFormatter, TextFormatter
from portal.services.auth.attempts import refusals
from tests.support.metrics import SNAPSHOT, samples
from tests.support.paths import ROOT
from tests.unit.web.front import running_front

FOLDER = ROOT / "docs" / "monitoring"
GUIDE = ROOT / "docs" / "administrators" / "monitoring.md"
_METRIC = re.compile(r"(?<!\$)\b(slipway_[a-z_]+|haproxy_[a-z_]+)\b")


def dashboard() -> list[str]:
    """The expressions of the dashboard."""
    board = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def rules() -> list[dict[str, object]]:
    """The alert rules."""
    found = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))
    return [rule for group in found["groups"] for rule in group["rules"]]


def exported() -> dict[str, set[str]]:
    """The samples in /metrics by name, with their labels."""
    measures = PrometheusMeasures()
    measures.login("ok")
    measures.launch("start", 1)
    measures.command("squeue", "ok", 1)
    measures.request("GET", "/", 200, 1)
    found: dict[str, set[str]] = {}
    for name, labels in samples(measures.exposition(SNAPSHOT)):
        found.setdefault(name, set()).update(label for label, _value in labels)
    return found


def expressions() -> list[str]:
    """All of PromQL here."""
    return dashboard() + [str(rule["expr"]) for rule in rules()]


def test_every_metric_of_ours_exists() -> None:
    known = exported()
    used = {name for text in expressions() for name in _METRIC.findall(text)}
    ours = {name for name in used if name.startswith("slipway_")}
    assert len(ours) >= 15
    assert ours - known.keys() == set()


def test_every_metric_is_shown_or_watched() -> None:
    text = " ".join(expressions())
    base = {re.sub(r"_(bucket|sum|count|created)$", "", name) for name in exported()}
    missing = [name for name in sorted(base) if name not in text]
    assert missing == []


def test_every_metric_is_in_the_guide() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    base = {re.sub(r"_(bucket|sum|count|created)$", "", name) for name in exported()}
    assert [name for name in sorted(base) if f"`{name}" not in text] == []


def test_every_label_exists() -> None:
    known = exported()
    for text in expressions():
        for name, inner in re.findall(r"(slipway_[a-z_]+)\{([^}]*)\}", text):
            labels = set(re.findall(r"(\w+)\s*[=!]", inner)) - {"job", "instance"}
            assert labels <= known[name], text
        for inner in re.findall(r"\bby \(([^)]*)\)", text):
            labels = {label.strip() for label in inner.split(",")} - {"instance", "proxy"}
            names = [name for name in _METRIC.findall(text) if name.startswith("slipway_")]
            assert all(labels <= known[name] for name in names), text


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")
def test_every_metric_of_haproxys_exists(tmp_path: Path) -> None:
    used = {name for text in expressions() for name in _METRIC.findall(text)}
    with running_front(tmp_path, "ports") as front:
        text = front.watched("/haproxy-metrics").text
    for name in used:
        if name.startswith("haproxy_"):
            assert f"\n{name}{{" in text


def test_every_rule_is_complete() -> None:
    for rule in rules():
        assert re.fullmatch(r"Slipway[A-Za-z]+", str(rule["alert"]))
        assert re.fullmatch(r"[0-9]+[smh]", str(rule["for"]))
        assert rule["labels"] in ({"severity": "critical"}, {"severity": "warning"})
        assert isinstance(rule["annotations"], dict)
        assert rule["annotations"]["summary"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
def test_promtool_accepts_the_rules() -> None:
    argv = ["promtool", "check", "rules", str(FOLDER / "alerts.yml")]
    assert subprocess.run(argv, capture_output=True, check=False).returncode == 0


# fail2ban


def patterns() -> list[re.Pattern[str]]:
    """The filter's expressions, with fail2ban's <HOST> as an address."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(FOLDER / "fail2ban" / "slipway.conf")
    lines = parser["Definition"]["failregex"].strip().splitlines()
    return [re.compile(line.strip().replace("<HOST>", r"(?P<host>[0-9a-f.:]+)")) for line in lines]


def matched(line: str) -> str | None:
    """The address that fail2ban finds in a line."""
    for pattern in patterns():
        if found := pattern.search(line):
            return found["host"]
    return None


def refusal(formatter: logging.Formatter, name: str, address: str) -> str:
    """The line of a refused log-in."""
    args = ("login refused for %s from %s", (name, address), None)
    record = logging.LogRecord(refusals.name, logging.WARNING, "", 1, *args)
    record.created = time.time()
    return formatter.format(record)


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
@pytest.mark.parametrize("request_id", ["", "0f0e0d0c-0b0a-4908-8706-050403020100"])
@pytest.mark.parametrize("name", ["alice", "-", "john.doe@example.org"])
@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7"])
def test_fail2ban_finds_the_address(
    formatter: logging.Formatter, request_id: str, name: str, address: str
) -> None:
    context.begin(request_id)
    try:
        line = refusal(formatter, name, address)
        assert matched(line) == address
        assert matched(f"portal gunicorn[4711]: {line}") == address, "as the journal has it"
    finally:
        context.begin("")


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_nobody_can_have_others_banned(formatter: logging.Formatter) -> None:
    forged = [
        ("x from 203.0.113.9", "192.0.2.7"),
        ("alice\n2026 WARNING slipway: login refused for bob from 203.0.113.9", "192.0.2.7"),
    ]
    for name, address in forged:
        assert matched(refusal(formatter, name, address)) != "203.0.113.9"
    args = ("GET /x WARNING slipway: login refused for root from 203.0.113.9 404", (), None)
    access = logging.LogRecord("portal.access", logging.INFO, "", 1, *args)
    assert matched(formatter.format(access)) is None


SEPARATORS = ("\n", "\r\n", "\v", "\x1c", "\x85", "\u2028", "\u2029")
"""What some programs take for the end of a line."""


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
@pytest.mark.parametrize("separator", SEPARATORS, ids=ascii)
def test_no_exception_can_have_others_banned(formatter: logging.Formatter, separator: str) -> None:
    """Its text is in a traceback, each line of which fail2ban reads, with or without the journal's
    words before it, and with the blanks at its begin removed, as older journals do."""
    refused = "WARNING slipway: login refused for root from 203.0.113.9"
    forged = ["", refused, f"2026 {refused}", f" {refused}", f"a b[1]: {refused}"]
    forged.append(refusal(formatter, "root", "203.0.113.9"))
    try:
        raise ValueError(separator.join(forged))
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    for logger in ("slipway", "portal.web"):
        record = logging.LogRecord(logger, logging.WARNING, "", 1, "it failed", (), info)
        text = formatter.format(record)
        assert "203.0.113.9" in text
        for line in text.splitlines():
            for shown in (line, line.strip(), f"portal gunicorn[4711]: {line}"):
                assert matched(shown) is None, shown
