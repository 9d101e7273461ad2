"""What a running ``ottla spark`` job shows: its micro-batches in JSON and metrics; and that its end leaves no half batch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import PATIENCE_S, KafkaFormat, fill, records, value_of
from ottla.compat_tests.spark.killing import kill_all
from ottla.spark.pipeline.declaration import read
from ottla.spark.pipeline.run import run
from ottla.spark.query import JobControl, QueryProgress
from ottla.testing.held_port import HeldPort

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("pipelines")]
MakeTopic = Callable[..., str]

COPY = """
name = "copy"
checkpoint = "checkpoint"
trigger = "{trigger}"
[sources.records]
topics = ["{source}"]
max-offsets-per-trigger = {batch}
[sinks.copy]
view = "records"
topic = "{copy}"
key = "key"
value = "value"
"""


def declared(folder: Path, source: str, copy: str, batch: int, trigger: str = "once") -> Path:
    """The file of a pipeline that copies a topic, so many records at a time."""
    file = folder / "copy.toml"
    file.write_text(COPY.format(source=source, copy=copy, batch=batch, trigger=trigger))
    return file


def numbers(stock: ClientSession, topic: str, count: int) -> list[bytes]:
    """The values of a topic of one partition, which has so many records and no more."""
    return sorted(message.value or b"" for message in records(stock, topic, count))


@pytest.mark.parametrize("trigger", ["once", "1 second"])
def test_a_stopped_pipeline_writes_no_record_twice(
    trigger: str,
    kafka: KafkaFormat,
    stock: ClientSession,
    make_topic: MakeTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    source, copy = make_topic(1), make_topic(1)
    fill(stock, source, 10_000)
    pipeline = read(declared(tmp_path, source, copy, 20, trigger), bootstrap_servers=kafka.bootstrap)
    done = 0
    for _ in range(3):
        stop = threading.Event()
        batches: list[QueryProgress] = []

        def report(name: str, batch: QueryProgress, stop: threading.Event = stop, batches: Any = batches) -> None:
            batches.append(batch)
            stop.set()

        totals = run(kafka.spark, pipeline, JobControl(report, stop))
        assert totals == {"copy": 20 * len(batches)} != {"copy": 0}
        done += totals["copy"]
        assert numbers(stock, copy, done) == sorted(value_of(0, number) for number in range(done))
    assert done < 10_000


def test_sigterm_json_and_metrics(
    kafka: KafkaFormat,
    stock: ClientSession,
    make_topic: MakeTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, copy = make_topic(1), make_topic(1)
    fill(stock, source, 10_000)
    port = HeldPort()
    command = [sys.executable, "-m", "ottla", "spark", "run", str(declared(tmp_path, source, copy, 20))]
    command += ["--bootstrap-server", kafka.bootstrap, "--json", "--master", "local[2]"]
    said = tmp_path / "stderr"
    with said.open("w") as stderr:
        job = subprocess.Popen(
            [*command, "--metrics", f"127.0.0.1:{port.number}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=tmp_path,
            start_new_session=True,
        )
    try:
        assert job.stdout is not None
        first = json.loads(job.stdout.readline())
        with urllib.request.urlopen(f"http://127.0.0.1:{port.number}/metrics", timeout=60) as answer:
            metrics = answer.read().decode()
        # To all processes of the job, as a service manager does.
        os.killpg(job.pid, signal.SIGTERM)
        # communicate() would lose the lines that came with the first one.
        output = job.stdout.read()
        job.wait(PATIENCE_S)
    finally:
        kill_all(job)
        if job.stdout is not None:
            job.stdout.close()
        port.close()
    errors = said.read_text()
    assert (first["query"], first["batch"], first["records"], first["lag"]) == ("copy", 0, 20, 9980)
    assert first["offsets"] == {source: {"0": 20}}
    assert f'ottla_spark_read_offset{{partition="0",query="copy",topic="{source}"}} ' in metrics
    assert 'ottla_spark_records_total{query="copy"} ' in metrics
    assert job.returncode == 0, errors
    assert errors.splitlines()[-1] == "stopped; the next run continues from here"
    *batches, end = [json.loads(line) for line in output.splitlines()]
    done = first["records"] + sum(batch["records"] for batch in batches)
    assert end == {"totals": {"copy": done}, "stopped": True}
    assert numbers(stock, copy, done) == sorted(value_of(0, number) for number in range(done))
    assert 20 <= done < 10_000

    monkeypatch.chdir(tmp_path)
    pipeline = read(declared(tmp_path, source, copy, 10_000), bootstrap_servers=kafka.bootstrap)
    assert run(kafka.spark, pipeline) == {"copy": 10_000 - done}
    assert numbers(stock, copy, 10_000) == sorted(value_of(0, number) for number in range(10_000))
