"""Every quickstart of the README and docs/quickstart.md, run unchanged except for the address of the broker.

A quickstart is the fenced block after a ``<!-- quickstart: NAME -->`` comment.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.base.wording import how_to_install
from ottla.compat_tests import brokers, toolchains
from ottla.compat_tests.java.tools import write_scripts

from .helpers.pages import QUICKSTART_PAGES, quickstarts, run_pytest

ROOT = Path(__file__).resolve().parent.parent
QUICKSTARTS = quickstarts()
BIN = Path(sys.executable).parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker process, as the quickstarts need one."""
    with brokers.process("ottla", tmp_path_factory.mktemp("broker")) as broker:
        yield broker.bootstrap


def run(name: str, address: str, folder: Path, code: str | None = None, **environment: str) -> str:
    """Run a quickstart; what it printed."""
    language, text = QUICKSTARTS[name]
    program = folder / f"quickstart.{language}"
    program.write_text((code or text).replace("127.0.0.1:9092", address))
    command = {"python": [sys.executable, str(program)], "sh": ["sh", "-e", str(program)]}[language]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=540, cwd=folder, env=os.environ | environment
    )
    assert done.returncode == 0, f"{name}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_quickstart_is_run_here() -> None:
    run_here = {"kafka-python", "confluent-kafka", "pyspark", "console-tools", "embedded", "pytest", "pipelines"}
    run_here |= {"three-brokers", "three-brokers-with-kafkas-tools"}  # in test_readme_cluster
    assert QUICKSTARTS.keys() == run_here
    assert sum(page.read_text().count("<!-- quickstart:") for page in QUICKSTART_PAGES) == len(run_here)


@pytest.mark.parametrize("name", ["kafka-python", "confluent-kafka"])
def test_python_clients(name: str, address: str, tmp_path: Path) -> None:
    printed = run(name, address, tmp_path)
    assert [line.split(maxsplit=1)[1] for line in printed.splitlines()] == [f"{n} hello {n}" for n in range(10)]


def test_embedded(address: str, tmp_path: Path) -> None:
    assert re.fullmatch(r"clients connect to 127\.0\.0\.1:\d+\n", run("embedded", address, tmp_path))


def test_fixtures(tmp_path: Path) -> None:
    """That pytest finds them in a project that has installed Ottla is tested with the wheel, in test_packaging."""
    assert run_pytest(QUICKSTARTS["pytest"][1], tmp_path) == {"passed": 1}


def test_console_tools(address: str, tmp_path: Path) -> None:
    printed = run("console-tools", address, tmp_path, PATH=f"{write_scripts(tmp_path)}:{os.environ['PATH']}")
    assert "Created topic console." in printed
    assert {"one", "two", "three"} <= set(printed.splitlines())
    assert sum(map(int, re.findall(r"^console:\d:(\d+)$", printed, re.MULTILINE))) == 3
    assert re.search(r"^shell\s+console\s+\d\s+\d\s+\d\s+0\s", printed, re.MULTILINE)
    assert "Completed updating config for topic console." in printed
    assert re.search(r"PartitionCount: 3\s.*retention.ms=60000", printed)


def test_pipelines(address: str, tmp_path: Path) -> None:
    toolchains.java()
    printed = run("pipelines", address, tmp_path, OTTLA_BOOTSTRAP_SERVERS=address, PATH=f"{BIN}:{os.environ['PATH']}")
    lines = printed.splitlines()
    assert "counts: 2 records read" in lines
    assert {"the 3", "cat 2", "dog 1"} <= set(lines)
    assert "archived 5 records to lake" in lines
    audited = [line.split() for line in lines if re.match(r"(lines|word-counts)\s", line)]
    assert [(topic, archived, differences) for topic, _, _, _, _, archived, *differences in audited] == [
        ("lines", "2", ["0"] * 4),
        ("word-counts", "3", ["0"] * 4),
    ]


def test_pyspark(address: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("pyspark") is None:
        toolchains.missing(f"no pyspark ({how_to_install('spark')})")
    toolchains.java()
    code = QUICKSTARTS["pyspark"][1]
    (artifact,) = re.findall(r'f"org\.apache\.spark:([\w.-]+):\{pyspark.__version__\}"', code)
    version = importlib.metadata.version("pyspark")
    folder = ROOT / ".jars" / f"spark-kafka-{version}"
    if not (folder / f"{artifact}-{version}.jar").exists():
        toolchains.missing(f"no {artifact} in {folder} (tools/fetch_jars.sh spark)")
    # The same jars, already fetched: Spark's own download is not what is tested.
    jars = ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))
    offline = code.replace('"spark.jars.packages"', '"spark.jars"')
    offline = re.sub(r'f"org\.apache\.spark:[^"]*"', f'"{jars}"', offline)
    assert offline.count("spark.jars") == 1
    printed = run("pyspark", address, tmp_path, offline, SPARK_LOCAL_IP="127.0.0.1")
    assert "1000 records" in printed
