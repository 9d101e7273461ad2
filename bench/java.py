"""Runs Apache Kafka's own programs from the jars that ``tools/fetch_jars.sh kafka`` fetched."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

_JARS = Path(__file__).resolve().parent.parent / ".jars" / "kafka-tools-4.3.1"
# The JVM options of Kafka's start scripts.
_PERFORMANCE_OPTIONS = [
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
]


class ToolFailed(RuntimeError):
    """A tool ended with an error or printed what could not be understood; ``str()`` has its last lines."""


def java_command(main_class: str, *arguments: str, heap: str = "512M") -> list[str]:
    """The command that runs ``main_class`` with ``arguments``; ``heap`` is both -Xmx and, above 512M, -Xms."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else Path("java")
    memory = [f"-Xmx{heap}"] if heap == "512M" else [f"-Xmx{heap}", f"-Xms{heap}"]
    return [str(java), *memory, *_PERFORMANCE_OPTIONS, "-cp", f"{_JARS}:{_JARS}/*", main_class, *arguments]


def run_tool(command: list[str], cwd: Path | None = None) -> str:
    """Output of a program that must succeed within ten minutes. Raises ToolFailed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, cwd=cwd)
    if done.returncode:
        raise ToolFailed("\n".join(done.stdout.splitlines()[-5:]))
    return done.stdout


_PRODUCED = re.compile(r"(\d+) records sent, ([\d.]+) records/sec .*?([\d.]+) ms avg latency.* (\d+) ms 99th")


def producer_perf(
    bootstrap: str, topic: str, records: int, size: int, compression: str, acks: str = "1"
) -> dict[str, float]:
    """kafka-producer-perf-test: ``records_s``, ``avg_ms``, ``p99_ms``."""
    output = run_tool(
        java_command(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", topic, "--num-records", str(records), "--record-size", str(size), "--throughput", "-1"),
            *("--reporting-interval", "600000"),
            *(
                "--command-property",
                f"bootstrap.servers={bootstrap}",
                f"acks={acks}",
                f"compression.type={compression}",
            ),
        )
    )
    found = _PRODUCED.findall(output)
    if not found or int(found[-1][0]) != records:
        raise ToolFailed(output[-500:])
    _, rate, average, p99 = found[-1]
    return {"records_s": float(rate), "avg_ms": float(average), "p99_ms": float(p99)}


def consumer_perf(bootstrap: str, topic: str, records: int) -> dict[str, float]:
    """kafka-consumer-perf-test: ``records_s`` with the group join, ``fetch_records_s`` without."""
    output = run_tool(
        java_command(
            "org.apache.kafka.tools.ConsumerPerformance",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(records), "--timeout", "60000"),
        )
    )
    lines = [line for line in output.splitlines() if re.match(r"\d{4}-\d\d-\d\d", line)]
    if not lines:
        raise ToolFailed(output[-500:])
    fields = [field.strip() for field in lines[-1].split(",")]
    if int(fields[4]) < records:
        raise ToolFailed(f"only {fields[4]} of {records} records came: {output[-300:]}")
    return {"records_s": float(fields[5]), "fetch_records_s": float(fields[9])}


def end_to_end_latency(bootstrap: str, topic: str, records: int) -> dict[str, float]:
    """kafka-e2e-latency, acks=1, 100 B, one record at a time: ``avg_ms``, ``p99_ms`` (whole milliseconds)."""
    output = run_tool(
        java_command("org.apache.kafka.tools.EndToEndLatency", bootstrap, topic, str(records), "1", "100")
    )
    average = re.search(r"Avg latency: ([\d.]+)", output)
    percentiles = re.search(r"99th = (\d+)", output)
    if not average or not percentiles:
        raise ToolFailed(output[-500:])
    return {"avg_ms": float(average[1]), "p99_ms": float(percentiles[1])}
