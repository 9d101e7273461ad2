"""The formats of the log."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

from ottla.cli.log_output import JsonFormatter, TextFormatter, parse_levels

ROOT = Path(__file__).resolve().parents[2]


def record(message: str, *arguments: object, failed: bool = False) -> logging.LogRecord:
    info = None
    if failed:
        try:
            raise ValueError("two\nlines")
        except ValueError:
            info = sys.exc_info()
    return logging.LogRecord("ottla.log.segment", logging.WARNING, __file__, 1, message, arguments, info)


def test_a_client_cannot_begin_a_line() -> None:
    text = TextFormatter().format(record("from %s", "me\r\n2026-01-01 ERROR ottla.broker: forged"))
    assert text.count("\n") == 0
    assert "\\r\\n2026" in text
    assert " WARNING ottla.log.segment: from me" in text


def test_a_trace_follows_its_line_in_text_and_is_a_field_in_json() -> None:
    text = TextFormatter().format(record("failed", failed=True))
    assert text.splitlines()[1].startswith("Traceback")
    line = JsonFormatter().format(record("failed", failed=True))
    assert "\n" not in line
    event = json.loads(line)
    assert event["exception"].startswith("Traceback")
    assert (event["area"], event["level"], event["message"]) == ("log", "warning", "failed")
    assert "request" not in event


def test_loggers_of_others_are_their_own_area() -> None:
    other = logging.LogRecord("kazoo.client", logging.INFO, __file__, 1, "x", (), None)
    assert json.loads(JsonFormatter().format(other))["area"] == "kazoo"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("info", ("info", {})),
        ("WARNING", ("warning", {})),
        ("log=debug", ("info", {"log": "debug"})),
        ("error, log=debug ,handlers=warning", ("error", {"log": "debug", "handlers": "warning"})),
    ],
)
def test_levels(text: str, expected: tuple[str, dict[str, str]]) -> None:
    assert parse_levels(text) == expected


@pytest.mark.parametrize("text", ["", "trace", "info,", "log=", "=info", "everything=info", "log=debug=info"])
def test_levels_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="--log-level"):
        parse_levels(text)


def test_every_folder_of_the_broker_that_logs_is_an_area() -> None:
    folders = {
        package.parent.name
        for package in ROOT.glob("*/__init__.py")
        if any("logging.getLogger(__name__)" in path.read_text() for path in package.parent.rglob("*.py"))
    } - {"tests", "compat_tests", "bench", "tools", "testing", "spark"}
    assert {"log", "view", "console"} <= folders
    assert {*parse_levels(",".join(f"{folder}=debug" for folder in folders))[1]} == folders
