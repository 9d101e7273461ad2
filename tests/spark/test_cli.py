"""``ottla spark archive``: what is wrong with the options or the machine is one line on stderr and an exit status."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest
from typer.testing import CliRunner

from ottla.spark.cli import app


def outcome(*arguments: str) -> tuple[int, str]:
    """Exit status and stderr."""
    result = CliRunner().invoke(app, ["archive", *arguments])
    return result.exit_code, result.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "say which topics: either by name or by pattern"),
        (["--topics", " , "], "say which topics: either by name or by pattern"),
        (["--topics", "a", "--pattern", "b"], "say which topics: either by name or by pattern"),
        (["--topics", "a", "--option", "minPartitions"], "--option takes NAME=VALUE, not 'minPartitions'"),
        (["--topics", "a", "--setting", "=1"], "--setting takes NAME=VALUE, not '=1'"),
    ],
)
def test_options_that_make_no_sense(arguments: list[str], line: str) -> None:
    assert outcome("--output", "/lake", *arguments) == (2, f"ottla spark: {line}\n")


def test_no_output() -> None:
    status, errors = outcome("--topics", "a")
    assert status == 2
    assert "--output" in errors


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert outcome("--output", "/lake", "--topics", "a") == (
        1,
        "ottla spark: pyspark is missing: pip install 'ottla[spark]'\n",
    )


@pytest.mark.parametrize("name", ["sqlglot", "confluent_kafka"])
def test_without_what_jobs_need(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))  # which is looked for first
    monkeypatch.setitem(sys.modules, name, None)
    line = f"ottla spark: {name.replace('_', '-')} is missing: pip install 'ottla[jobs]'\n"
    assert outcome("--output", "/lake", "--topics", "a") == (1, line)


def test_pyspark_is_imported_only_by_a_job() -> None:
    code = "import sys, ottla.spark.cli; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_debug_shows_where_an_error_came_from() -> None:
    arguments = ["--output", "/lake", "--topics", "a", "--bootstrap-server", "127.0.0.1:1"]
    status, line = outcome(*arguments)
    assert (status, line.count("\n")) == (1, 1)
    status, shown = outcome(*arguments, "--debug")
    assert status == 1
    assert shown.startswith("Traceback (most recent call last):\n")
    assert shown.endswith(line)
