"""``python -m bench.spark_archive``: ``ottla spark archive`` of a topic, on a cluster of two workers, while processes are killed.

On Ottla, and then on Apache Kafka: the topic is filled; archived undisturbed, for the records per second; and
archived again, while the job is killed and restarted twice, the broker is killed and restarted, and a worker is killed, all
by SIGKILL. ``ottla spark audit`` then compares the second archive with the topic, and its values, which are numbers, with
the numbers that were produced.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from confluent_kafka import Producer
from rich.console import Console

from ottla.compat_tests.spark.cluster import Cluster, Job, running
from ottla.tools.suite import speed

from .brokers import ApacheKafka, Kind, Ottla, RunningBroker

_TOPIC, _PARTITIONS, _VALUE_BYTES = "events", 4, 100
_BATCHES = 20
_LIMIT_S = 3600.0
_console = Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class Measured:
    """A row of the table, and the output of the audit."""

    name: str
    records_per_s: float
    broker_cpu_s: float
    disturbed_s: float
    audit: str
    is_clean: bool


def fill(broker: RunningBroker, records: int) -> None:
    """Write the number n to partition n % 4 as its record n // 4."""
    broker.create_topic(_TOPIC, _PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 20,
            "batch.size": 1 << 18,
            "queue.buffering.max.messages": 500_000,
        }
    )
    for number in range(records):
        while True:
            try:
                producer.produce(_TOPIC, b"%0*d" % (_VALUE_BYTES, number), partition=number % _PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(_LIMIT_S):
        raise RuntimeError("not all records could be written")


class Run:
    """One archive of the whole topic by jobs on ``cluster``."""

    def __init__(self, broker: RunningBroker, cluster: Cluster, folder: Path, records: int) -> None:
        folder.mkdir()
        self.lake = folder / "lake"
        self._folder = folder
        self._checkpoint = self.lake / "_checkpoint"
        source = ["--bootstrap-server", broker.bootstrap, "--topics", _TOPIC, "--output", str(self.lake)]
        each = -(-records // _BATCHES)
        self._command = ["archive", *source, "--max-offsets-per-trigger", str(each), *cluster.settings()]
        self.job = self._new_job()

    def _new_job(self) -> Job:
        return Job(self._folder, "archive", *self._command, checkpoint=self._checkpoint)

    def at(self, batches: int, event: str, happens: Callable[[], None]) -> None:
        """Call ``happens`` after this many micro-batches, when the next one has begun."""
        self.job.wait_for_batches(batches, _LIMIT_S)
        happens()
        _console.print(f"after {batches} of {_BATCHES} micro-batches: {event}")

    def restart_job(self) -> None:
        """Kill the job by SIGKILL, and run the same command again."""
        self.job.kill()
        self.job = self._new_job()

    def seconds(self) -> float:
        """Seconds from the plan of the first micro-batch to the end of the last."""
        began = (self._checkpoint / "offsets" / "0").stat().st_mtime
        return max(path.stat().st_mtime for path in (self._checkpoint / "commits").glob("[0-9]*")) - began


def undisturbed(broker: RunningBroker, folder: Path, records: int) -> tuple[float, float]:
    """Records per second, and the broker's CPU seconds."""
    with running(folder / "cluster") as cluster, broker.measured("archive") as span:
        run = Run(broker, cluster, folder / "undisturbed", records)
        try:
            run.job.wait(_LIMIT_S)
        finally:
            run.job.kill()
    return records / run.seconds(), span.broker_cpu_s


def disturbed(broker: RunningBroker, folder: Path, records: int) -> tuple[Path, float]:
    """The archive, and the seconds that it took."""

    def restart_broker() -> None:
        broker.kill()
        broker.start()

    with running(folder / "cluster-2") as cluster:
        run = Run(broker, cluster, folder / "disturbed", records)
        try:
            run.at(3, "the job is killed and started", run.restart_job)
            run.at(7, "the broker is killed and started", restart_broker)
            run.at(11, "a worker is killed", cluster.workers[0].kill)
            run.at(15, "the job is killed and started", run.restart_job)
            run.job.wait(_LIMIT_S)
        finally:
            run.job.kill()
    return run.lake, run.seconds()


def audit_arguments(bootstrap: str, lake: str, records: int) -> list[str]:
    """The archive against its topic, and the numbers in it against those that were produced."""
    what = ["--bootstrap-server", bootstrap, "--topics", _TOPIC, "--archive", lake]
    return ["audit", *what, "--number", "value", "--expected", str(records)]


def audited(broker: RunningBroker, lake: Path, records: int) -> tuple[str, bool]:
    """What ``ottla spark audit`` prints, and whether it found nothing."""
    command = [sys.executable, "-m", "ottla", "spark", *audit_arguments(broker.bootstrap, str(lake), records)]
    command += ["--setting", "spark.driver.memory=2g"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S)
    if ended.returncode not in (0, 1) or not ended.stdout:  # Spark's JVM always prints something on stderr
        raise RuntimeError(f"the audit failed: {ended.stderr}")
    return ended.stdout, ended.returncode == 0


def measured(kind: Kind, folder: Path, records: int) -> Measured:
    """All measurements on one kind of broker."""
    folder.mkdir()
    with RunningBroker(kind, folder / "broker") as broker:
        began = time.monotonic()
        fill(broker, records)
        _console.print(f"{kind.name}: {records:,} records written in {time.monotonic() - began:.0f} s")
        rate, cpu_s = undisturbed(broker, folder, records)
        _console.print(f"{kind.name}: archived, {rate:,.0f} records/s, {cpu_s:.1f} CPU s of the broker")
        lake, seconds = disturbed(broker, folder, records)
        _console.print(f"{kind.name}: archived under fire in {seconds:.0f} s")
        began = time.monotonic()
        audit, is_clean = audited(broker, lake, records)
        _console.print(f"{kind.name}: audited in {time.monotonic() - began:.0f} s\n{audit}")
    return Measured(kind.name, rate, cpu_s, seconds, audit, is_clean)


def page(records: int, output: Path | None, rows: list[Measured]) -> str:
    """The page in Markdown: the table, how it was measured, the audits."""
    options = ["--records", str(records), *(["--output", str(output)] if output else [])]
    head = ["", "records/s", "broker CPU s", "s, disturbed"]
    figures = [[r.name, f"{r.records_per_s:,.0f}", f"{r.broker_cpu_s:.2f}", f"{r.disturbed_s:.0f}"] for r in rows]
    table = [head, ["---"] * len(head), *figures]
    audit = shlex.join(["ottla", "spark", *audit_arguments("127.0.0.1:9092", "lake", records)])
    machine = f"{os.cpu_count()} cores, {platform.system()}, {speed.described()}"
    what = f"{records:,} records of {_VALUE_BYTES} bytes in {_PARTITIONS} partitions"
    kept = (
        "each record was in the archive once" if all(row.is_clean for row in rows) else "NOT each record was in it once"
    )
    return f"""\
# An archive, while things die

{what} went through `ottla spark archive`, once undisturbed and once while the job, the
broker and a worker were killed; {kept}.

{"".join(f"| {' | '.join(line)} |" + chr(10) for line in table)}
*records/s* and *broker CPU s* are of the undisturbed run; the rate is from the plan of the first micro-batch to the end of the
last. *s, disturbed* is the length of the other run. Its [audits](#the-audit-on-ottla) are below.

## How it was measured

    make bench-archive ARGS={shlex.quote(shlex.join(options))}

on {machine}, shared by the broker, Spark's master, two workers and the job, in {_BATCHES}
micro-batches. In the disturbed run the job was killed (SIGKILL) and started again after 3 micro-batches, the broker
after 7, one of the workers was killed after 11 and stayed away, and the job was killed once more after 15. The archive was then
compared with its topic and with the numbers that were produced:

    {audit}

{(chr(10) * 2).join(f"## The audit on {row.name}{chr(10) * 2}```text{chr(10)}{row.audit.expandtabs(12)}```" for row in rows)}
"""


def main(
    records: Annotated[int, typer.Option(min=_BATCHES, help="How many to archive.")] = 20_000_000,
    only_ottla: Annotated[bool, typer.Option("--only-ottla", help="Without Apache Kafka.")] = False,
    output: Annotated[Path | None, typer.Option(help="Page to write.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Where the data goes; a temporary folder by default.")] = None,
) -> None:
    """Archive a topic on Ottla and on Apache Kafka, undisturbed and under fire, and audit what is there."""
    kinds: list[Kind] = [Ottla()] if only_ottla else [Ottla(), ApacheKafka()]
    with tempfile.TemporaryDirectory(prefix="ottla-archive-", dir=folder) as temporary:
        rows = [measured(kind, Path(temporary) / str(number), records) for number, kind in enumerate(kinds)]
    text = page(records, output, rows)
    print(text)
    if output is not None:
        output.write_text(text)
    if not all(row.is_clean for row in rows):
        raise typer.Exit(1)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    app()
