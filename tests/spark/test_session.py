"""Where the connector comes from, and what is said when something that Spark needs is missing."""

from __future__ import annotations

import re
import sys
import tomllib
import types
from pathlib import Path

import pytest

from ottla.base.wording import how_to_install
from ottla.spark import session
from ottla.spark.session import NEWEST_TESTED, OLDEST_TESTED, SparkSetupError, check_setup, connector_settings

VERSIONS = (OLDEST_TESTED, NEWEST_TESTED, "4.3.0")
ROOT = Path(session.__file__).resolve().parents[1]


@pytest.fixture
def pyspark(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Something that says it is a pyspark, whether or not the extra is installed here."""
    module = types.ModuleType("pyspark")
    vars(module)["__version__"] = OLDEST_TESTED
    monkeypatch.setitem(sys.modules, "pyspark", module)
    return module


@pytest.fixture(autouse=True)
def _no_jars_but_named_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(session.JARS_VARIABLE, raising=False)
    monkeypatch.setattr(session, "_CHECKOUT_JARS", tmp_path / "checkout")


def folder_with_jars(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in (*names, "notes.txt"):
        (folder / name).touch()
    return folder


def test_jars_of_a_folder(tmp_path: Path) -> None:
    folder = folder_with_jars(tmp_path / "jars", "b.jar", "a.jar")
    assert connector_settings("4.0.0", folder) == {"spark.jars": f"{folder}/a.jar,{folder}/b.jar"}


def test_the_folder_given_wins_over_the_environment_and_that_over_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "checkout").mkdir()
    for version in VERSIONS:
        folder = folder_with_jars(tmp_path / "checkout" / f"spark-kafka-{version}", "checkout.jar")
        assert connector_settings(version) == {"spark.jars": f"{folder}/checkout.jar"}
    monkeypatch.setenv(session.JARS_VARIABLE, str(folder_with_jars(tmp_path / "variable", "variable.jar")))
    assert connector_settings("4.0.0") == {"spark.jars": f"{tmp_path}/variable/variable.jar"}
    given = folder_with_jars(tmp_path / "given", "given.jar")
    assert connector_settings("4.0.0", given) == {"spark.jars": f"{tmp_path}/given/given.jar"}


def test_what_is_needed_beside_the_connector_is_looked_for_in_the_folder(tmp_path: Path) -> None:
    avro = "org.apache.spark:spark-avro_2.13"
    folder = folder_with_jars(tmp_path / "jars", "spark-avro_2.13-4.0.0.jar")
    assert connector_settings("4.0.0", folder, [avro]) == {"spark.jars": f"{folder}/spark-avro_2.13-4.0.0.jar"}
    with pytest.raises(
        SparkSetupError, match=r"^no delta-spark_2.13 in \S+jars: put its jar there \(io.delta:delta-spark"
    ):
        connector_settings("4.0.0", folder, [avro, "io.delta:delta-spark_2.13:4.0.0"])
    (tmp_path / "checkout").mkdir()
    folder_with_jars(tmp_path / "checkout" / "spark-kafka-4.0.0", "connector.jar")
    folder_with_jars(tmp_path / "checkout" / "spark-tables-4.0.0", "delta-spark_2.13-4.0.0.jar")
    assert "delta-spark" in connector_settings("4.0.0", packages=["io.delta:delta-spark_2.13:4.0.0"])["spark.jars"]
    assert "delta-spark" not in connector_settings("4.0.0")["spark.jars"]


@pytest.mark.parametrize("version", VERSIONS)
def test_without_jars_spark_fetches_what_is_of_pysparks_version(version: str) -> None:
    settings = connector_settings(version, packages=["org.apache.spark:spark-avro_2.13", "a:b:1"])
    connector, avro, other = settings["spark.jars.packages"].split(",")
    assert connector == f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"
    assert (avro, other) == (f"org.apache.spark:spark-avro_2.13:{version}", "a:b:1")
    assert "org.apache.hadoop:hadoop-client-runtime" in settings["spark.jars.excludes"].split(",")


def test_the_tested_versions_are_those_that_the_tests_install() -> None:
    """And the extra takes both, and no other Spark than the jobs do."""
    setup, fetch = ((ROOT / "tools" / name).read_text() for name in ("setup.sh", "fetch_jars.sh"))
    assert set(re.findall(r"pyspark(?:\[pipelines\])?==([\d.]+)", setup)) == {OLDEST_TESTED, NEWEST_TESTED}
    assert set(re.findall(r"fetch spark-kafka-([\d.]+)", fetch)) == {OLDEST_TESTED, NEWEST_TESTED}
    for page in ("quickstart", "spark", "pipelines"):
        shown = re.findall(r"pyspark==([\d.]+)", (ROOT / "docs" / f"{page}.md").read_text())
        assert set(shown) == {NEWEST_TESTED}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert f"pyspark{session.VERSIONS}" in extras["spark"]


def test_a_named_folder_without_jars_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SparkSetupError, match=f"no jars in {tmp_path}/none"):
        connector_settings("4.0.0", tmp_path / "none")
    monkeypatch.setenv(session.JARS_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(SparkSetupError, match=r"no jars in .*nowhere.*:4.2.0"):
        connector_settings("4.2.0")


def test_pyspark_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SparkSetupError, match=f"^pyspark is missing: {re.escape(how_to_install('spark'))}$"):
        check_setup()


@pytest.mark.parametrize("version", ["3.5.9", "5.0.0"])
def test_another_spark(pyspark: types.ModuleType, version: str) -> None:
    vars(pyspark)["__version__"] = version
    with pytest.raises(SparkSetupError, match=f"^pyspark {version} is installed.*pip install 'pyspark>=4.0,<5'$"):
        check_setup()


class NoJvm(Exception):
    """Stands in for PySparkException."""


class Builder:
    """Stands in for pyspark's, whose JVM exits because Ivy does not find a jar."""

    def set(self, *_: str) -> Builder:
        return self

    master = appName = config = set

    def getOrCreate(self) -> None:
        raise NoJvm("Java gateway process exited\nmore")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_untested_version_whose_connector_is_not_found(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "check_setup", lambda: version)
    for name in ("SPARK_LOCAL_IP", "PYSPARK_PYTHON"):
        monkeypatch.setenv(name, "")  # which the session sets otherwise
    modules: dict[str, dict[str, object]] = {
        "py4j.protocol": {"Py4JJavaError": KeyError},
        "pyspark.errors": {"PySparkException": NoJvm},
        "pyspark.sql": {"SparkSession": types.SimpleNamespace(builder=Builder())},
    }
    for name, content in modules.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setitem(sys.modules, name.partition(".")[0], types.ModuleType(name.partition(".")[0]))
    with pytest.raises(SparkSetupError) as refused:
        session.build_session("a")
    told = str(refused.value)
    assert told.startswith("Spark did not start: Java gateway process exited (it should fetch org.apache.spark:spark-")
    is_tested = version in {OLDEST_TESTED, NEWEST_TESTED}
    assert told.endswith(
        f"-10_2.13:{version} from Maven Central)" if is_tested else f"pip install pyspark=={NEWEST_TESTED}"
    )


@pytest.mark.usefixtures("pyspark")
def test_java_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkSetupError, match=r"^java is missing: Spark needs Java 17"):
        check_setup()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkSetupError, match=f"JAVA_HOME is {tmp_path}, which has no bin/java"):
        check_setup()


@pytest.mark.parametrize("version", VERSIONS)
def test_java_is_there(
    pyspark: types.ModuleType, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vars(pyspark)["__version__"] = version
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert check_setup() == version
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(java.parent))
    assert check_setup() == version
