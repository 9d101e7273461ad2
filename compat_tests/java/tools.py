"""A runner of Kafka's command-line tools from their jars, without the shell scripts around them."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ottla.compat_tests import toolchains

TIMEOUT_S = 90

# What bin/kafka-NAME.sh runs.
MAIN_CLASSES: Mapping[str, str] = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "client-compatibility-test": "org.apache.kafka.tools.ClientCompatibilityTest",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "share-consumer-perf-test": "org.apache.kafka.tools.ShareConsumerPerformance",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "storage": "kafka.tools.StorageTool",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
}
BOOTSTRAP_IS_POSITIONAL = {"cluster", "e2e-latency", "producer-perf-test"}

# A tool lives for a second: a small heap, one compiler, no threads for the garbage.
SHORT_LIVED = ("-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

LOG4J_PROPERTIES = """\
status = error
appender.err.type = Console
appender.err.name = ERR
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = WARN
rootLogger.appenderRef.err.ref = ERR
"""


def java_command(folder: Path, *options: str) -> list[str]:
    """``java`` with Kafka's jars and a log configuration, which is written into ``folder``."""
    log4j = folder / "log4j2.properties"
    log4j.write_text(LOG4J_PROPERTIES)
    log_options = [f"-Dlog4j2.configurationFile={log4j}"]
    return [str(toolchains.java()), *options, *archived_classes(), *log_options, "-cp", class_path()]


def class_path() -> str:
    """Kafka's jars."""
    return f"{toolchains.kafka_jars()}/*"


def archive() -> Path:
    """Where the archive of the tools' classes is, or would be (class data sharing, JEP 310)."""
    return Path(sys.prefix) / "kafka-classes.jsa"


def archived_classes() -> list[str]:
    """Options that have a JVM take its classes from the archive, where ``tools/kafka_classes.py`` has made one.

    It halves the CPU time of a tool. The JVM ignores an archive of another JVM or of other jars.
    """
    return [f"-XX:SharedArchiveFile={archive()}", "-Xlog:disable"] if archive().exists() else []


def write_scripts(folder: Path) -> Path:
    """A folder of programs with the names that the tools have in a download of Kafka, ``kafka-topics.sh`` among them."""
    programs = folder / "bin"
    programs.mkdir()
    for tool, main_class in MAIN_CLASSES.items():
        script = programs / f"kafka-{tool}.sh"
        script.write_text(f'#!/bin/sh\nexec {shlex.join([*java_command(folder, *SHORT_LIVED), main_class])} "$@"\n')
        script.chmod(0o755)
    return programs


class KafkaTools:
    """The tools, pointed at one broker, or at a controller where that is what ``option`` names (KIP-919)."""

    def __init__(self, bootstrap: str, folder: Path, *, option: str = "--bootstrap-server") -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self._option = option
        self._java = java_command(folder, *SHORT_LIVED)

    def run(self, tool: str, *arguments: str, stdin: str = "", fails: bool = False) -> str:
        """One call; what it printed. The test fails when the tool does, or with ``fails`` when it doesn't."""
        bootstrap = [] if tool in BOOTSTRAP_IS_POSITIONAL else [self._option, self.bootstrap]
        command = [*self._java, MAIN_CLASSES[tool], *bootstrap, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S)
        said = f"kafka-{tool} {' '.join(arguments)}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert (done.returncode != 0) == fails, said
        return done.stdout + done.stderr if fails else done.stdout

    def file(self, name: str, content: str) -> str:
        """A file for a tool to read; its path."""
        path = self.folder / name
        path.write_text(content)
        return str(path)
