"""What Spark prints while it starts is shown only when it fails to."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla
from ottla.compat_tests import toolchains
from ottla.spark.quiet_start import quiet_start
from ottla.testing.broker import Broker

LIMIT_S = 300
PROGRAM = "echo fetching >&2; echo started; read line; echo $line >&2"


@contextlib.contextmanager
def standard_error() -> Iterator[int]:
    """Where the standard error of this process can be read meanwhile. No fixture: pytest redirects it after those."""
    before = os.dup(2)
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    try:
        yield reader
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(reader)


def start() -> subprocess.Popen[str]:
    """A process that has told of its start on standard error, and then prints what it is given."""
    process = subprocess.Popen(["sh", "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def test_a_start_is_quiet_and_what_comes_later_is_shown() -> None:
    with standard_error() as errors:
        with quiet_start():
            process = start()
        process.communicate("later\n", timeout=LIMIT_S)
        assert os.read(errors, 4096) == b"later\n"


def test_a_start_that_fails_is_shown() -> None:
    with standard_error() as errors:
        with pytest.raises(RuntimeError), quiet_start():
            start().communicate("and why", timeout=LIMIT_S)
            raise RuntimeError
        assert os.read(errors, 4096) == b"fetching\nand why\n"
        os.write(2, b"standard error is what it was\n")
        assert os.read(errors, 4096) == b"standard error is what it was\n"


IVY = """
<ivysettings>
  <settings defaultResolver="local"/>
  <resolvers><ibiblio name="local" m2compatible="true" root="file://{folder}"/></resolvers>
</ivysettings>
"""
POM = """
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId><artifactId>nothing</artifactId><version>1.0</version><packaging>pom</packaging>
</project>
"""


@pytest.mark.slow
def test_packages_are_fetched_quietly(tmp_path: Path) -> None:
    """From a repository in a folder, in place of Maven Central."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        toolchains.missing("no pyspark")
    (tmp_path / "ivy.xml").write_text(IVY.format(folder=tmp_path / "repository"))
    package = tmp_path / "repository" / "org" / "example" / "nothing" / "1.0"
    package.mkdir(parents=True)
    (package / "nothing-1.0.pom").write_text(POM)
    with ottla.Broker() as broker:
        broker.create_topic("orders")
        done = archive(broker, tmp_path, "1.0")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1].startswith("archived 0 records to ")
        assert "nothing;1.0 in local" in archive(broker, tmp_path, "1.0", "--debug").stderr
        failed = archive(broker, tmp_path, "2.0")
    assert failed.returncode == 1
    assert "org.example#nothing;2.0: not found" in failed.stderr
    assert failed.stderr.splitlines()[-1].startswith("ottla spark: Spark did not start: ")


def archive(broker: Broker, folder: Path, version: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The job, whose session has a package of this version beside the connector."""
    settings = {
        "spark.jars.packages": f"org.example:nothing:{version}",
        "spark.jars.ivy": folder / "ivy",
        "spark.jars.ivySettings": folder / "ivy.xml",
    }
    options = [f"--setting={name}={value}" for name, value in settings.items()]
    output = str(folder / f"lake-{version}")
    command = [sys.executable, "-m", "ottla", "spark", "archive", "--topics", "orders", "--output", output]
    return subprocess.run(
        [*command, "--bootstrap-server", broker.bootstrap_servers, *options, *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
