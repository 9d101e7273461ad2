"""A local Spark session with Spark's Kafka connector.

The connector is not part of pyspark. Its jars come from the first of these that exists:

1. the folder given by the caller;
2. the folder named by the environment variable ``OTTLA_SPARK_JARS``;
3. ``.jars/spark-kafka-VERSION`` beside the package, where ``tools/fetch_jars.sh`` puts those of the tested versions in a
   checkout, and for a session that needs more than the connector ``.jars/spark-tables-VERSION``;
4. Maven Central, by ``spark.jars.packages``: slower to start, and it needs the network the first time.

Everything is bound to loopback, and the session's time zone is UTC. pyspark and the connector are released together and
must be of one version: that of the pyspark which is installed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.wording import how_to_install

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSIONS = ">=4.0,<5"
"""Of pyspark, as the extra ``spark`` has it."""
OLDEST_TESTED, NEWEST_TESTED = "4.0.0", "4.2.0"
_NEEDED_BY_JOBS = ("confluent_kafka", "pandas", "pyarrow", "pydantic", "sqlglot")
JARS_VARIABLE = "OTTLA_SPARK_JARS"
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
# Jars that a pip-installed pyspark has already, and which Ivy would fetch again (53 of 63 MB).
ALREADY_IN_PYSPARK = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.lz4:lz4-java",
    "at.yawk.lz4:lz4-java",
    "com.github.luben:zstd-jni",
    "org.xerial.snappy:snappy-java",
    "org.slf4j:slf4j-api",
    "org.scala-lang.modules:scala-parallel-collections_2.13",
    "com.google.code.findbugs:jsr305",
)
_CHECKOUT_JARS = Path(__file__).resolve().parent.parent / ".jars"


class SparkSetupError(RuntimeError):
    """Spark cannot start on this machine. ``str()`` is one line that says what to do."""


def connector_settings(version: str, jars: Path | None = None, packages: Sequence[str] = ()) -> dict[str, str]:
    """The Spark settings that bring the connector: ``spark.jars``, or ``spark.jars.packages`` with its excludes.

    ``version`` is pyspark's. ``packages`` are the coordinates of other jars that are needed, without a version where they are
    released with pyspark.

    :raises SparkSetupError: the named folder has no jars, or lacks one that is needed.
    """
    connector, *others = (_with_version(coordinates, version) for coordinates in (CONNECTOR, *packages))
    named = jars or (Path(os.environ[JARS_VARIABLE]) if os.environ.get(JARS_VARIABLE) else None)
    folder = named or _CHECKOUT_JARS / f"spark-kafka-{version}"
    found = sorted(folder.glob("*.jar"))
    if found and packages and named is None:
        found += sorted((_CHECKOUT_JARS / f"spark-tables-{version}").glob("*.jar"))
    if found:
        for coordinates in others:
            artifact = coordinates.split(":")[1]
            if not any(jar.name.startswith(f"{artifact}-") for jar in found):
                raise SparkSetupError(f"no {artifact} in {folder}: put its jar there ({coordinates})")
        return {"spark.jars": ",".join(str(jar.resolve()) for jar in found)}
    if named is not None:
        raise SparkSetupError(f"no jars in {named}: it should contain Spark's Kafka connector ({connector})")
    return {
        "spark.jars.packages": ",".join((connector, *others)),
        "spark.jars.excludes": ",".join(ALREADY_IN_PYSPARK),
    }


def _with_version(coordinates: str, version: str) -> str:
    return coordinates if coordinates.count(":") == 2 else f"{coordinates}:{version}"


def build_session(
    name: str,
    *,
    master: str = "local[*]",
    jars: Path | None = None,
    packages: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start the session ``name`` on ``master`` (or return the one that runs already, as Spark does).

    ``packages`` are the coordinates of jars in addition to the connector. ``settings`` are Spark's own and override those set
    here.

    :raises SparkSetupError: pyspark or Java is missing, there are no jars in the folder named, Spark refuses a setting.
    """
    version = check_setup()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    defaults = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **_shuffle_settings(master),
        **connector_settings(version, jars, packages),
        **(settings or {}),
    }
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in defaults.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except PySparkException as error:
        hint = _about_packages(defaults.get("spark.jars.packages"), version)
        raise SparkSetupError(f"Spark did not start: {str(error).splitlines()[0]}{hint}") from error
    except Py4JJavaError as error:
        raise SparkSetupError(f"Spark did not start: {error.java_exception.getMessage()}") from error


def _about_packages(fetched: str | None, version: str) -> str:
    """The end of the error line where the JVM did not start: it may lack jars, and says so only on standard error."""
    if not fetched:
        return ""
    hint = f" (it should fetch {fetched} from Maven Central)"
    if version in (OLDEST_TESTED, NEWEST_TESTED):
        return hint
    return f"{hint}; where a jar is missing there, a tested version has it: pip install pyspark=={NEWEST_TESTED}"


def _shuffle_settings(master: str) -> dict[str, str]:
    """On one machine, a partition for each core: Spark's 200 are for clusters, and cost a stateful query seconds per batch."""
    return {"spark.sql.shuffle.partitions": str(os.cpu_count() or 1)} if master.startswith("local") else {}


def check_setup() -> str:
    """Look for pyspark and Java without starting them. Returns the version of pyspark; SparkSetupError names what is missing."""
    try:
        import pyspark
    except ImportError:
        raise SparkSetupError(f"pyspark is missing: {how_to_install('spark')}") from None
    for name in _NEEDED_BY_JOBS:
        if importlib.util.find_spec(name) is None:
            raise SparkSetupError(f"{name.replace('_', '-')} is missing: {how_to_install('jobs')}")
    version: str = pyspark.__version__
    if version.partition(".")[0] != "4":
        raise SparkSetupError(
            f"pyspark {version} is installed, and the jobs need Spark 4: pip install 'pyspark{VERSIONS}'"
        )
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(Path(home) / "bin" / "java", os.X_OK):
        raise SparkSetupError(f"JAVA_HOME is {home}, which has no bin/java: Spark needs Java 17")
    if not home and shutil.which("java") is None:
        raise SparkSetupError("java is missing: Spark needs Java 17 (on PATH, or named by JAVA_HOME)")
    return version
