"""JVM options for the short-lived Spark processes of the tests.

They are one garbage collector thread, one compiler, and Spark's classes from an archive (class data sharing, JEP 350) where
``tools/spark_classes.py`` has made one.

Each of the two halves the CPU time of a short job. The JVM ignores an archive of another JVM or pyspark. A third of what is
left goes into classes that Spark writes and compiles for each query: for a few rows it is told to do without (``SETTINGS``).
"""

from __future__ import annotations

import sys
from pathlib import Path

OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SETTINGS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Those of every session, unless it says otherwise: Spark interprets its expressions, as it does where one is too long."""
VARIABLE = "SPARK_SUBMIT_OPTS"
"""What Spark's launcher reads options of the driver's JVM from."""


def archive() -> Path:
    """Where the archive is, or would be: beside the pyspark it is of."""
    return Path(sys.prefix) / "spark-classes.jsa"


def options() -> str:
    """The options of a driver's JVM, as a shell would read them."""
    return (
        f'{without_archive()} -XX:SharedArchiveFile="{archive()}" -Xlog:disable'
        if archive().exists()
        else without_archive()
    )


def without_archive() -> str:
    """The same where there is no archive, as when it is made."""
    return " ".join([OPTIONS, *(f"-D{name}={value}" for name, value in SETTINGS.items())])
