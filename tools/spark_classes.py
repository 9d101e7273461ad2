"""Archives the classes that a short job of Spark loads, for ``compat_tests/spark/jvm.py``; run by tools/setup.sh.

A JVM writes the archive at its end, of what it has loaded: so this is a job that goes through what most tests do.
"""

from __future__ import annotations

import os
import tempfile

from ottla.compat_tests.spark import jvm
from ottla.spark.session import build_session


def main() -> None:
    """Run the job and leave the archive."""
    fresh = jvm.archive().with_suffix(".fresh")
    os.environ[jvm.VARIABLE] = f'{jvm.without_archive()} -XX:ArchiveClassesAtExit="{fresh}" -Xlog:disable'
    with tempfile.TemporaryDirectory() as folder:
        spark = build_session("classes", master="local[2]", settings={"spark.sql.warehouse.dir": f"{folder}/warehouse"})
        spark.sparkContext.setLogLevel("OFF")
        rows = spark.range(100).selectExpr("CAST(id AS STRING) AS value", "id % 3 AS part", "current_timestamp() AS at")
        rows.write.partitionBy("part").parquet(f"{folder}/lake")
        lake = spark.read.parquet(f"{folder}/lake")
        lake.groupBy("part").count().join(lake, "part").orderBy("value").collect()
        lake.createOrReplaceTempView("lake")
        spark.sql("SELECT explode(split(value, '')) AS letter, count(*) AS n FROM lake GROUP BY 1").collect()
        stream = spark.readStream.schema(lake.schema).parquet(f"{folder}/lake")
        query = stream.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
        query.option("path", f"{folder}/copy").trigger(availableNow=True).start().awaitTermination()
        spark.createDataFrame([("a", 1)], "name STRING, number INT").collect()
        process = spark.sparkContext._gateway.proc
        spark.stop()
        spark.sparkContext._gateway.shutdown()
        process.stdin.close()
        process.wait()
    if fresh.exists():
        fresh.replace(jvm.archive())


if __name__ == "__main__":
    main()
