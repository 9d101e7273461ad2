"""``ottla spark archive``: what is wrong with the options or the machine is one line on stderr and an exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from ottla.base.wording import how_to_install
from ottla.spark.cli import app
from ottla.spark.session import NEWEST_TESTED


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
        f"ottla spark: pyspark is missing: {how_to_install('spark')}\n",
    )


@pytest.mark.parametrize("name", ["sqlglot", "confluent_kafka"])
def test_without_what_jobs_need(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))  # which is looked for first
    monkeypatch.setitem(sys.modules, name, None)
    line = f"ottla spark: {name.replace('_', '-')} is missing: {how_to_install('jobs')}\n"
    assert outcome("--output", "/lake", "--topics", "a") == (1, line)


NOWHERE = ["--bootstrap-server", "127.0.0.1:1"]
PIPELINE = """
name = "copy"
checkpoint = "checkpoint"
[sources.records]
topics = ["orders"]
[sinks.copy]
view = "records"
topic = "copies"
"""


@pytest.fixture
def spark_that_cannot_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Enough of pyspark and Java to be found, and no more."""
    pyspark = ModuleType("pyspark")
    pyspark.__dict__["__version__"] = NEWEST_TESTED
    monkeypatch.setitem(sys.modules, "pyspark", pyspark)
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))


@pytest.mark.usefixtures("spark_that_cannot_start")
@pytest.mark.parametrize(
    "arguments",
    [
        ["archive", "--topics", "a", "--output", "lake", *NOWHERE],
        ["load", "a.json", "--format", "json", "--topic", "a", "--checkpoint", "state", *NOWHERE],
        ["replay", "--topics", "a", "--to-topic", "b", *NOWHERE],
        ["audit", "--topics", "a", "--archive", "lake", *NOWHERE],
        ["mirror", "--from", "127.0.0.1:1", "--to", "127.0.0.1:1", "--topics", "a", "--checkpoint", "state"],
        ["lag", *NOWHERE],
        ["run", "copy.toml", *NOWHERE],
        ["explain", "copy.toml", *NOWHERE],
    ],
)
def test_without_a_broker_neither_client_nor_spark_is_started(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would try for half a minute, and for longer."""
    monkeypatch.chdir(tmp_path)
    Path("copy.toml").write_text(PIPELINE)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert result.stderr.endswith("no broker answers at 127.0.0.1:1: [Errno 111] Connection refused\n")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["archive", "--topics", "a", "--output", "lake"], ["run", "copy.toml"]])
@pytest.mark.usefixtures("spark_that_cannot_start")
def test_a_port_that_is_out_of_range(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("copy.toml").write_text(PIPELINE)
    result = CliRunner().invoke(app, [*arguments, "--bootstrap-server", "127.0.0.1:99999"])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "the port of '127.0.0.1:99999' is out of range" in result.stderr


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
