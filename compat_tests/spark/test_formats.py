"""Pipelines that read Avro and write tables, and where a source starts."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer

from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import KafkaFormat, fill
from ottla.spark.commands.session import one_line_errors
from ottla.spark.pipeline.declaration import Pipeline, read
from ottla.spark.pipeline.run import first_rows, run
from ottla.spark.query import JobError

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("pipelines")]
MakeTopic = Callable[..., str]

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "string"}, {"name": "total", "type": ["null", "long"]}],
}
TABLES = """
name = "tables"
checkpoint = "checkpoint"
[sources.orders]
topics = ["{topic}"]
format = "avro"
schema-file = "order.avsc"
skip-bytes = 5
[[steps]]
view = "totals"
sql = "SELECT id, total, _offset AS at FROM orders"
[sinks.delta]
view = "totals"
delta = "lake/delta"
partition-by = ["id"]
[sinks.iceberg]
view = "totals"
iceberg = "lake.shop.orders"
[sinks.dead]
view = "orders_rejected"
parquet = "lake/dead"
[settings]
"spark.sql.catalog.lake" = "org.apache.iceberg.spark.SparkCatalog"
"spark.sql.catalog.lake.type" = "hadoop"
"spark.sql.catalog.lake.warehouse" = "{folder}/lake/iceberg"
"""


def order(name: str, total: int | None) -> bytes:
    """An order as a serializer for a schema registry writes it; numbers below 64 take a byte."""
    rest = b"\x00" if total is None else bytes([2, total * 2])
    return b"\x00\x00\x00\x00\x07" + bytes([len(name) * 2]) + name.encode() + rest


def stored(folder: Path, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of all Parquet files below, sorted."""
    import pyarrow.parquet

    rows: list[tuple[Any, ...]] = []
    for file in sorted(folder.rglob("*.parquet")):
        table = pyarrow.parquet.ParquetFile(file).read(columns=list(columns))
        rows += [tuple(row.values()) for row in table.to_pylist()]
    return sorted(rows)


