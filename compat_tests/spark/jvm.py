"""How Sparks of the tests run their JVMs, which live for seconds: one garbage collector thread, one compiler, and the
classes of Spark from an archive (class data sharing, JEP 350) where ``tools/spark_classes.py`` has made one.

Each of the two halves the CPU time of a short job. The JVM ignores an archive of another JVM or pyspark.
"""

from __future__ import annotations

import sys
from pathlib import Path

OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
VARIABLE = "SPARK_SUBMIT_OPTS"
"""What Spark's launcher reads options of the driver's JVM from."""


def archive() -> Path:
    """Where the archive is, or would be: beside the pyspark it is of."""
    return Path(sys.prefix) / "spark-classes.jsa"


def options() -> str:
    """The options of a driver's JVM, as a shell would read them."""
    if not archive().exists():
        return OPTIONS
    return f'{OPTIONS} -XX:SharedArchiveFile="{archive()}" -Xlog:disable'
