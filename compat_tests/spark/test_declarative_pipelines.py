"""Spark's own declarative pipelines: ``spark-pipelines run`` on a project whose streaming table reads a topic."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import KafkaFormat, fill
from ottla.spark.session import check_setup, connector_settings

pytestmark = [
    pytest.mark.client("spark"),
    pytest.mark.capability("declarative pipelines"),
    pytest.mark.since_spark("4.1"),
]
PROJECT = """\
name: compat
storage: {folder}/storage
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.shuffle.partitions: "2"
"""
TABLE = """\
from pyspark import pipelines as dp
from pyspark.sql import SparkSession


@dp.table
def records():
    reader = SparkSession.active().readStream.format("kafka").option("kafka.bootstrap.servers", "{bootstrap}")
    rows = reader.option("subscribe", "{topic}").option("startingOffsets", "earliest").load()
    return rows.selectExpr("CAST(CAST(key AS STRING) AS INT) AS number", "partition", "offset")
"""
VIEW = "CREATE MATERIALIZED VIEW digits AS SELECT number % 10 AS digit, count(*) AS records FROM records GROUP BY 1"


def test_a_topic_as_a_table(kafka: KafkaFormat, stock: ClientSession, topic: str, tmp_path: Path) -> None:
    fill(stock, topic, 995)
    transformations = tmp_path / "transformations"
    transformations.mkdir()
    (tmp_path / "spark-pipeline.yml").write_text(PROJECT.format(folder=tmp_path.as_uri()))
    (transformations / "records.py").write_text(TABLE.format(bootstrap=kafka.bootstrap, topic=topic))
    (transformations / "digits.sql").write_text(VIEW)
    program = shutil.which("spark-pipelines")
    assert program is not None
    # Spark Connect does not look into spark.jars when it is asked for a data source.
    jars = connector_settings(version=check_setup())["spark.jars"].replace(",", os.pathsep)
    settings = {
        "spark.driver.extraClassPath": jars,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    command = [program, "run", "--spec", str(tmp_path / "spark-pipeline.yml"), "--remote", "local[2]"]
    command += [word for item in settings.items() for word in ("--conf", "=".join(item))]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Run is COMPLETED" in done.stdout + done.stderr
    records = kafka.spark.read.parquet(str(tmp_path / "spark-warehouse" / "records"))
    assert [row.offset for row in records.orderBy("offset").collect()] == list(range(995))
    digits = kafka.spark.read.parquet(str(tmp_path / "spark-warehouse" / "digits"))
    assert sorted((row.digit, row.records) for row in digits.collect()) == [
        (digit, 100 if digit < 5 else 99) for digit in range(10)
    ]