@pytest.mark.until_spark("4.0", "spark-avro, Delta or Iceberg")
def test_avro_to_delta_and_iceberg(kafka: KafkaFormat, stock: ClientSession, topic: str, tmp_path: Path) -> None:
    producer = stock.producer()
    for value in (order("a", 3), order("b", None), b"\x00\x00\x00\x00\x07\xff", order("c", 5)):
        producer.send(topic, value, partition=0)
    producer.flush()
    (tmp_path / "order.avsc").write_text(json.dumps(SCHEMA))
    file = tmp_path / "tables.toml"
    file.write_text(TABLES.format(topic=topic, folder=tmp_path))
    command = [
        sys.executable,
        "-m",
        "ottla",
        "spark",
        "run",
        str(file),
        "--bootstrap-server",
        kafka.bootstrap,
        "--json",
    ]
    done = subprocess.run([*command, "--master", "local[2]"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["totals"] == {"delta": 4, "iceberg": 4, "dead": 4}
    assert stored(tmp_path / "lake/delta", "at", "total") == [(0, 3), (1, None), (3, 5)]
    assert stored(tmp_path / "lake/iceberg", "id", "at", "total") == [("a", 0, 3), ("b", 1, None), ("c", 3, 5)]
    assert [path.name for path in sorted((tmp_path / "lake/delta").glob("id=*"))] == ["id=a", "id=b", "id=c"]
    assert stored(tmp_path / "lake/dead", "offset") == [(2,)]
    assert len(list((tmp_path / "lake/delta/_delta_log").glob("*.json"))) == 1


COPY = """
name = "copy"
checkpoint = "{checkpoint}"
[sources.records]
topics = ["{topic}"]
{start}
[sinks.copy]
view = "records"
parquet = "{folder}/copy-{checkpoint}"
"""


@pytest.fixture
def copy(kafka: KafkaFormat, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Pipeline]:
    """Declares a pipeline that copies the topic to a folder named after its checkpoint."""
    monkeypatch.chdir(tmp_path)

    def declare(start: str = "", checkpoint: str = "checkpoint", **instead: str) -> Pipeline:
        file = tmp_path / "copy.toml"
        file.write_text(COPY.format(topic=topic, start=start, checkpoint=checkpoint, folder=tmp_path))
        return read(file, bootstrap_servers=kafka.bootstrap, **instead)

    return declare


def test_where_a_source_starts(
    copy: Callable[..., Pipeline], kafka: KafkaFormat, stock: ClientSession, topic: str
) -> None:
    now = int(time.time() * 1000) // 1000 * 1000
    producer = stock.producer()
    for number in range(10):
        producer.send(topic, b"", key=str(number).encode(), partition=0, timestamp_ms=now + 1000 * number)
    producer.flush()

    def since(seconds: int) -> str:
        return f"starting-timestamp = {datetime.fromtimestamp(now / 1000 + seconds, UTC).isoformat()}"

    assert run(kafka.spark, copy(since(4), "fourth")) == {"copy": 6}
    assert run(kafka.spark, copy(since(60), "later")) == {"copy": 0}
    assert [bytes(row.key) for row in first_rows(kafka.spark, copy(since(4)), 2)["copy"]] == [b"4", b"5"]
    assert run(kafka.spark, copy('starting-offsets = "latest"', "end")) == {"copy": 0}
    assert len(first_rows(kafka.spark, copy('starting-offsets = "latest"'), 20)["copy"]) == 10
    offsets = f"starting-offsets = '{json.dumps({topic: {'0': 7}})}'"
    assert run(kafka.spark, copy(offsets, "seventh")) == {"copy": 3}


def test_a_checkpoint_that_belongs_to_something_else(
    copy: Callable[..., Pipeline], kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, topic: str
) -> None:
    fill(stock, topic, 10)
    assert run(kafka.spark, copy()) == {"copy": 10}
    with pytest.raises(
        JobError, match=r"^sinks.copy: \S+ was written with a checkpoint other than \S+new/copy: name that"
    ):
        run(kafka.spark, copy(checkpoint="checkpoint").model_copy(update={"checkpoint": "new"}))
    other = make_topic(1)
    pipeline = copy()
    source = pipeline.sources["records"].model_copy(update={"topics": [other]})
    with pytest.raises(
        JobError, match=rf"^sinks.copy: the checkpoint has offsets of {topic}-0, which are not read any more"
    ):
        run(kafka.spark, pipeline.model_copy(update={"sources": {"records": source}}))


def test_errors_come_in_one_line_and_with_debug_with_their_stack_traces(
    kafka: KafkaFormat, stock: ClientSession, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(stock, topic, 1)
    file = tmp_path / "broken.toml"
    step = '[[steps]]\nview = "n"\nsql = "SELECT 1 / (offset - offset) AS n FROM records"\n[sinks.copy]\nview = "n"'
    declared = COPY.format(topic=topic, start="", checkpoint="c", folder=tmp_path)
    file.write_text(declared.replace('[sinks.copy]\nview = "records"', step))
    pipeline = read(file, bootstrap_servers=kafka.bootstrap)
    line = "ottla spark: broken.toml: sinks.copy: [DIVIDE_BY_ZERO] Division by zero."

    def failing(debug: bool) -> list[str]:
        kafka.spark.conf.set("spark.sql.pyspark.jvmStacktrace.enabled", str(debug).lower())
        with pytest.raises(typer.Exit), one_line_errors("broken.toml", debug=debug):
            first_rows(kafka.spark, pipeline, 1)
        return capsys.readouterr().err.splitlines()

    try:
        shown = failing(debug=True)
    finally:
        kafka.spark.conf.unset("spark.sql.pyspark.jvmStacktrace.enabled")
    assert shown[-1].startswith(line)
    assert "Traceback (most recent call last):" in shown
    assert any(line.startswith("\tat org.apache.spark.") for line in shown)
    (plain,) = [line for line in failing(debug=False) if not line.startswith("{")]
    assert plain.startswith(line)
