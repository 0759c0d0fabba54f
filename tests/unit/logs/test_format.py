"""Lines of the log: text or JSON, one line each, with what is known of the request."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest

from portal.config.log import LogSettings
from portal.logs import context
from portal.logs.format import FIELDS, TRACE, JsonFormatter, TextFormatter
from portal.logs.setup import ACCESS, StderrHandler, configure
from portal.logs.throttle import LogThrottle


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """Forget the request of other tests, and of each here."""
    context.begin("")
    yield
    context.begin("")


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as it was before."""
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logging.getLogger(ACCESS).setLevel(logging.NOTSET)


def record(message: str, *args: object, error: BaseException | None = None) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord("portal.x", logging.WARNING, "", 1, message, args, info)


def test_text_has_time_level_logger_and_message() -> None:
    line = TextFormatter().format(record("%d routes", 3))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING portal\.x: 3 routes", line)


def test_what_is_known_of_the_request_is_added() -> None:
    context.begin("0a1b2c3d", "ffff0000")
    context.user.set("alice")
    line = TextFormatter().format(record("done"))
    assert line.endswith(": done user=alice session=ffff0000 request=0a1b2c3d")
    found = json.loads(JsonFormatter().format(record("done")))
    assert found["message"] == "done"
    assert (found["user"], found["session"], found["request"]) == ("alice", "ffff0000", "0a1b2c3d")
    assert (found["level"], found["logger"]) == ("WARNING", "portal.x")


def test_the_next_request_of_a_thread_inherits_nothing() -> None:
    context.begin("first", "session")
    context.user.set("alice")
    context.begin("second")
    assert context.fields() == {"request": "second"}


def test_about_holds_inside_only() -> None:
    with context.about(owner="bob", session_id="s"):
        assert context.fields() == {"user": "bob", "session": "s"}
    assert context.fields() == {}


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_no_message_can_pretend_to_be_another_line(formatter: logging.Formatter) -> None:
    line = formatter.format(
        record("GET %s", "/x\n2026 INFO slipway: login refused for root\r\x1b[0m")
    )
    assert "\n" not in line
    assert "\r" not in line
    assert "\x1b" not in line


def test_a_traceback_follows_in_text_and_is_a_field_of_json() -> None:
    try:
        raise ValueError("broken")
    except ValueError as error:
        found = record("it failed", error=error)
    text = TextFormatter().format(found).splitlines()
    assert text[0].endswith("it failed")
    assert text[-1] == f"{TRACE}ValueError: broken"
    assert all(line.startswith(TRACE) for line in text[1:])
    assert json.loads(JsonFormatter().format(found))["exception"].endswith("ValueError: broken")


ODD = [*map(chr, range(0x20)), *"\x7f\x85\xa0\u200e\u2028\u2029\u202e\ufeff\U000e0001\ud800"]
"""Control characters, separators of lines, signs that reorder or hide text, a lone surrogate."""
FORGED = "2026 WARNING slipway: login refused for root from 203.0.113.9"


def failed(text: str) -> logging.LogRecord:
    """A record with a traceback whose exception, cause and note have this text."""
    try:
        try:
            raise OSError(text)
        except OSError as cause:
            cause.add_note(text)
            raise ValueError(text) from cause
    except ValueError as error:
        return record("it failed %s", text, error=error)


@pytest.mark.parametrize("sign", ODD, ids=ascii)
def test_no_traceback_can_pretend_to_be_another_line(sign: str) -> None:
    text = f"broken{sign}{FORGED}"
    context.user.set(f"alice{sign}{FORGED}")
    first, *others = TextFormatter().format(failed(text)).split("\n")
    assert first.isprintable()
    assert len(others) > 8
    for line in others:
        assert line.startswith(TRACE)
        assert line.isprintable()
    line = JsonFormatter().format(failed(text))
    assert line.isprintable()
    found = json.loads(line)
    assert found["exception"].endswith(f"ValueError: {text}")
    assert found["user"] == f"alice{sign}{FORGED}"


@pytest.mark.parametrize("sign", ["x", "\0", "\U0001f600"], ids=ascii)
def test_no_line_is_so_long_that_the_journal_divides_it(sign: str) -> None:
    lines = TextFormatter().format(failed(sign * 50_000)).split("\n")
    assert max(len(line.encode()) for line in lines) < 48 * 1024
    assert len(json.loads(JsonFormatter().format(record(sign * 50_000)))["message"]) <= 8000


def test_letters_of_all_languages_stay_as_they_are() -> None:
    text = "Größe 数 \N{GRINNING FACE}"
    assert f"{TRACE}ValueError: {text}" in TextFormatter().format(failed(text)).split("\n")
    assert text in JsonFormatter().format(record(text))


def test_further_fields_are_for_json() -> None:
    found = record("GET / 200")
    setattr(found, FIELDS, {"status": 200, "ms": 3})
    parsed = json.loads(JsonFormatter().format(found))
    assert (parsed["status"], parsed["ms"]) == (200, 3)


def test_the_settings_choose_form_and_level(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(LogSettings(format="json", level="warning"))
    logging.getLogger("portal.y").info("not this")
    logging.getLogger("portal.y").warning("this")
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "this"


def test_configuring_again_adds_no_second_handler(root: logging.Logger) -> None:
    configure(LogSettings())
    configure(LogSettings(format="json"))
    assert len([one for one in root.handlers if isinstance(one, StderrHandler)]) == 1


def test_libraries_are_quiet_and_gunicorn_logs_like_the_portal(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = logging.getLogger("gunicorn.error")
    foreign.addHandler(logging.StreamHandler(sys.stdout))
    foreign.propagate = False
    configure(LogSettings())
    logging.getLogger("alembic.runtime.migration").info("Context impl SQLiteImpl.")
    logging.getLogger("gunicorn.error").info("Booting worker")
    seen = capsys.readouterr()
    assert seen.out == ""
    assert re.fullmatch(r"\S+ INFO gunicorn\.error: Booting worker\n", seen.err)


@pytest.mark.parametrize("on", [True, False])
def test_the_access_log_can_be_switched_off(
    root: logging.Logger, capsys: pytest.CaptureFixture[str], on: bool
) -> None:
    configure(LogSettings(access=on))
    logging.getLogger(ACCESS).info("GET / 200")
    assert bool(capsys.readouterr().err) is on


def test_a_cause_is_logged_once_a_minute() -> None:
    times = iter([0.0, 1.0, 59.0, 2.0, 60.0, 61.0])
    seldom = LogThrottle(lambda: next(times))
    assert [seldom("full"), seldom("full"), seldom("full")] == [True, False, False]
    assert seldom("away")
    assert [seldom("full"), seldom("full")] == [True, False]
